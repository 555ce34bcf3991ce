//! What is code, what is comment, what is neither.

use super::*;

fn code(text: &str) -> String {
    Source::split(text).code
}

fn names(text: &str) -> Vec<String> {
    Source::split(text).identifiers().map(|found| found.name.to_owned()).collect()
}

#[test]
fn comments_are_told_from_code() {
    let source = Source::split("let a = 1; // b\n/* c /* d */ e */ f // g");
    assert_eq!(source.code, "let a = 1;     \n                  f     ");
    assert_eq!(source.comments, "           // b\n/* c /* d */ e */   // g");
}

#[test]
fn literals_are_blank_and_keep_their_quotes() {
    assert_eq!(code(r#"f("a // \" b") // c"#), "f(\"         \")     ");
    assert_eq!(
        names(r##"x(b"a", r#"b " c"#, c"d", br"e\", 'f', '\'', '"', g)"##),
        ["x", "b", "r", "c", "br", "g"]
    );
    assert_eq!(names("\"two\nlines\" a"), ["a"]);
    assert_eq!(names("\"open"), Vec::<String>::new());
    assert_eq!(names("r#\"open\" a"), ["r"]);
}

#[test]
fn lifetimes_and_raw_names_are_code() {
    assert_eq!(
        names("fn f<'a>(x: &'a str, y: r#type) { 'b: loop {} }"),
        ["fn", "f", "a", "x", "a", "str", "y", "r", "type", "b", "loop"]
    );
}

#[test]
fn identifiers_know_their_line_and_what_follows() {
    let source = Source::split("use a::b;\n  c2 !(3d)");
    let found: Vec<_> = source.identifiers().map(|found| (found.name, found.line)).collect();
    assert_eq!(found, [("use", 1), ("a", 1), ("b", 1), ("c2", 2)]);
    assert!(source.identifiers().last().unwrap().after.starts_with("!("));
}

#[test]
fn attributes_are_found_whole() {
    let source = Source::split("#![a]\n#[b(c = [1], d = \"]\")] fn f() { x # y }\n// #[e]\n");
    let found: Vec<_> = source.attributes().collect();
    assert_eq!(found, [(1, "a"), (2, "b(c = [1], d = \" \")")]);
}

#[test]
fn other_scripts_do_not_confuse_it() {
    let source = Source::split("\u{e4} = '\u{20ac}'; // \u{fc}\n\"\u{df}\" \u{e4}2");
    assert_eq!(source.identifiers().map(|found| found.line).collect::<Vec<_>>(), [1, 2]);
    assert!(source.comments.contains('\u{fc}'));
    assert_eq!(code("\"open \u{e4}"), "\"       ");
}
