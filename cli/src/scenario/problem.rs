//! What is wrong with a scenario, and where.

use std::ops::Range;
use std::path::Path;

use toml::Spanned;

/// Something wrong, at a place in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Bytes of the text; none when it concerns the whole.
    span: Option<Range<usize>>,
    message: String,
}

impl Problem {
    /// A problem with a value.
    pub(crate) fn at<T>(place: &Spanned<T>, message: impl Into<String>) -> Self {
        Self { span: Some(place.span()), message: message.into() }
    }

    /// A problem with the scenario as a whole.
    pub(crate) fn of_whole(message: impl Into<String>) -> Self {
        Self { span: None, message: message.into() }
    }

    /// The message with file and line, and what is written there: the key is in it.
    pub(crate) fn describe(&self, path: &Path, text: &str) -> String {
        let (file, message) = (path.display(), &self.message);
        let Some(start) = self.span.as_ref().map(|span| text.floor_char_boundary(span.start))
        else {
            return format!("{file}: {message}");
        };
        let line = 1 + text[..start].matches('\n').count();
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let written = text[line_start..].lines().next().unwrap_or("").trim();
        format!("{file}, line {line}, `{written}`: {message}")
    }
}

impl From<toml::de::Error> for Problem {
    fn from(error: toml::de::Error) -> Self {
        Self { span: error.span(), message: error.message().trim().replace('\n', ", ") }
    }
}
