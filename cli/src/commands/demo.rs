//! `hopwise demo`: the built-in scenario.

use crate::args::DemoArguments;
use crate::demo::{self, Plan};
use crate::failure::Failure;
use crate::output;

/// Checks the arguments, runs, reports.
pub(crate) fn run(arguments: &DemoArguments) -> Result<(), Failure> {
    let plan = Plan::new(arguments)?;
    let outcome = demo::run(&plan, &arguments.output)?;
    if arguments.json {
        output::print_json(&outcome)?;
    } else {
        output::print(&outcome.to_string())?;
    }
    outcome.check()
}
