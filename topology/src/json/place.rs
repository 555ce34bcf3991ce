//! Where an entry stands in the document, for errors that name line and column.

use std::fmt::Display;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::object;
use crate::TopologyError;

/// An entry, still as text, in its document.
pub(super) struct Place<'a> {
    entry: &'a str,
    document: &'a str,
}

impl<'a> Place<'a> {
    /// The place of an entry that was borrowed from `document`.
    pub(super) fn of(entry: &'a RawValue, document: &'a str) -> Self {
        Self { entry: entry.get(), document }
    }

    /// The whole document as one entry.
    pub(super) const fn whole(document: &'a str) -> Self {
        Self { entry: document, document }
    }

    /// Reads the entry.
    pub(super) fn read<T: Deserialize<'a>>(&self) -> Result<T, TopologyError> {
        serde_json::from_str(self.entry).map_err(|error| self.explain(&error))
    }

    /// Reads the entry, which must be an object.
    pub(super) fn read_object<T: Deserialize<'a>>(&self) -> Result<T, TopologyError> {
        let mut json = serde_json::Deserializer::from_str(self.entry);
        object::deserialize(&mut json)
            .and_then(|value| json.end().map(|()| value))
            .map_err(|error| self.explain(&error))
    }

    /// The error with its place in the document rather than in the entry.
    fn explain(&self, error: &serde_json::Error) -> TopologyError {
        let (line, column) = self.line_and_column();
        let before = if error.line() == 1 { column - 1 } else { 0 };
        TopologyError::Json {
            line: line + error.line() - 1,
            column: before + error.column(),
            reason: reason(error),
        }
    }

    /// The error that this entry cannot stand.
    pub(super) fn refuse(&self, reason: impl Display) -> TopologyError {
        let (line, column) = self.line_and_column();
        TopologyError::Json { line, column, reason: reason.to_string() }
    }

    /// Where the entry begins, both from 1. Scans the document, so only an error asks.
    fn line_and_column(&self) -> (usize, usize) {
        let offset = self.entry.as_ptr().addr() - self.document.as_ptr().addr();
        let before = &self.document[..offset];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = 1 + before.bytes().filter(|&byte| byte == b'\n').count();
        (line, 1 + offset - line_start)
    }
}

/// What is wrong and what to do, without the position that `serde_json` puts at the end.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&position).unwrap_or(&text);
    if text.contains(';') {
        text.to_owned()
    } else {
        format!("{text}; see docs/topology-json.md for the format")
    }
}
