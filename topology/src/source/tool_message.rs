//! What a tool prints where its output should be: that it is missing, or cannot reach its driver.

use super::matrix_text::excerpt;
use super::{Format, SourceError};

/// A message that people paste in place of an output.
pub(super) struct ToolMessage {
    /// What its line contains, all of it, in lower case.
    pub(super) parts: &'static [&'static str],
    /// What to do about it.
    pub(super) remedy: &'static str,
}

/// The first line that is one of the messages: its number from 1, its text, and the remedy.
fn find<'a>(text: &'a str, messages: &[ToolMessage]) -> Option<(usize, &'a str, &'static str)> {
    text.lines().zip(1..).find_map(|(line, number)| {
        let lower = line.to_ascii_lowercase();
        let is_this =
            |message: &&ToolMessage| message.parts.iter().all(|part| lower.contains(part));
        messages.iter().find(is_this).map(|message| (number, line, message.remedy))
    })
}

/// Whether there is such a line.
pub(super) fn is_in(text: &str, messages: &[ToolMessage]) -> bool {
    find(text, messages).is_some()
}

/// The error of a text in which there is nothing to read: the message in it, or else `remedy`.
pub(super) fn nothing_to_read(
    format: Format,
    text: &str,
    messages: &[ToolMessage],
    remedy: &str,
) -> SourceError {
    match find(text, messages) {
        Some((line, message, remedy)) => SourceError::new(
            format,
            line,
            format!("`{}` stands in place of an output; {remedy}", excerpt(message)),
        ),
        None => SourceError::new(format, None, format!("there is no topology in it; {remedy}")),
    }
}
