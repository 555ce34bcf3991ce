//! The graph, and reading this very workspace.

use super::*;

#[test]
fn reach_follows_what_is_built_and_leaves_tests_out() {
    let metadata = made_up(&[
        ("hopwise-a", &["b", "dev:t"]),
        ("b", &["c", "dev:u"]),
        ("c", &["hopwise-a"]),
        ("t", &[]),
        ("u", &[]),
    ]);
    let package = metadata.members().next().unwrap();
    assert_eq!(metadata.reached_from(package), BTreeSet::from(["b", "c"]));
    assert_eq!(package.declared().collect::<Vec<_>>(), ["b", "t"]);
}

#[test]
fn this_workspace_can_be_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let metadata = Metadata::read(root).unwrap();
    let tool = metadata.members().find(|package| package.name == "xtask").unwrap();
    assert!(metadata.reached_from(tool).contains("serde_core"), "through serde");
    assert!(metadata.target_directory().is_absolute());
}

#[test]
fn another_form_is_an_error() {
    assert!(Metadata::parse("{}").unwrap_err().starts_with("cargo metadata has an unknown form"));
}
