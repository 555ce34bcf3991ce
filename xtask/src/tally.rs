//! Counting tests from what their runner prints.

use std::fmt;
use std::ops::AddAssign;

#[cfg(test)]
mod tests;

/// How many tests ran, as their runners counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

impl Tally {
    /// Adds up every closing line in `text`: one of nextest, one of each libtest binary.
    pub(crate) fn read(text: &str) -> Self {
        let mut tally = Self::default();
        for line in text.lines() {
            let line = without_colour(line);
            let line = line.trim_start();
            if line.starts_with("test result: ") || line.starts_with("Summary [") {
                tally.passed += number_before(line, "passed");
                tally.failed += number_before(line, "failed") + number_before(line, "timed");
            }
        }
        tally
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// The number in front of a word, as in `12 passed`; 0 where the word does not occur.
fn number_before(line: &str, word: &str) -> usize {
    let words: Vec<&str> =
        line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.windows(2).find(|pair| pair[1] == word).and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

/// The line without the terminal's colour codes: escape, bracket, numbers, `m`.
fn without_colour(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find('\u{1b}') {
        plain.push_str(&rest[..start]);
        rest = rest[start..].split_once('m').map_or("", |(_, after)| after);
    }
    plain + rest
}
