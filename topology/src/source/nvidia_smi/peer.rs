//! `nvidia-smi topo -p2p`.

use crate::Observations;
use crate::source::{Format, SourceError};

/// Whether the text looks like it.
pub(in crate::source) fn recognizes(_text: &str) -> bool {
    false
}

/// Reads it.
pub(in crate::source) fn read(_text: &str) -> Result<Observations, SourceError> {
    Err(SourceError::new(Format::NvidiaSmiPeer, None, "not read yet"))
}
