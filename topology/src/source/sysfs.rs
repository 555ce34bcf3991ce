//! The PCI tree under a sysfs root.

use super::{FileTree, Format, SourceError};
use crate::Observations;

/// Whether the tree holds it.
pub(super) fn is_in(_tree: &FileTree) -> bool {
    false
}

/// Reads it.
pub(super) fn read_tree(_tree: &FileTree) -> Result<Observations, SourceError> {
    Err(SourceError::new(Format::Sysfs, None, "not read yet"))
}

/// Whether a file, by its path below the root of sysfs, is one that is read here.
pub(super) fn is_wanted(_path: &str) -> bool {
    false
}
