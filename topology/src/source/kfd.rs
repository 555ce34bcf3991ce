//! AMD's kernel driver: `/sys/class/kfd/kfd/topology`.

use super::{FileTree, Format, SourceError};
use crate::Observations;

/// Whether the tree holds it.
pub(super) fn is_in(_tree: &FileTree) -> bool {
    false
}

/// Reads it.
pub(super) fn read_tree(_tree: &FileTree) -> Result<Observations, SourceError> {
    Err(SourceError::new(Format::Kfd, None, "not read yet"))
}

/// Whether the text looks like it, printed by `grep -r`.
pub(super) fn recognizes(_text: &str) -> bool {
    false
}

/// Reads it from what `grep -r` prints.
pub(super) fn read_text(text: &str) -> Result<Observations, SourceError> {
    read_tree(&FileTree::from_grep(text))
}

/// Whether a file, by its path below the root of sysfs, is one that is read here.
pub(super) fn is_wanted(_path: &str) -> bool {
    false
}
