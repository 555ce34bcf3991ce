//! From a path or bytes to readings: directories, archives, and text in whatever encoding.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{FileTree, Format, Reading, SourceError, read_text, read_tree, wanted_in_sysfs};
use crate::FileTreeError;

#[cfg(test)]
mod tests;

/// Bytes of a file, at most. The text of a machine with 72 GPUs has some 100 KB.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// A path gives no readings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is a directory that cannot be listed.
    #[error(transparent)]
    Directory(#[from] FileTreeError),
    /// It holds nothing that can be read.
    #[error("{}: {source}", path.display())]
    Source {
        /// The path.
        path: PathBuf,
        /// What is wrong, and the remedy.
        source: SourceError,
    },
}

/// Reads a file or a directory by what it looks like, or as `format` says.
///
/// A directory is a recorded or live sysfs, or AMD's topology; a tar archive of one, plain or
/// compressed with gzip, will do.
///
/// # Errors
/// [`ReadError`], which names the path, and the line where there is one.
pub fn read_path(path: &Path, format: Option<Format>) -> Result<Vec<Reading>, ReadError> {
    let refused = |source| ReadError::Source { path: path.to_owned(), source };
    let failed = |source| ReadError::Io { path: path.to_owned(), source };
    if fs::metadata(path).map_err(failed)?.is_dir() {
        let tree = FileTree::read(path, wanted_in_sysfs)?;
        return read_tree(&tree, format).map_err(refused);
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    read_bytes(&bytes, format).map_err(refused)
}

/// Reads the bytes of a text or an archive by what they look like, or as `format` says.
///
/// Text may be UTF-8 or UTF-16, with a byte order mark or without.
///
/// # Errors
/// [`SourceError`] if there is nothing to read in them, or too many.
pub fn read_bytes(bytes: &[u8], format: Option<Format>) -> Result<Vec<Reading>, SourceError> {
    if bytes.len() as u64 > MOST_BYTES {
        let reason = format!("more than {} MiB; no topology is so long", MOST_BYTES >> 20);
        return Err(SourceError::new(format, None, reason));
    }
    if is_archive(bytes) {
        let tree = FileTree::from_archive(bytes)
            .map_err(|error| SourceError::new(format, None, error.to_string()))?;
        return read_tree(&tree, format);
    }
    read_text(&decode(bytes), format)
}

/// Whether the bytes begin as gzip does, or as a tar archive's first entry.
fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b]) || bytes.get(257..262) == Some(b"ustar")
}

/// The text, with replacement characters for what is none. Windows writes UTF-16 when the output
/// of a command is redirected.
fn decode(bytes: &[u8]) -> String {
    let zeros = |parity| {
        let places = bytes.iter().skip(parity).step_by(2).take(64);
        !bytes.is_empty() && places.clone().filter(|&&byte| byte == 0).count() * 2 > places.count()
    };
    let wide = |from: &[u8], unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = from.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ if zeros(1) && !zeros(0) => wide(bytes, u16::from_le_bytes),
        _ if zeros(0) && !zeros(1) => wide(bytes, u16::from_be_bytes),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}
