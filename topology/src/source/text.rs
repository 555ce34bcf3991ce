//! Lines as people paste them.

/// A line without the codes that make a terminal underline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'t> {
    pub(super) text: &'t str,
    /// From 1.
    pub(super) number: usize,
    /// Whether the text ends within it.
    pub(super) is_cut: bool,
}

/// The lines of a text.
pub(super) fn lines(text: &str) -> Vec<Line<'_>> {
    let ends_well = text.ends_with('\n');
    let count = text.lines().count();
    let line = |(at, text)| Line { text, number: at + 1, is_cut: at + 1 == count && !ends_well };
    text.lines().enumerate().map(line).collect()
}

/// The text without escape sequences of terminals.
pub(super) fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\u{1b}' {
            plain.push(letter);
            continue;
        }
        if letters.next_if_eq(&'[').is_some() {
            while letters.next_if(|next| matches!(next, '0'..='9' | ';' | '?')).is_some() {}
            letters.next_if(char::is_ascii_alphabetic);
        }
    }
    plain
}
