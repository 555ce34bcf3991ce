//! hwloc's XML, 1.x to 3.0.

use super::{Format, SourceError};
use crate::Observations;

/// Whether the text looks like it.
pub(super) fn recognizes(_text: &str) -> bool {
    false
}

/// Reads it.
pub(super) fn read(_text: &str) -> Result<Observations, SourceError> {
    Err(SourceError::new(Format::HwlocXml, None, "not read yet"))
}
