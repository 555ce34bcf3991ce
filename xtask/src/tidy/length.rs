//! Files and functions fit a reader's head.
//!
//! Clippy measures functions (`too_many_lines`); this rule keeps its limit, and the lints that keep
//! exceptions rare and reasoned, switched on.

use toml::Table;

use crate::source::Source;

use super::{Offence, Workspace};

#[cfg(test)]
mod tests;

const FILE_LINES: usize = 500;
const FUNCTION_LINES: i64 = 60;

const ENDINGS: &[&str] = &["rs", "md", "wgsl", "cu", "toml"];

/// The lints of clippy without which this rule would be empty.
const LINTS: &[&str] = &["too_many_lines", "allow_attributes_without_reason"];

pub(super) fn check(workspace: &Workspace) -> Vec<Offence> {
    let mut offences = long_files(workspace);
    offences.extend(function_limit(workspace));
    offences.extend(lints_that_are_off(workspace));
    offences.extend(exceptions_without_reason(workspace));
    offences
}

fn long_files(workspace: &Workspace) -> Vec<Offence> {
    let lines = |text: &str| text.lines().count();
    workspace
        .tree
        .with_ending(ENDINGS)
        .filter(|(_, text)| lines(text) > FILE_LINES)
        .map(|(path, text)| {
            let message = format!("{} lines; at most {FILE_LINES}: split it", lines(text));
            Offence::in_file(path, message)
        })
        .collect()
}

fn function_limit(workspace: &Workspace) -> Option<Offence> {
    const PATH: &str = "clippy.toml";
    let table = workspace.tree.text(PATH).and_then(|text| text.parse::<Table>().ok());
    let limit = table.and_then(|table| table.get("too-many-lines-threshold")?.as_integer());
    (limit != Some(FUNCTION_LINES)).then(|| {
        let message = format!("too-many-lines-threshold must be {FUNCTION_LINES}");
        Offence::in_file(PATH, message)
    })
}

fn lints_that_are_off(workspace: &Workspace) -> Vec<Offence> {
    const PATH: &str = "Cargo.toml";
    let table = workspace.tree.text(PATH).and_then(|text| text.parse::<Table>().ok());
    let level = |lint: &str| {
        let lints = table.as_ref()?.get("workspace")?.get("lints")?.get("clippy")?;
        let level = lints.get(lint)?;
        level.as_str().or_else(|| level.get("level")?.as_str())
    };
    LINTS
        .iter()
        .filter(|lint| !matches!(level(lint), Some("warn" | "deny" | "forbid")))
        .map(|lint| Offence::in_file(PATH, format!("the clippy lint {lint} must be on")))
        .collect()
}

fn exceptions_without_reason(workspace: &Workspace) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (path, text) in workspace.tree.rust() {
        for (line, inside) in Source::split(text).attributes() {
            if inside.contains("too_many_lines") && !inside.contains("reason") {
                let message = "a long function needs a reason = \"...\"";
                offences.push(Offence::in_line(path, line, message));
            }
        }
    }
    offences
}
