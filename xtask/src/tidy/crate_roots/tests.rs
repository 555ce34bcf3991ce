//! Roots that forbid unsafe code, and roots that only seem to.

use super::super::found;
use super::check;

#[test]
fn a_root_without_the_attribute_is_found() {
    let files = [
        ("core/Cargo.toml", ""),
        ("core/src/lib.rs", "//! x\n#![forbid(unsafe_code)]\n"),
        ("cli/Cargo.toml", ""),
        ("cli/src/main.rs", "//! x\n// #![forbid(unsafe_code)]\n#![deny(unsafe_code)]\n"),
        ("cli/src/other.rs", "//! x\n"),
        ("backend-cuda/Cargo.toml", ""),
        ("backend-cuda/src/lib.rs", "//! x\n"),
    ];
    assert_eq!(found(check, &files), ["cli/src/main.rs: lacks #![forbid(unsafe_code)]"]);
}
