//! Each crate stands only on floors below it, and drivers are reached by the backends alone.

use crate::metadata::Package;

use super::{Offence, Workspace};

#[cfg(test)]
mod tests;

/// Every crate of the workspace with those of ours that it may depend on.
const FLOORS: &[(&str, &[&str])] = &[
    ("hopwise-topology", &[]),
    ("hopwise-core", &["hopwise-topology"]),
    ("hopwise-backend-wgpu", &["hopwise-core"]),
    ("hopwise-backend-cuda", &["hopwise-core", "hopwise-topology"]),
    ("hopwise-migrate", &["hopwise-core", "hopwise-topology"]),
    (
        "hopwise",
        &[
            "hopwise-topology",
            "hopwise-core",
            "hopwise-backend-wgpu",
            "hopwise-backend-cuda",
            "hopwise-migrate",
        ],
    ),
    ("xtask", &[]),
];

/// Crates that reach a driver, and those of ours that must not reach them by any way.
const DRIVERS: &[&str] = &["ash", "cudarc", "libloading", "naga", "wgpu"];
const WITHOUT_DRIVERS: &[&str] = &["hopwise-topology", "hopwise-core", "hopwise-migrate"];

/// Crates that one crate of ours keeps to itself.
const PRIVATE: &[(&str, &str)] = &[("petgraph", "hopwise-topology")];

pub(super) fn check(workspace: &Workspace) -> Vec<Offence> {
    let metadata = &workspace.metadata;
    let members: Vec<&Package> = metadata.members().collect();
    let mut offences = Vec::new();
    for package in &members {
        let name = package.name.as_str();
        let mut complain = |message: String| offences.push(Offence::in_file(name, message));
        let Some((_, below)) = FLOORS.iter().find(|(member, _)| *member == name) else {
            complain("is on no floor: add it to the layers in xtask".into());
            continue;
        };
        let is_member = |other: &str| members.iter().any(|member| member.name == other);
        for other in package.declared().filter(|other| is_member(other) && *other != name) {
            if !below.contains(&other) {
                complain(format!("must not depend on {other}"));
            }
        }
        for (secret, owner) in PRIVATE.iter().filter(|(_, owner)| *owner != name) {
            if package.declared().any(|other| other == *secret) {
                complain(format!("must not depend on {secret}: that is for {owner} alone"));
            }
        }
        let reached = metadata.reached_from(package);
        for driver in DRIVERS.iter().filter(|driver| reached.contains(*driver)) {
            if WITHOUT_DRIVERS.contains(&name) {
                complain(format!("must not reach {driver}; `cargo tree -i {driver}` shows how"));
            }
        }
    }
    offences
}
