//! Which files are found.

use super::*;

#[test]
fn this_working_tree_is_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let tree = Tree::read(root).unwrap();
    assert!(tree.text("xtask/src/tree.rs").unwrap().starts_with("//! The files"));
    assert!(tree.manifests().any(|(path, _)| path == "xtask/Cargo.toml"));
    assert!(
        tree.rust().all(|(path, _)| !path.starts_with("target/")),
        "ignored files are left out"
    );
}

#[test]
fn without_git_the_reason_is_said() {
    let nowhere = Path::new("no-such-folder");
    assert!(Tree::read(nowhere).unwrap_err().contains("tidy looks at the files that git lists"));
}

#[test]
fn files_are_chosen_by_ending_and_place() {
    let tree = Tree::made_up(&[
        ("Cargo.toml", ""),
        ("core/Cargo.toml", ""),
        ("core/deep/Cargo.toml", ""),
        ("core/a.rs", ""),
        ("rs", ""),
    ]);
    assert_eq!(tree.len(), 5);
    let paths = |found: Vec<(&str, &str)>| {
        found.iter().map(|(path, _)| path.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(paths(tree.rust().collect()), ["core/a.rs"]);
    assert_eq!(paths(tree.manifests().collect()), ["core/Cargo.toml"]);
    assert_eq!(tree.text("core/b.rs"), None);
}
