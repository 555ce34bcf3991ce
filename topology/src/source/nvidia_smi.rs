//! What `nvidia-smi` prints about links.

mod affinity;
mod header;
mod matrix;
mod text;

pub(super) mod nvlink;
pub(super) mod peer;
pub(super) mod topo;
