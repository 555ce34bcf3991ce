//! Lines, words and what stands under which column.

use super::*;

fn is_gap(character: char) -> bool {
    character.is_whitespace()
}

#[test]
fn escapes_of_terminals_are_no_text() {
    let lines = lines("\u{1b}[4mGPU0\u{1b}[0m\tGPU1\r\nplain\u{1b}[");
    assert_eq!(lines[0].text, "GPU0\tGPU1");
    assert_eq!(lines[1].text, "plain");
    assert_eq!((lines[0].number, lines[1].number), (1, 2));
}

#[test]
fn the_last_line_says_how_it_ends() {
    let end = |text| lines(text).pop().map(|line| line.end);
    assert_eq!(end("a\nb\n"), Some(LineEnd::Newline));
    assert_eq!(end("a\nb"), Some(LineEnd::Word));
    assert_eq!(end("a\nb "), Some(LineEnd::Gap));
    assert_eq!(end(""), None);
}

#[test]
fn words_know_their_columns_in_characters() {
    let text = "\u{e4}\u{e4}  b c";
    let columns: Vec<_> = words(text, is_gap).iter().map(|word| (word.text, word.column)).collect();
    assert_eq!(columns, [("\u{e4}\u{e4}", 0), ("b", 4), ("c", 6)]);
}

#[test]
fn words_are_certain_by_count_or_by_place() {
    let cells = |text, end| certain(&[2, 6, 10], &words(text, is_gap), end);
    let newline = LineEnd::Newline;
    assert_eq!(cells("a b c", newline), ["a", "b", "c"]);
    // One too few: any may be missing if all stand in their places.
    assert_eq!(cells("  a   b", newline), [""; 0]);
    assert_eq!(cells("  a   b", LineEnd::Gap), ["a", "b"]);
    assert_eq!(cells("  a   b", LineEnd::Word), ["a"]);
    // The second starts in its place, and is two of them.
    assert_eq!(cells("  a   bc", LineEnd::Gap), ["a", "bc"]);
    assert_eq!(cells("  a   b  c  d", newline), ["a"]);
    assert_eq!(cells("  a   b   c   d", newline), ["a", "b"]);
    assert_eq!(cells("a b", newline), [""; 0]);
    assert_eq!(cells("a b c", LineEnd::Word), ["a", "b"]);
}

#[test]
fn a_header_repeated_below_itself_is_one() {
    let mut sections: Sections<'_, u32, ()> = Sections::new();
    sections.header(vec![(0, 0), (1, 2)], 1);
    sections.header(vec![(0, 0), (1, 2)], 2);
    sections.header(vec![(0, 0), (1, 2)], 4);
    let mut warnings = Vec::new();
    assert_eq!(sections.finish(&mut warnings).len(), 2);
}

#[test]
fn titles_hold_for_one_matrix() {
    let mut sections = Sections::new();
    let header = || vec![(0, 0), (1, 2)];
    sections.title('a');
    sections.header(header(), 2);
    sections.row(0, &words("0 1", is_gap), 3, LineEnd::Newline);
    sections.header(header(), 4);
    sections.title('b');
    sections.title('c');
    sections.header(header(), 7);
    sections.title('b');
    sections.other();
    sections.title('c');
    sections.header(header(), 11);
    sections.title('d');
    sections.rule();
    sections.header(header(), 14);
    let titles: Vec<_> =
        sections.finish(&mut Vec::new()).iter().map(|section| section.title).collect();
    let expected =
        [Title::Known('a'), Title::Missing, Title::Several, Title::Known('c'), Title::Missing];
    assert_eq!(titles, expected);
}

#[test]
fn two_columns_with_one_label_spoil_the_matrix() {
    let mut sections: Sections<'_, u32, ()> = Sections::new();
    sections.header(vec![(0, 0), (0, 2)], 1);
    sections.row(0, &words("0 1", is_gap), 2, LineEnd::Newline);
    let mut warnings = Vec::new();
    let section = sections.finish(&mut warnings).pop().unwrap();
    let checked = section.matrix.check(|cell| cell == "0", &mut warnings);
    assert_eq!(checked.labels().count(), 0);
    assert_eq!(checked.cells().count(), 0);
    assert_eq!(
        warnings[0].to_string(),
        "line 1: two columns have the same label; the matrix is left out"
    );
}

#[test]
fn an_excerpt_is_short() {
    assert_eq!(excerpt("  a b "), "a b");
    assert!(excerpt(&"\u{e4}".repeat(1000)).chars().count() < 110);
}
