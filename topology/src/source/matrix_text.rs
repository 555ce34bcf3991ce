//! Text that tools print for people: its lines, their words, and which words of a row stand under
//! which column of a matrix.

use std::borrow::Cow;

pub(super) use matrix::Row;
pub(super) use section::{Section, Sections, Title};

#[cfg(test)]
pub(super) mod damage;
mod matrix;
mod section;
#[cfg(test)]
mod tests;

/// A line without terminal escapes.
pub(super) struct TextLine<'a> {
    /// From 1.
    pub(super) number: usize,
    pub(super) text: Cow<'a, str>,
    pub(super) end: LineEnd,
}

/// How a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineEnd {
    /// Another line follows, or could.
    Newline,
    /// The text ends here, after white space: the line may be short.
    Gap,
    /// The text ends here, in or after a word: the word may be short, too.
    Word,
}

/// The lines of a text.
pub(super) fn lines(text: &str) -> Vec<TextLine<'_>> {
    let mut lines: Vec<TextLine<'_>> = text
        .lines()
        .zip(1..)
        .map(|(line, number)| TextLine { number, text: plain(line), end: LineEnd::Newline })
        .collect();
    if let (false, Some(last)) = (text.ends_with('\n'), lines.last_mut()) {
        let ends_in_gap = last.text.ends_with(char::is_whitespace);
        last.end = if ends_in_gap { LineEnd::Gap } else { LineEnd::Word };
    }
    lines
}

/// The line without the escapes by which terminals underline and colour.
fn plain(line: &str) -> Cow<'_, str> {
    const ESCAPE: char = '\u{1b}';
    if !line.contains(ESCAPE) {
        return Cow::Borrowed(line);
    }
    let mut kept = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find(ESCAPE) {
        kept.push_str(&rest[..start]);
        rest = &rest[start + ESCAPE.len_utf8()..];
        if let Some(sequence) = rest.strip_prefix('[') {
            let end = sequence.find(|c| ('@'..='~').contains(&c));
            rest = end.map_or("", |end| &sequence[end + 1..]);
        }
    }
    kept.push_str(rest);
    Cow::Owned(kept)
}

/// A word of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    /// How many characters stand before it.
    pub(super) column: usize,
}

/// What stands between gaps.
pub(super) fn words(text: &str, is_gap: impl Fn(char) -> bool) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut start = None;
    for (column, (position, character)) in text.char_indices().enumerate() {
        match (is_gap(character), start) {
            (false, None) => start = Some((position, column)),
            (true, Some((from, column))) => {
                words.push(Word { text: &text[from..position], column });
                start = None;
            }
            _ => {}
        }
    }
    if let Some((from, column)) = start {
        words.push(Word { text: &text[from..], column });
    }
    words
}

/// The words of a row that certainly stand under the first columns, one under each, and are whole.
///
/// A row with a word for each column needs no more. In any other row a cell is missing, or two
/// were glued, or one was split: only words that start where their column starts are certain, and
/// the last of those is not, since it may be what was glued or split.
pub(super) fn certain<'a>(columns: &[usize], words: &[Word<'a>], end: LineEnd) -> Vec<&'a str> {
    let mut count = words.len();
    if words.len() != columns.len() {
        let aligned =
            words.iter().zip(columns).take_while(|(word, column)| word.column == **column).count();
        count = match (aligned == words.len(), end) {
            (true, LineEnd::Newline) => 0,
            (true, _) => aligned,
            (false, _) => aligned.saturating_sub(1),
        };
    }
    if end == LineEnd::Word {
        count = count.min(words.len().saturating_sub(1));
    }
    words[..count].iter().map(|word| word.text).collect()
}

/// What is quoted in a message: the start of a text.
pub(super) fn excerpt(text: &str) -> String {
    const MOST_CHARACTERS: usize = 100;
    let text = text.trim();
    let mut shown: String = text.chars().take(MOST_CHARACTERS).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    shown
}
