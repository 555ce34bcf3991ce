//! Manifests that state versions, or lack the lints.

use super::super::found;
use super::check;

#[test]
fn a_version_outside_the_workspaces_manifest_is_found() {
    let manifest = "[lints]\nworkspace = true\n\
                    [dependencies]\n\
                    a.workspace = true\n\
                    b = { workspace = true, optional = true }\n\
                    c = \"1\"\n\
                    [dev-dependencies]\n\
                    d = { path = \".\", features = [\"x\"] }\n\
                    e = { path = \"../e\", version = \"1\" }\n\
                    [target.'cfg(windows)'.dependencies]\n\
                    f = { git = \"https://example.org/f\" }\n";
    let files = [("core/Cargo.toml", manifest), ("Cargo.toml", "[dependencies]\ng = \"1\"\n")];
    let offence =
        |name| format!("core/Cargo.toml: {name}: its version belongs in [workspace.dependencies]");
    assert_eq!(found(check, &files), ["c", "e", "f"].map(offence));
}

#[test]
fn the_lints_are_the_workspaces() {
    let lacks = "core/Cargo.toml: lacks `[lints] workspace = true`";
    assert_eq!(found(check, &[("core/Cargo.toml", "")]), [lacks]);
    assert_eq!(found(check, &[("core/Cargo.toml", "[lints]\nworkspace = false\n")]), [lacks]);
}

#[test]
fn a_broken_manifest_is_said() {
    let offences = found(check, &[("core/Cargo.toml", "[")]);
    assert!(offences[0].starts_with("core/Cargo.toml: is no TOML: "), "{offences:?}");
}

#[test]
fn a_workspace_of_its_own_is_left_alone() {
    let manifest = "[workspace]\n[dependencies]\na = \"1\"\n";
    assert_eq!(found(check, &[("fuzz/Cargo.toml", manifest)]), [""; 0]);
}
