//! The hopwise command: run kernels on devices, drain a device while they work.
//!
//! | file | what it holds |
//! |---|---|
//! | `args` | what can be typed |
//! | `commands` | one module for each subcommand, and what these have in common |
//! | `demo` | the built-in scenario: an image smoothed by kernels, compared with a plain loop |
//! | `scenario` | scenario files: reading, checking, running |
//! | `machine` | descriptions of machines: files, standard input, this machine |
//! | `report` | the rows that the reports of `demo` and `run` share |
//! | `gpu_check` | checks and measures devices; in builds with the feature `gpu-check` |
//! | `output`, `progress` | standard output for results, standard error for everything else |
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;

mod args;
mod commands;

mod demo;
mod scenario;

#[cfg(feature = "gpu-check")]
mod gpu_check;

mod device_list;
mod machine;
mod moves;
mod report;

mod failure;
mod output;
mod progress;

mod misbehave;

use args::{Arguments, Command};

fn main() -> ExitCode {
    output::keep_panics_of_kernels_short();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help goes to standard output, and a reader that has gone is no failure.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { failure::USAGE } else { 0 });
        }
    };
    let outcome = match &arguments.command {
        Command::Devices(arguments) => commands::devices::run(arguments),
        Command::Topo(arguments) => commands::topo::run(arguments),
        Command::Route(arguments) => commands::route::run(arguments),
        Command::Run(arguments) => commands::run::run(arguments),
        Command::Demo(arguments) => commands::demo::run(arguments),
        Command::VerifyPair(arguments) => commands::devices::cuda::verify_one(arguments),
        #[cfg(feature = "gpu-check")]
        Command::GpuCheck(arguments) => gpu_check::run(arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::complain(&failure);
            failure.exit_code()
        }
    }
}
