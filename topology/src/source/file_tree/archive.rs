//! Archives of file trees.

use std::io::{self, Read};

use flate2::read::GzDecoder;

use super::{FileTree, MOST_ENTRIES, MOST_FILE_BYTES};

/// Bytes of an archive when unpacked, at most: a recorded sysfs has some megabytes.
const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// Reads a tar archive, plain or compressed with gzip.
pub(super) fn read(bytes: &[u8]) -> Result<FileTree, String> {
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return read_tar(GzDecoder::new(bytes));
    }
    read_tar(bytes)
}

fn read_tar(archive: impl Read) -> Result<FileTree, String> {
    let wrong = |error: io::Error| format!("not a whole tar archive: {error}; pack it again");
    let mut bounded = archive.take(MOST_BYTES);
    let mut tree = FileTree::default();
    {
        let mut archive = tar::Archive::new(&mut bounded);
        for entry in archive.entries().map_err(wrong)?.take(MOST_ENTRIES) {
            let mut entry = match entry {
                Ok(entry) => entry,
                Err(error) => return Err(too_long_or(&mut bounded, wrong(error))),
            };
            let Some(path) = entry.path().ok().and_then(|path| path.to_str().map(str::to_owned))
            else {
                continue;
            };
            if entry.header().entry_type().is_file() {
                let mut text = Vec::new();
                entry.by_ref().take(MOST_FILE_BYTES).read_to_end(&mut text).map_err(wrong)?;
                let path = path.trim_start_matches("./").trim_start_matches('/');
                tree.insert(path, String::from_utf8_lossy(&text));
            }
        }
    }
    if tree.is_empty() {
        return Err(too_long_or(&mut bounded, "the archive holds no files".to_owned()));
    }
    Ok(tree)
}

/// Says that the archive is too long, if that is what ended it.
fn too_long_or(bounded: &mut io::Take<impl Read>, other: String) -> String {
    if bounded.limit() > 0 {
        return other;
    }
    format!("more than {} MiB when unpacked; pack only what is needed", MOST_BYTES >> 20)
}
