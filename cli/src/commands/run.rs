//! `hopwise run`: kernels as a scenario file says.

use crate::args::RunArguments;
use crate::failure::Failure;
use crate::{output, scenario};

/// Reads and checks the scenario, runs it, reports.
pub(crate) fn run(arguments: &RunArguments) -> Result<(), Failure> {
    let scenario = scenario::read(&arguments.scenario)?;
    let outcome = scenario::execute(&scenario)?;
    if arguments.json {
        output::print_json(&outcome)?;
    } else {
        output::print(&outcome.to_string())?;
    }
    outcome.check()
}
