//! A directory of small files, as sysfs is one: live, recorded, or printed by `grep -r`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

mod archive;
#[cfg(test)]
mod tests;

/// Levels of directories, at most.
const MOST_DEPTH: usize = 24;

/// Entries of directories looked at, at most.
const MOST_ENTRIES: usize = 1_000_000;

/// Bytes of a file; the rest of a longer one is not read.
const MOST_FILE_BYTES: u64 = 64 * 1024;

/// Small text files by their path below a root, such as `nodes/1/properties`.
///
/// ```
/// use hopwise_topology::FileTree;
///
/// let tree = FileTree::from_grep("nodes/0/gpu_id:0\nnodes/1/name:gfx90a\n");
/// assert_eq!(tree.file("nodes/1/name"), Some("gfx90a"));
/// assert_eq!(tree.children("nodes").collect::<Vec<_>>(), ["0", "1"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileTree {
    files: BTreeMap<String, String>,
}

/// A directory cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {source}", path.display())]
pub struct FileTreeError {
    path: PathBuf,
    source: io::Error,
}

/// An entry of a directory, by its path below the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'p> {
    /// A file.
    File(&'p str),
    /// A directory.
    Directory(&'p str),
}

impl FileTree {
    /// Reads every file below `root` that is wanted by its path below the root, in directories that
    /// are wanted by theirs. A file that cannot be read is left out: sysfs has such files. Links to
    /// directories are not followed, but `root` itself may be one. Depth, entries and the length of
    /// a file are bounded.
    ///
    /// # Errors
    /// [`FileTreeError`] if `root` cannot be listed.
    pub fn read(root: &Path, wanted: impl Fn(Entry<'_>) -> bool) -> Result<Self, FileTreeError> {
        let error = |source| FileTreeError { path: root.to_owned(), source };
        fs::read_dir(root).map_err(error)?;
        let mut tree = Self::default();
        let mut entries_left = MOST_ENTRIES;
        tree.read_below(root, "", MOST_DEPTH, &mut entries_left, &wanted);
        Ok(tree)
    }

    fn read_below(
        &mut self,
        directory: &Path,
        prefix: &str,
        levels_left: usize,
        entries_left: &mut usize,
        wanted: &dyn Fn(Entry<'_>) -> bool,
    ) {
        let Ok(entries) = fs::read_dir(directory) else { return };
        for entry in entries.flatten() {
            if *entries_left == 0 {
                return;
            }
            *entries_left -= 1;
            let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else {
                continue;
            };
            let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
            if kind.is_dir() && levels_left > 0 && wanted(Entry::Directory(&path)) {
                self.read_below(&entry.path(), &path, levels_left - 1, entries_left, wanted);
            } else if kind.is_file()
                && wanted(Entry::File(&path))
                && let Ok(text) = read_file(&entry.path())
            {
                self.insert(path, text);
            }
        }
    }

    /// Reads what `grep -r` prints: `path:line`, the lines of one file one after the other. A path
    /// may begin with `./` or be absolute; lines without a colon are left out.
    pub fn from_grep(text: &str) -> Self {
        let mut tree = Self::default();
        for (path, line) in text.lines().filter_map(|line| line.split_once(':')) {
            let path = path.trim().trim_start_matches("./").trim_start_matches('/');
            let file = tree.files.entry(path.to_owned()).or_default();
            if !file.is_empty() {
                file.push('\n');
            }
            file.push_str(line);
        }
        tree
    }

    /// Reads the bytes of a tar archive, plain or compressed with gzip. Entries, the length of a
    /// file and all bytes together are bounded; links are left out.
    ///
    /// # Errors
    /// A message if the bytes are no such archive, or too many.
    pub fn from_archive(bytes: &[u8]) -> Result<Self, String> {
        archive::read(bytes)
    }

    /// Adds a file, whose path is below the root and has no leading slash.
    pub fn insert(&mut self, path: impl Into<String>, text: impl Into<String>) {
        self.files.insert(path.into(), text.into());
    }

    /// The text of a file, without white space at its ends.
    pub fn file(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(|text| text.trim())
    }

    /// All files with their paths, sorted by path.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.trim()))
    }

    /// The names of what is directly in a directory (`""` is the root), sorted, each once.
    pub fn children<'a>(&'a self, directory: &str) -> impl Iterator<Item = &'a str> {
        let prefix = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let start = prefix.clone();
        let mut last = None;
        self.files.range(start..).map_while(move |(path, _)| path.strip_prefix(&prefix)).filter_map(
            move |rest| {
                let name = rest.split('/').next()?;
                (last.replace(name) != Some(name)).then_some(name)
            },
        )
    }

    /// Whether there is no file.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The tree below a directory of this one.
    #[must_use]
    pub fn below(&self, directory: &str) -> Self {
        let prefix = format!("{directory}/");
        let files = self
            .files
            .range(prefix.clone()..)
            .map_while(|(path, text)| Some((path.strip_prefix(&prefix)?.to_owned(), text.clone())));
        Self { files: files.collect() }
    }
}

fn read_file(path: &Path) -> io::Result<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MOST_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
