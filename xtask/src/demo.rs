//! The demo as a check: a release build of the command that verifies its own result.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::command::Command;

#[cfg(test)]
mod tests;

/// The main command of the README, with output for a program.
pub(crate) fn command(folder: &Path) -> Command {
    let arguments = ["run", "--release", "--bin", "hopwise", "--", "demo", "--json"];
    Command::cargo(&arguments, folder)
}

/// Runs the demo in `target`, where the picture that it writes is in nobody's way.
pub(crate) fn run(target: &Path) -> Result<(), String> {
    let folder = target.join("demo");
    fs::create_dir_all(&folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    println!("{}", check(&command(&folder).output()?)?);
    Ok(())
}

/// Reads the demo's report; answers with a line for a person.
fn check(report: &str) -> Result<String, String> {
    let value: Value = serde_json::from_str(report)
        .map_err(|error| format!("the demo printed no JSON object ({error}): {report:?}"))?;
    if value["verified"] != Value::Bool(true) {
        return Err(format!("the demo did not verify its result: {report}"));
    }
    let delivered = &value["messages"]["delivered"];
    let migrations = value["migrations"].as_array().map_or(0, Vec::len);
    Ok(format!("verified; {delivered} messages delivered, {migrations} kernels moved"))
}
