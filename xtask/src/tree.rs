//! The files that tidy looks at, as git lists them.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::command::Command;

#[cfg(test)]
mod tests;

/// Text files by their path from the root, with `/` between the parts.
///
/// Held are all files that are tracked or could be (new and not ignored). Files that are not UTF-8
/// have no text here: pictures and the like.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads the working tree.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        // A checkout may belong to someone else than the one who tests, as in a container.
        let trust = format!("safe.directory={}", root.display());
        let arguments = ["-c", &trust, "ls-files", "-z", "-co", "--exclude-standard"];
        let listing = Command::new("git", &arguments, root)
            .output()
            .map_err(|error| format!("{error}; tidy looks at the files that git lists"))?;
        let mut files = BTreeMap::new();
        for path in listing.split('\0').filter(|path| !path.is_empty()) {
            let file = root.join(path);
            match fs::read(&file) {
                Ok(bytes) => {
                    if let Ok(text) = String::from_utf8(bytes) {
                        files.insert(path.to_owned(), text);
                    }
                }
                // Listed, but deleted and not committed yet; or a folder: a nested repository.
                Err(error)
                    if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory) => {}
                Err(error) => return Err(format!("cannot read {}: {error}", file.display())),
            }
        }
        Ok(Self { files })
    }

    /// A tree that exists nowhere, for tests.
    #[cfg(test)]
    pub(crate) fn made_up(files: &[(&str, &str)]) -> Self {
        let owned = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
        Self { files: files.iter().map(owned).collect() }
    }

    /// How many files there are.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// The text of one file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// All files whose name ends with a point and one of `endings`.
    pub(crate) fn with_ending(&self, endings: &[&str]) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .filter(move |(path, _)| {
                let ending = path.rsplit_once('.').map(|(_, ending)| ending);
                ending.is_some_and(|ending| endings.contains(&ending))
            })
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// All Rust sources.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.with_ending(&["rs"])
    }

    /// The manifests of the members: `FOLDER/Cargo.toml` for each folder at the top.
    pub(crate) fn manifests(&self) -> impl Iterator<Item = (&str, &str)> {
        self.with_ending(&["toml"])
            .filter(|(path, _)| path.split('/').skip(1).collect::<Vec<_>>() == ["Cargo.toml"])
    }
}
