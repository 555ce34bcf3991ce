//! Rust source split into code and comments, line by line, with the text of literals blanked out.
//!
//! Enough of the lexical grammar to tell the three apart; nothing is parsed.

#[cfg(test)]
mod tests;

/// The code and the comments of one file. Both have the lines and columns of the file; what belongs
/// to neither is blank.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) code: String,
    pub(crate) comments: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Code,
    Comment,
    Literal,
}

impl Source {
    pub(crate) fn split(text: &str) -> Self {
        let mut lexer = Lexer { text, position: 0, parts: Vec::with_capacity(text.len()) };
        while lexer.position < text.len() {
            lexer.next();
        }
        let keep = |part| blank(text, |index| lexer.parts[index] == part);
        Self { code: keep(Part::Code), comments: keep(Part::Comment) }
    }

    /// The identifiers and key words of the code, in order.
    pub(crate) fn identifiers(&self) -> impl Iterator<Item = Identifier<'_>> {
        let code = self.code.as_str();
        let (mut position, mut line) = (0, 1);
        let words = std::iter::from_fn(move || {
            let start = position + code[position..].find(is_part_of_word)?;
            let length = code[start..].find(|c| !is_part_of_word(c));
            line += line_at(&code[position..start], start - position) - 1;
            position = length.map_or(code.len(), |length| start + length);
            let after = code[position..].trim_start();
            Some(Identifier { name: &code[start..position], line, after })
        });
        words.filter(|word| !word.name.starts_with(|c: char| c.is_numeric()))
    }

    /// The attributes `#[...]` and `#![...]` of the code: line and what is between the brackets.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (usize, &str)> {
        let code = self.code.as_str();
        code.match_indices('#').filter_map(move |(start, _)| {
            let rest = code[start + 1..].trim_start_matches('!');
            let inside = rest.strip_prefix('[')?;
            let mut depth = 1_usize;
            let end = inside.find(|c| {
                match c {
                    '[' => depth += 1,
                    ']' => depth -= 1,
                    _ => {}
                }
                depth == 0
            })?;
            Some((line_at(code, start), &inside[..end]))
        })
    }
}

/// A name in the code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identifier<'a> {
    pub(crate) name: &'a str,
    pub(crate) line: usize,
    /// The code behind it, from the first character that is not blank.
    pub(crate) after: &'a str,
}

/// Whether a character can be within a word: a name or a number.
pub(crate) fn is_part_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The number of the line, from 1, that holds the byte at `position`.
pub(crate) fn line_at(text: &str, position: usize) -> usize {
    1 + text[..position].bytes().filter(|&byte| byte == b'\n').count()
}

/// The text with a blank for every byte that is not kept; line ends stay.
fn blank(text: &str, keep: impl Fn(usize) -> bool) -> String {
    let kept = text.bytes().enumerate().map(|(index, byte)| match byte {
        b'\n' => b'\n',
        byte if keep(index) => byte,
        _ => b' ',
    });
    // Parts begin and end beside ASCII, so no character is cut in two.
    String::from_utf8(kept.collect()).expect("whole characters are kept or blanked")
}

struct Lexer<'a> {
    text: &'a str,
    position: usize,
    /// What each byte before `position` belongs to.
    parts: Vec<Part>,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.position..]
    }

    fn take(&mut self, bytes: usize, part: Part) {
        self.position = (self.position + bytes).min(self.text.len());
        self.parts.resize(self.position, part);
    }

    fn next(&mut self) {
        let rest = self.rest();
        let first = rest.chars().next().expect("the lexer stops at the end");
        if rest.starts_with("//") {
            self.take(rest.find('\n').unwrap_or(rest.len()), Part::Comment);
        } else if rest.starts_with("/*") {
            self.take(block_comment_length(rest), Part::Comment);
        } else if first == '"' {
            self.literal(string_length(rest));
        } else if first == '\'' {
            match character_length(rest) {
                Some(length) => self.literal(length),
                None => self.take(1, Part::Code), // a lifetime
            }
        } else if is_part_of_word(first) {
            let word = rest.find(|c| !is_part_of_word(c)).unwrap_or(rest.len());
            let raw = raw_string_length(&rest[..word], &rest[word..]);
            self.take(word, Part::Code);
            if let Some(length) = raw {
                self.literal(length);
            }
        } else {
            self.take(first.len_utf8(), Part::Code);
        }
    }

    /// A literal keeps its quotes as code, so that what it is an argument of can be seen.
    fn literal(&mut self, length: usize) {
        let is_closed =
            length > 1 && matches!(self.rest().as_bytes()[length - 1], b'"' | b'\'' | b'#');
        self.take(1, Part::Code);
        self.take(length.saturating_sub(2), Part::Literal);
        self.take(1, if is_closed { Part::Code } else { Part::Literal });
    }
}

/// Block comments nest.
fn block_comment_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut depth = 0_usize;
    let mut index = 0;
    while index < bytes.len() {
        match bytes.get(index..index + 2) {
            Some(b"/*") => (depth, index) = (depth + 1, index + 2),
            Some(b"*/") => (depth, index) = (depth - 1, index + 2),
            _ => index += 1,
        }
        if depth == 0 {
            return index;
        }
    }
    rest.len()
}

/// The length with both quotes of a literal that `quote` ends.
fn quoted_length(rest: &str, quote: char) -> Option<usize> {
    let mut is_escaped = true; // the first quote ends nothing
    for (index, c) in rest.char_indices() {
        if is_escaped {
            is_escaped = false;
        } else if c == '\\' {
            is_escaped = true;
        } else if c == quote {
            return Some(index + 1);
        }
    }
    None
}

fn string_length(rest: &str) -> usize {
    quoted_length(rest, '"').unwrap_or(rest.len())
}

/// `None` for a lifetime or a label.
fn character_length(rest: &str) -> Option<usize> {
    let mut characters = rest.chars().skip(1);
    let is_character = characters.next() == Some('\\') || characters.next() == Some('\'');
    is_character.then(|| quoted_length(rest, '\'')).flatten()
}

/// The length of a raw string's hashes, quotes and text, when `word` is its prefix.
fn raw_string_length(word: &str, after: &str) -> Option<usize> {
    if !["r", "br", "cr"].contains(&word) {
        return None;
    }
    let hashes = after.bytes().take_while(|&byte| byte == b'#').count();
    let text = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(text.find(&end).map_or(after.len(), |length| hashes + 1 + length + end.len()))
}
