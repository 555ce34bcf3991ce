//! Words and macros that must not stay.

use super::super::found;
use super::{MACROS, WORDS, check};

#[test]
fn words_in_comments_and_prose_are_found() {
    for word in WORDS {
        let offence = format!("2: {word}: do it, or open an issue and leave the word out");
        let source = format!("fn f() {{}}\n// {word}: later\n");
        assert_eq!(found(check, &[("a.rs", &source)]), [format!("a.rs:{offence}")]);
        let prose = format!("# Title\n({word})\n");
        assert_eq!(found(check, &[("a.md", &prose)]), [format!("a.md:{offence}")]);
    }
}

#[test]
fn macros_in_code_are_found() {
    for name in MACROS {
        let source = format!("fn f() {{\n    {name}!(1);\n}}\n");
        assert_eq!(found(check, &[("a.rs", &source)]), [format!("a.rs:2: {name}! must not stay")]);
    }
}

#[test]
fn literals_longer_words_and_other_names_are_free() {
    let source = format!(
        "// {0}S and my{0}\nlet x = \"{0} {1}!()\"; if {1} != 2 {{}} // {1}!\n",
        WORDS[0], MACROS[0]
    );
    assert!(found(check, &[("a.rs", &source)]).is_empty());
}
