//! A file is named after its subject, and a module is a file beside its folder.

use super::{Offence, Workspace};

#[cfg(test)]
mod tests;

/// Names that say nothing about what is in the file.
const EMPTY_NAMES: &[&str] = &["base", "helper", "helpers", "manager", "util", "utils"];

pub(super) fn check(workspace: &Workspace) -> Vec<Offence> {
    workspace
        .tree
        .rust()
        .filter_map(|(path, _)| Some((path, complaint(path)?)))
        .map(|(path, complaint)| Offence::in_file(path, complaint))
        .collect()
}

fn complaint(path: &str) -> Option<&'static str> {
    let stem = path.rsplit('/').next()?.strip_suffix(".rs")?;
    if stem == "mod" {
        Some("a module is `name.rs` beside the folder `name`, not `name/mod.rs`")
    } else if EMPTY_NAMES.contains(&stem) {
        Some("the name does not say what is in the file")
    } else {
        None
    }
}
