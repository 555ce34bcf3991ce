//! Files that are too long, and limits that were switched off.

use super::super::found;
use super::check;

const LIMIT: (&str, &str) = ("clippy.toml", "too-many-lines-threshold = 60\n");
const LINTS: (&str, &str) = (
    "Cargo.toml",
    "[workspace.lints.clippy]\n\
     too_many_lines = \"warn\"\n\
     allow_attributes_without_reason = { level = \"deny\", priority = 1 }\n",
);

#[test]
fn a_file_may_have_500_lines() {
    let (fits, long) = ("x\n".repeat(500), "x\n".repeat(501));
    let files = [LIMIT, LINTS, ("a.rs", fits.as_str()), ("b.md", &long), ("Cargo.lock", &long)];
    assert_eq!(found(check, &files), ["b.md: 501 lines; at most 500: split it"]);
}

#[test]
fn the_limits_of_clippy_must_stay() {
    assert_eq!(
        found(check, &[("clippy.toml", "too-many-lines-threshold = 100")]),
        [
            "clippy.toml: too-many-lines-threshold must be 60",
            "Cargo.toml: the clippy lint too_many_lines must be on",
            "Cargo.toml: the clippy lint allow_attributes_without_reason must be on",
        ]
    );
    let off = ("Cargo.toml", LINTS.1.replacen("warn", "allow", 1));
    assert_eq!(
        found(check, &[LIMIT, (off.0, &off.1)]),
        ["Cargo.toml: the clippy lint too_many_lines must be on"]
    );
}

#[test]
fn a_long_function_needs_a_reason() {
    let source = "#[expect(clippy::too_many_lines, reason = \"one table\")]\nfn a() {}\n\
                  #[allow(clippy::too_many_lines)]\nfn b() {}\n";
    assert_eq!(
        found(check, &[LIMIT, LINTS, ("a.rs", source)]),
        ["a.rs:3: a long function needs a reason = \"...\""]
    );
}
