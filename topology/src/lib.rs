//! The link graph of a multi-GPU machine: figures with provenance, routes, drawing.

/// A directed link.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuConnection;
