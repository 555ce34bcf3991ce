//! Names of kernels and endpoints.

use toml::Spanned;

use super::Problems;

/// Longest name, as long as a kernel's id shows whole.
const LONGEST: usize = 20;

/// The names of one sort, in the order of their indices.
#[derive(Debug)]
pub(super) struct Names {
    sort: &'static str,
    names: Vec<String>,
}

impl Names {
    /// Checks that names can be told apart and written before a dot.
    pub(super) fn of<'a>(
        sort: &'static str,
        given: impl Iterator<Item = &'a Spanned<String>>,
        problems: &mut Problems,
    ) -> Self {
        let mut names: Vec<String> = Vec::new();
        for given in given {
            let name = given.get_ref();
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
            if name.is_empty() || name.len() > LONGEST || !name.chars().all(is_plain) {
                problems.add(
                    given,
                    format!(
                        "a {sort}'s name has 1 to {LONGEST} letters, digits, hyphens or underscores"
                    ),
                );
            } else if names.contains(name) {
                problems.add(given, format!("there is another {sort} called `{name}`; rename one"));
            }
            names.push(name.clone());
        }
        Self { sort, names }
    }

    /// The index of the one called so; a problem when there is none.
    pub(super) fn find(&self, given: &Spanned<String>, problems: &mut Problems) -> Option<usize> {
        let found = self.position(given.get_ref());
        if found.is_none() {
            problems.add(given, self.unknown(given.get_ref()));
        }
        found
    }

    /// The index of the one called so.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// Says that there is none called so, and which there are.
    pub(super) fn unknown(&self, name: &str) -> String {
        let sort = self.sort;
        let known = if self.names.is_empty() {
            format!("the scenario has no {sort}s")
        } else {
            format!("the {sort}s are {}", self.names.join(", "))
        };
        format!("no {sort} is called `{name}`; {known}")
    }
}
