//! The law for backends, against the stand-in driver: two GPUs that reach each other, one of them
//! small enough to be driven out of memory.

#[path = "support/stand_in.rs"]
mod stand_in;

use hopwise_backend_cuda::{CudaBackend, CudaOptions};
use stand_in::StandIn;

const MACHINE: &str = "
    gpu memory_mib=64
    gpu memory_mib=1024 capability=8.0
    peers all
";

fn backend() -> CudaBackend {
    StandIn::with_machine(MACHINE).backend(CudaOptions::new())
}

hopwise_core::conformance_suite!(backend);

/// A backend that lists nothing passes everything.
#[test]
fn the_stand_in_is_listed() {
    assert_eq!(backend().gpus().count(), 2);
}
