//! Versions of dependencies stand in the workspace's manifest only, and every crate takes the
//! workspace's lints.

use toml::{Table, Value};

use super::{Offence, Workspace};

#[cfg(test)]
mod tests;

const KINDS: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies"];

pub(super) fn check(workspace: &Workspace) -> Vec<Offence> {
    workspace.tree.manifests().flat_map(|(path, text)| check_manifest(path, text)).collect()
}

fn check_manifest(path: &str, text: &str) -> Vec<Offence> {
    let manifest: Table = match text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![Offence::in_file(path, format!("is no TOML: {error}"))],
    };
    // A workspace of its own, as the fuzz targets are, takes nothing from this one.
    if manifest.contains_key("workspace") {
        return Vec::new();
    }
    let mut offences = Vec::new();
    if !has_flag(manifest.get("lints"), "workspace") {
        offences.push(Offence::in_file(path, "lacks `[lints] workspace = true`"));
    }
    let targets = manifest.get("target").and_then(Value::as_table);
    let of_targets =
        targets.into_iter().flat_map(|targets| targets.values()).filter_map(Value::as_table);
    for table in std::iter::once(&manifest).chain(of_targets) {
        let kinds = KINDS.iter().filter_map(|kind| table.get(*kind)?.as_table());
        for (name, dependency) in kinds.flatten() {
            if !is_versioned_elsewhere(dependency) {
                let message = format!("{name}: its version belongs in [workspace.dependencies]");
                offences.push(Offence::in_file(path, message));
            }
        }
    }
    offences
}

/// Taken from the workspace, or a crate of ours by its path alone.
fn is_versioned_elsewhere(dependency: &Value) -> bool {
    let has = |key| dependency.get(key).is_some();
    has_flag(Some(dependency), "workspace") || (has("path") && !has("version"))
}

fn has_flag(value: Option<&Value>, key: &str) -> bool {
    value.and_then(|value| value.get(key)?.as_bool()) == Some(true)
}
