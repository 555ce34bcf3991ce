//! Names that are not wanted.

use super::super::found;
use super::check;

#[test]
fn empty_names_and_folders_with_mod_are_found() {
    let files = [
        ("core/src/a/mod.rs", ""),
        ("core/src/utils.rs", ""),
        ("core/tests/manager.rs", ""),
        ("core/src/model.rs", ""),
        ("core/src/database.rs", ""),
        ("docs/utils.md", ""),
    ];
    assert_eq!(
        found(check, &files),
        [
            "core/src/a/mod.rs: a module is `name.rs` beside the folder `name`, not `name/mod.rs`",
            "core/src/utils.rs: the name does not say what is in the file",
            "core/tests/manager.rs: the name does not say what is in the file",
        ]
    );
}
