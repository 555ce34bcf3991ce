//! The law for backends a second time, under compute-sanitizer.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::arguments::{Arguments, Part};
use super::child;
use super::devices::Chosen;

/// The exit code that the sanitizer is told to use for what it finds.
const FOUND: i32 = 9;

/// Under the sanitizer everything takes many times as long: seconds for a topic, and for all.
const TOPIC_LIMIT_S: u64 = 7200;
const LIMIT: Duration = Duration::from_secs(6 * 3600);

/// What the sanitizer found.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Sanitized {
    is_clean: bool,
    words: String,
}

/// Runs the conformance part under the sanitizer. What that prints goes to standard error.
pub(super) fn run(sanitizer: &Path, arguments: &Arguments, chosen: &Chosen) -> Sanitized {
    let own = match child::own_path() {
        Ok(own) => own,
        Err(words) => return Sanitized { is_clean: false, words },
    };
    let code = FOUND.to_string();
    let mut words: Vec<OsString> = vec!["--error-exitcode".into(), code.into(), own];
    words.extend(child::words_of(Part::Conformance, arguments, chosen, TOPIC_LIMIT_S));
    match child::run(sanitizer, &words, LIMIT) {
        Ok(ended) => {
            // Its own lines stand on standard output, before and after the part's object.
            super::tell(&ended.stdout);
            Sanitized::of(ended.status.code(), &ended.status.to_string())
        }
        Err(reason) => Sanitized {
            is_clean: false,
            words: format!("{reason}; install compute-sanitizer, or leave out --sanitizer"),
        },
    }
}

impl Sanitized {
    fn of(code: Option<i32>, status: &str) -> Self {
        let (is_clean, words) = match code {
            Some(0) => (true, "no errors".to_owned()),
            Some(FOUND) => (false, "it found errors; standard error has them".to_owned()),
            _ => (false, format!("the conformance part failed under it ({status})")),
        };
        Self { is_clean, words }
    }

    /// Why it is not clean.
    pub(super) fn failure(&self) -> Option<String> {
        (!self.is_clean).then(|| format!("compute-sanitizer: {}", self.words))
    }
}

impl fmt::Display for Sanitized {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_run_that_ends_well_is_clean() {
        assert_eq!(Sanitized::of(Some(0), "0").failure(), None);
        for code in [Some(FOUND), Some(1), None] {
            assert!(Sanitized::of(code, "status").failure().is_some(), "{code:?}");
        }
    }
}
