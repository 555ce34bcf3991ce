//! `cargo xtask test`: every check of the project, in order, up to the first that fails.
//!
//! The checks share their build products: the same packages, features and profile everywhere.

use std::path::Path;
use std::time::Instant;

use crate::command::Command;
use crate::metadata::Metadata;
use crate::set_up::{self, Ready, Runner};
use crate::tally::Tally;
use crate::{demo, tidy};

/// One step: its name, the command that it runs or that repeats it, and how it is checked.
struct Step {
    name: &'static str,
    command: Command,
    check: Check,
}

/// What makes a step pass.
#[derive(Debug, Clone, Copy)]
enum Check {
    /// The command succeeds.
    Succeeds,
    /// The command succeeds, and its output counts at least one test.
    Tests,
    /// No house rule is broken.
    Tidy,
    /// The demo verifies its result.
    Demo,
}

/// Runs all steps. The last line says how many tests passed.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let start = Instant::now();
    println!("[set-up]");
    let steps = steps(root, &set_up::run(root)?);
    let mut tally = Tally::default();
    for (index, step) in steps.iter().enumerate() {
        let title = format!("[{}/{}] {}", index + 1, steps.len(), step.name);
        println!("\n{title}: {}", step.command);
        let start = Instant::now();
        let result = step.run(root);
        let seconds = start.elapsed().as_secs_f64();
        tally += result.map_err(|error| {
            let repeat = &step.command;
            format!("\n{error}\n{title}: failed after {seconds:.1} s; repeat it with: {repeat}")
        })?;
        println!("{title}: ok in {seconds:.1} s");
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("\nall {} steps ok in {seconds:.1} s; tests: {tally}", steps.len());
    Ok(())
}

impl Step {
    fn run(&self, root: &Path) -> Result<Tally, String> {
        let nothing_counted = |()| Tally::default();
        match self.check {
            Check::Succeeds => self.command.run().map(nothing_counted),
            Check::Tests => run_tests(&self.command),
            Check::Tidy => tidy::run(root).map(nothing_counted),
            Check::Demo => {
                let metadata = Metadata::read(root)?;
                demo::run(metadata.target_directory()).map(nothing_counted)
            }
        }
    }
}

fn steps(root: &Path, ready: &Ready) -> Vec<Step> {
    let all = ["--workspace", "--all-features"];
    let step = |name, check, arguments: &[&[&str]]| {
        let command = Command::cargo(&arguments.concat(), root);
        Step { name, command, check }
    };
    let mut documentation =
        step("documentation", Check::Succeeds, &[&["doc"], &all, &["--no-deps"]]);
    documentation.command = documentation.command.with("RUSTDOCFLAGS", "-D warnings");
    let mut all_tests =
        step("tests", Check::Tests, &[tests(ready.runner), &all, &["--no-fail-fast"]]);
    for (name, value) in &ready.environment {
        all_tests.command = all_tests.command.with(name, value);
    }
    let strict = ["--all-targets", "--", "-D", "warnings"];
    vec![
        step("format", Check::Succeeds, &[&["fmt", "--all", "--check"]]),
        step("clippy", Check::Succeeds, &[&["clippy"], &all, &strict]),
        step("tidy", Check::Tidy, &[&["xtask", "tidy"]]),
        documentation,
        all_tests,
        step("doctests", Check::Tests, &[&["test", "--doc"], &all, &["--no-fail-fast"]]),
        Step { name: "demo", command: demo::command(root), check: Check::Demo },
    ]
}

/// Tests of libraries, binaries and `tests/`; of benches it is enough that clippy checks them.
fn tests(runner: Runner) -> &'static [&'static str] {
    match runner {
        // The file sets the time limits.
        Runner::Nextest => &["nextest", "run", "--config-file=xtask/nextest.toml"],
        Runner::Libtest => &["test", "--lib", "--bins", "--tests"],
    }
}

fn run_tests(command: &Command) -> Result<Tally, String> {
    let (text, result) = command.run_and_read();
    let tally = Tally::read(&text);
    match result {
        Ok(()) if tally.passed == 0 => Err(format!("`{command}` ran no test")),
        Ok(()) => Ok(tally),
        Err(error) => Err(format!("{error}; tests: {tally}")),
    }
}
