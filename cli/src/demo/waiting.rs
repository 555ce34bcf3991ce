//! Who waits for whom when the strips have come to a standstill.

use std::fmt;

use hopwise_core::programs::diffuse::Strip;
use serde::Serialize;

/// A kernel that can go no further until a row comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Waiting {
    /// Index of the strip.
    pub(crate) strip: u32,
    /// Iterations that it has finished: the number of the row that it waits for.
    pub(crate) finished: u32,
    /// Indices of the strips whose rows it waits for.
    pub(crate) on: Vec<u32>,
}
