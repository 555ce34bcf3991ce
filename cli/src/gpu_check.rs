//! `hopwise gpu-check`: checks devices and measures them, on a machine that has nothing but this
//! program and a driver.
//!
//! Three parts, each in a process of its own, so that a driver that falls takes one part with it:
//! the law for backends (`conformance`), the demo across the devices with drains (`demo_run`), and
//! the figures for `docs/performance.md` (`measure`). The process that was started by hand starts
//! the parts (`child`), and puts together what they found (`report`).

use std::io::{self, Write};

use serde::Serialize;

mod arguments;
mod devices;

mod child;
mod sanitizer;

mod conformance;
mod demo_run;
mod measure;

mod figure;
mod machine;
mod report;

pub(crate) use arguments::Arguments;

use crate::failure::Failure;
use crate::output;
use arguments::Part;
use devices::Chosen;
use report::Report;

/// Runs one part, or all of them in processes of their own.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let chosen = Chosen::new(arguments.devices.as_ref())?;
    match arguments.only {
        None => finish(arguments, &Report::collect(arguments, &chosen), Report::failures),
        Some(Part::Conformance) => {
            let limit = arguments.topic_limit();
            let found = conformance::run(&chosen.asked, limit);
            finish(arguments, &found, conformance::Conformance::failures)
        }
        Some(Part::Demo) => {
            let found = demo_run::run(&chosen.with_host, arguments.quick)?;
            finish(arguments, &found, demo_run::DemoRun::failures)
        }
        Some(Part::Measure) => {
            let found = measure::run(&chosen, arguments.quick)?;
            finish(arguments, &found, measure::Measured::failures)
        }
    }
}

/// Prints what was found, and fails if anything of it did.
fn finish<T: Serialize + std::fmt::Display>(
    arguments: &Arguments,
    found: &T,
    failures: impl Fn(&T) -> Vec<String>,
) -> Result<(), Failure> {
    if arguments.json {
        output::print_json(found)?;
    } else {
        output::print(&found.to_string())?;
    }
    match &failures(found)[..] {
        [] => Ok(()),
        failures => Err(Failure::failed(failures.join("\nerror: "))),
    }
}

/// Tells a person who waits what is being done.
fn tell(text: &str) {
    // Nobody is left to be told that standard error is gone.
    let _ = writeln!(io::stderr().lock(), "{text}");
}
