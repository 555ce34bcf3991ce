//! A file tree from a directory and from `grep -r`.

use std::fs;

use super::FileTree;

#[test]
fn a_directory_and_its_grep_are_the_same_tree() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    fs::create_dir_all(root.join("nodes/0/io_links/0")).unwrap();
    fs::write(root.join("nodes/0/io_links/0/properties"), "type 2\nweight 20\n").unwrap();
    fs::write(root.join("nodes/0/name"), "\n").unwrap();
    fs::write(root.join("unwanted"), "x").unwrap();
    let tree = FileTree::read(root, |path| path != "unwanted").unwrap();
    let grep = FileTree::from_grep(
        "./nodes/0/io_links/0/properties:type 2\n./nodes/0/io_links/0/properties:weight 20\n\
         nodes/0/name:\nbinary file matches\n",
    );
    assert!(tree.files().eq(grep.files()), "{tree:?} {grep:?}");
    assert_eq!(tree.below("nodes/0").children("").collect::<Vec<_>>(), ["io_links", "name"]);
}

#[test]
fn a_missing_directory_is_named() {
    let error = FileTree::read("no/such/place".as_ref(), |_| true).unwrap_err();
    assert!(error.to_string().contains("no/such/place"), "{error}");
}
