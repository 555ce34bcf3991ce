//! The section is required.

use super::super::found;
use super::check;

#[test]
fn the_section_must_be_there() {
    assert_eq!(found(check, &[]), ["CHANGELOG.md: is missing"]);
    let without = [("CHANGELOG.md", "# Changes\n\nUnreleased\n\n## 0.1.0\n")];
    assert_eq!(found(check, &without), ["CHANGELOG.md: has no section `## Unreleased`"]);
    let with = [("CHANGELOG.md", "# Changes\n\n## [Unreleased]\n")];
    assert!(found(check, &with).is_empty());
}
