//! What the test command needs on this machine: found, fetched, or named with the remedy.

use std::path::Path;

use crate::command::Command;
use crate::metadata::Metadata;
use packages::Packages;

mod nvidia;
mod packages;
mod vulkan;

/// What the set-up found.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) runner: Runner,
    /// Variables with which the tests find what was set up.
    pub(crate) environment: Vec<(&'static str, String)>,
}

/// Which program runs the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runner {
    /// `cargo nextest`: every test in a process of its own, with a time limit.
    Nextest,
    /// `cargo test`.
    Libtest,
}

/// Sees to the tool chain's components, drivers and compilers, and chooses the test runner.
pub(crate) fn run(root: &Path) -> Result<Ready, String> {
    require_component(root, "fmt", "rustfmt")?;
    require_component(root, "clippy", "clippy")?;
    let mut packages = Packages::new(root);
    vulkan::run(&mut packages);
    let metadata = Metadata::read(root)?;
    let environment = nvidia::run(root, metadata.target_directory(), &mut packages);
    Ok(Ready { runner: runner(root), environment })
}

fn runner(root: &Path) -> Runner {
    if Command::cargo(&["nextest", "--version"], root).succeeds() {
        return Runner::Nextest;
    }
    println!("cargo-nextest is not installed: the tests run with cargo test, without a time limit");
    Runner::Libtest
}

fn require_component(root: &Path, subcommand: &str, component: &str) -> Result<(), String> {
    let version = Command::cargo(&[subcommand, "--version"], root);
    if version.succeeds() {
        return Ok(());
    }
    let add = Command::new("rustup", &["component", "add", component], root);
    println!("{component} is missing: {add}");
    match add.run() {
        Ok(()) if version.succeeds() => Ok(()),
        Ok(()) => Err(format!("{component} was added, but `{version}` still fails")),
        Err(error) => Err(format!(
            "{component} is missing and could not be added: {error}; install it with `{add}` or \
             the package manager that installed cargo"
        )),
    }
}
