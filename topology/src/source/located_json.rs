//! JSON whose values know their line.
//!
//! A value is looked into one level at a time, so depth costs no stack. Objects keep the order
//! and the repetition of their keys.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

#[cfg(test)]
mod tests;

/// A text with JSON in it: behind a shell prompt, between what other commands printed.
#[derive(Debug)]
pub(super) struct Document<'a> {
    text: Cow<'a, str>,
    /// Where the first value starts.
    start: Option<usize>,
    newlines: Vec<usize>,
}

/// A document ends or breaks where it must not.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct JsonError {
    /// From 1.
    pub(super) line: usize,
    pub(super) reason: String,
}

impl<'a> Document<'a> {
    /// Commas before a closing bracket are overlooked: people leave them when they shorten a text.
    pub(super) fn new(text: &'a str) -> Self {
        let newlines = text.bytes().zip(0..).filter(|&(byte, _)| byte == b'\n');
        let newlines = newlines.map(|(_, position)| position).collect();
        let start = start(text);
        Self {
            text: start.map_or(Cow::Borrowed(text), |start| mended(text, start)),
            start,
            newlines,
        }
    }

    /// Whether there is a line that begins as JSON does.
    pub(super) fn has_start(&self) -> bool {
        self.start.is_some()
    }

    /// The values one after the other, from the first line that begins with one up to other text.
    /// The error is about what follows the last value.
    pub(super) fn values(&self) -> (Vec<Value<'_>>, Option<JsonError>) {
        let mut values = Vec::new();
        let Some(start) = self.start else { return (values, None) };
        let text = &self.text[start..];
        let mut stream = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
        while text[stream.byte_offset()..].trim_start().starts_with(['{', '[']) {
            match stream.next() {
                Some(Ok(raw)) => values.push(Value { json: raw.get(), document: self }),
                Some(Err(error)) => {
                    let line = self.line_at(start) + error.line().max(1) - 1;
                    return (values, Some(JsonError { line, reason: reason(&error) }));
                }
                None => break,
            }
        }
        (values, None)
    }

    fn line_at(&self, position: usize) -> usize {
        1 + self.newlines.partition_point(|&newline| newline < position)
    }
}

/// The first line that begins as a value does: with `{`, or with `[` and then another value. A
/// prompt such as `[root@node ~]#` is none.
fn start(text: &str) -> Option<usize> {
    let mut position = 0;
    text.split_inclusive('\n').find_map(|line| {
        let start = position + line.len() - line.trim_start().len();
        position += line.len();
        let text = &text[start..];
        let is_list = text
            .strip_prefix('[')
            .is_some_and(|rest| rest.trim_start().starts_with(['{', '[', ']', '"']));
        (text.starts_with('{') || is_list).then_some(start)
    })
}

/// The text with blanks for commas before closing brackets.
fn mended(text: &str, start: usize) -> Cow<'_, str> {
    let mut surplus = Vec::new();
    let (mut comma, mut is_in_string, mut is_escaped) = (None, false, false);
    for (position, byte) in text.bytes().enumerate().skip(start) {
        if is_in_string {
            is_in_string = is_escaped || byte != b'"';
            is_escaped = byte == b'\\' && !is_escaped;
            continue;
        }
        match byte {
            b',' => comma = Some(position),
            b'}' | b']' => surplus.extend(comma.take()),
            _ if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        is_in_string = byte == b'"';
    }
    if surplus.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut mended = text.to_owned();
    for position in surplus {
        mended.replace_range(position..=position, " ");
    }
    Cow::Owned(mended)
}

fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&position).unwrap_or(&text).to_owned()
}

/// A value in a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value<'a> {
    json: &'a str,
    document: &'a Document<'a>,
}

impl<'a> Value<'a> {
    /// Its line, from 1.
    pub(super) fn line(&self) -> usize {
        self.document.line_at(self.json.as_ptr().addr() - self.document.text.as_ptr().addr())
    }

    /// The entries of an object, in order.
    pub(super) fn object(&self) -> Option<Vec<(Cow<'a, str>, Self)>> {
        let Entries(entries) = serde_json::from_str(self.json).ok()?;
        Some(entries.into_iter().map(|(key, raw)| (key, self.inner(raw))).collect())
    }

    /// The items of a list.
    pub(super) fn list(&self) -> Option<Vec<Self>> {
        let items: Vec<&RawValue> = serde_json::from_str(self.json).ok()?;
        Some(items.into_iter().map(|raw| self.inner(raw)).collect())
    }

    /// A string as such; a number, `true` and `false` as they are written. Tools write numbers in
    /// either way.
    pub(super) fn text(&self) -> Option<Cow<'a, str>> {
        match self.json.as_bytes().first()? {
            b'"' => serde_json::from_str(self.json).ok().map(|Text(text)| text),
            b'{' | b'[' | b'n' => None,
            _ => Some(Cow::Borrowed(self.json)),
        }
    }

    fn inner(&self, raw: &'a RawValue) -> Self {
        Self { json: raw.get(), document: self.document }
    }
}

/// A string, borrowed where it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The entries of an object, repeated keys included.
struct Entries<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some((Text(key), value)) = map.next_entry()? {
            entries.push((key, value));
        }
        Ok(Entries(entries))
    }
}
