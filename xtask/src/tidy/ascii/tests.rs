//! Other characters are found where they are.

use super::super::found;
use super::check;

#[test]
fn a_character_outside_ascii_is_found() {
    let files = [("a.md", "fine\nna\u{ef}ve\n"), ("b.rs", "// plain"), ("c.png.txt", "\u{ef}")];
    let offence = "a.md:2: \\u{ef} is not ASCII: write it in plain letters or as an escape";
    assert_eq!(found(check, &files), [offence]);
}
