//! Crates without unsafe code say so at their root, where no inner attribute can take it back.

use crate::source::Source;

use super::{Offence, Workspace};

#[cfg(test)]
mod tests;

/// The crates that call drivers; every other crate forbids unsafe code.
const MAY_BE_UNSAFE: &[&str] = &["backend-cuda", "backend-wgpu"];

const ATTRIBUTE: &str = "forbid(unsafe_code)";

pub(super) fn check(workspace: &Workspace) -> Vec<Offence> {
    let folders = workspace.tree.manifests().filter_map(|(path, _)| path.split('/').next());
    let mut offences = Vec::new();
    for folder in folders.filter(|folder| !MAY_BE_UNSAFE.contains(folder)) {
        for name in ["lib.rs", "main.rs"] {
            let path = format!("{folder}/src/{name}");
            let Some(text) = workspace.tree.text(&path) else { continue };
            if !Source::split(text).attributes().any(|(_, inside)| inside == ATTRIBUTE) {
                offences.push(Offence::in_file(&path, format!("lacks #![{ATTRIBUTE}]")));
            }
        }
    }
    offences
}
