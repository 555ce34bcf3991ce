//! First lines.

use super::super::found;
use super::check;

#[test]
fn a_file_that_begins_otherwise_is_found() {
    let files = [
        ("a.rs", "//! What it is for.\n"),
        ("b.rs", "use a;\n//! Late.\n"),
        ("c.rs", "//!\n//! Second line.\n"),
        ("d.rs", ""),
    ];
    assert_eq!(
        found(check, &files),
        [
            "b.rs:1: begin with a line `//! what this is for`",
            "c.rs:1: begin with a line `//! what this is for`",
            "d.rs:1: begin with a line `//! what this is for`",
        ]
    );
}
