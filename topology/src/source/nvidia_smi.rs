//! What `nvidia-smi` prints about links.

pub(super) mod nvlink;
pub(super) mod peer;
pub(super) mod topo;
