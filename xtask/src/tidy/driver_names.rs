//! The core names no driver and no graph library: it knows devices by its traits and machines by
//! the topology crate.
//!
//! The rule is about names in code: crates in paths, imports and attributes. What a device is called
//! (`BackendKind::Wgpu`), texts and documentation are free.

use crate::source::{Identifier, Source};

use super::{Offence, Workspace};

#[cfg(test)]
mod tests;

const FOLDER: &str = "core/";

const CRATES: &[&str] = &[
    "ash",
    "cudarc",
    "hopwise_backend_cuda",
    "hopwise_backend_wgpu",
    "libloading",
    "naga",
    "petgraph",
    "wgpu",
];

pub(super) fn check(workspace: &Workspace) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (path, text) in workspace.tree.rust().filter(|(path, _)| path.starts_with(FOLDER)) {
        for found in Source::split(text).identifiers().filter(names_driver) {
            let message = format!("the core must not name {}", found.name);
            offences.push(Offence::in_line(path, found.line, message));
        }
    }
    offences
}

/// A name such as `cuda_source` is data of a program; `cuda_sys::...` is a crate.
fn names_driver(found: &Identifier<'_>) -> bool {
    let is_binding = found.name.starts_with("cuda_") || found.name.starts_with("wgpu_");
    CRATES.contains(&found.name) || (is_binding && found.after.starts_with("::"))
}
