//! The law for backends with kernels that stay on the GPU, against the stand-in driver, which runs all
//! their threads at the same time.

#[path = "support/stand_in.rs"]
mod stand_in;

use hopwise_backend_cuda::{CudaBackend, CudaOptions, ResidentUse};
use stand_in::StandIn;

const MACHINE: &str = "
    gpu memory_mib=64
    gpu memory_mib=1024 capability=8.0
    peers all
";

fn backend() -> CudaBackend {
    let options = CudaOptions::new().with_resident_kernels(ResidentUse::WherePossible);
    StandIn::with_machine(MACHINE).backend(options)
}

hopwise_core::conformance_suite!(backend);

/// A backend that lists nothing passes everything.
#[test]
fn the_stand_in_is_listed() {
    assert_eq!(backend().gpus().count(), 2);
}
