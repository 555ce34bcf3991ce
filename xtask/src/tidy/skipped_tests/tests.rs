//! Tests and examples that would not run.

use super::super::found;
use super::check;

#[test]
fn attributes_that_skip_or_hide_are_found() {
    let source = "#[test]\n#[ignore = \"slow\"]\nfn a() {}\n\
                  #[test]\n#[should_panic(expected = \"x\")]\nfn b() {}\n\
                  #[cfg_attr(miri, ignore)]\nfn c() {}\n";
    let offences = found(check, &[("a.rs", source)]);
    let lines: Vec<_> = offences.iter().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(lines, ["a.rs:2", "a.rs:5", "a.rs:7"]);
}

#[test]
fn an_example_that_is_not_compiled_is_found() {
    let source = "/// ```ignore\n/// x\n/// ```\n//! ```rust,ignore\n/// ```no_run\n";
    let offences = found(check, &[("a.rs", source)]);
    assert_eq!(offences.len(), 2, "{offences:?}");
    assert!(offences[1].starts_with("a.rs:4: "), "{offences:?}");
}

#[test]
fn other_uses_of_the_word_are_fine() {
    let source = "// #[ignore]\n#[serde(ignore)]\nfn ignore() { \"#[ignore]\" }\n";
    assert!(found(check, &[("a.rs", source)]).is_empty());
}
