//! What `nvidia-smi` prints about links.

mod affinity;
mod complaint;
mod header;
mod matrix;

pub(super) mod nvlink;
pub(super) mod peer;
pub(super) mod topo;
