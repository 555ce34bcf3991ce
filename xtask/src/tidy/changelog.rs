//! The changelog has a section for what is not released yet.

use super::{Offence, Workspace};

#[cfg(test)]
mod tests;

const PATH: &str = "CHANGELOG.md";

pub(super) fn check(workspace: &Workspace) -> Vec<Offence> {
    let Some(text) = workspace.tree.text(PATH) else {
        return vec![Offence::in_file(PATH, "is missing")];
    };
    let is_section = |line: &str| line.starts_with("## ") && line.contains("Unreleased");
    if text.lines().any(is_section) {
        return Vec::new();
    }
    vec![Offence::in_file(PATH, "has no section `## Unreleased`")]
}
