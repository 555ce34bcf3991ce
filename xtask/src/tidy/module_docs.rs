//! Every file of Rust begins by saying what it is for.

use super::{Offence, Workspace};

#[cfg(test)]
mod tests;

pub(super) fn check(workspace: &Workspace) -> Vec<Offence> {
    workspace
        .tree
        .rust()
        .filter(|(_, text)| !begins_with_documentation(text))
        .map(|(path, _)| Offence::in_line(path, 1, "begin with a line `//! what this is for`"))
        .collect()
}

fn begins_with_documentation(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.strip_prefix("//! ").is_some_and(|words| !words.trim().is_empty())
}
