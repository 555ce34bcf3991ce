//! What cargo knows of the workspace: members, declared dependencies, the resolved graph.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::command::Command;

#[cfg(test)]
mod tests;

/// The part of `cargo metadata` that the checks look at.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Metadata {
    packages: Vec<Package>,
    workspace_members: BTreeSet<String>,
    resolve: Resolve,
    target_directory: PathBuf,
}

/// One package, of the workspace or from outside.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    id: String,
    pub(crate) name: String,
    dependencies: Vec<Declared>,
}

#[derive(Debug, Deserialize)]
struct Declared {
    name: String,
}

#[derive(Debug, Default, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Debug, Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<EdgeKind>,
}

#[derive(Debug, Deserialize)]
struct EdgeKind {
    kind: Option<String>,
}

impl Metadata {
    /// Asks cargo. Only what this machine's target needs is resolved, so nothing more is fetched
    /// than a build fetches.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let version = Command::new("rustc", &["-vV"], root).output()?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        let host = host.ok_or("`rustc -vV` names no host")?;
        let arguments =
            ["metadata", "--format-version=1", "--all-features", "--filter-platform", host];
        Self::parse(&Command::cargo(&arguments, root).output()?)
    }

    /// Reads what cargo printed.
    pub(crate) fn parse(json: &str) -> Result<Self, String> {
        serde_json::from_str(json)
            .map_err(|error| format!("cargo metadata has an unknown form: {error}"))
    }

    /// Where cargo builds.
    pub(crate) fn target_directory(&self) -> &Path {
        &self.target_directory
    }

    /// The packages of the workspace.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.workspace_members.contains(&package.id))
    }

    /// The names of all packages that `package` is built with, itself left out: dependencies of
    /// dependencies, for this machine, without those of tests and benches.
    pub(crate) fn reached_from(&self, package: &Package) -> BTreeSet<&str> {
        let nodes: BTreeMap<&str, &Node> =
            self.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
        let mut seen = BTreeSet::from([package.id.as_str()]);
        let mut open = vec![package.id.as_str()];
        while let Some(id) = open.pop() {
            let edges = nodes.get(id).map_or(&[][..], |node| &node.deps[..]);
            let built = edges.iter().filter(|edge| edge.is_built());
            open.extend(built.map(|edge| edge.pkg.as_str()).filter(|id| seen.insert(id)));
        }
        seen.remove(package.id.as_str());
        self.packages
            .iter()
            .filter(|package| seen.contains(package.id.as_str()))
            .map(|package| package.name.as_str())
            .collect()
    }
}

impl Package {
    /// The names that its manifest declares, of every kind and for every system.
    pub(crate) fn declared(&self) -> impl Iterator<Item = &str> {
        self.dependencies.iter().map(|dependency| dependency.name.as_str())
    }
}

impl Edge {
    fn is_built(&self) -> bool {
        self.dep_kinds.iter().any(|kind| kind.kind.as_deref() != Some("dev"))
    }
}

/// Metadata of a made-up workspace: each package with its dependencies (`dev:` before the name of
/// one that only tests have); those called `hopwise...` or `xtask` are its members.
#[cfg(test)]
pub(crate) fn made_up(packages: &[(&str, &[&str])]) -> Metadata {
    let plain = |name: &str| name.trim_start_matches("dev:").to_owned();
    let edge = |name: &&str| Edge {
        pkg: plain(name),
        dep_kinds: vec![EdgeKind { kind: name.starts_with("dev:").then(|| "dev".into()) }],
    };
    let is_ours = |name: &str| name.starts_with("hopwise") || name == "xtask";
    Metadata {
        packages: packages
            .iter()
            .map(|(name, dependencies)| Package {
                id: plain(name),
                name: plain(name),
                dependencies: dependencies
                    .iter()
                    .map(|name| Declared { name: plain(name) })
                    .collect(),
            })
            .collect(),
        workspace_members: packages
            .iter()
            .filter(|(name, _)| is_ours(name))
            .map(|(name, _)| plain(name))
            .collect(),
        resolve: Resolve {
            nodes: packages
                .iter()
                .map(|(name, dependencies)| Node {
                    id: plain(name),
                    deps: dependencies.iter().map(edge).collect(),
                })
                .collect(),
        },
        target_directory: PathBuf::new(),
    }
}
