//! What the test command needs on this machine: found, fetched, or named with the remedy.

use std::path::Path;

use crate::command::Command;

mod vulkan;

/// Which program runs the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runner {
    /// `cargo nextest`: every test in a process of its own, with a time limit.
    Nextest,
    /// `cargo test`.
    Libtest,
}

/// Sees to the tool chain's components and chooses the test runner.
pub(crate) fn run(root: &Path) -> Result<Runner, String> {
    require_component(root, "fmt", "rustfmt")?;
    require_component(root, "clippy", "clippy")?;
    vulkan::run(root);
    if Command::cargo(&["nextest", "--version"], root).succeeds() {
        return Ok(Runner::Nextest);
    }
    println!("cargo-nextest is not installed: the tests run with cargo test, without a time limit");
    Ok(Runner::Libtest)
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
