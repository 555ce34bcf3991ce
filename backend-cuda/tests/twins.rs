//! The CUDA C of every shipped program, compiled as C++ and run by the stand-in, against its host twin:
//! they agree in every word of state, every message, every flag and every fault.

#[path = "support/stand_in.rs"]
mod stand_in;

use hopwise_backend_cuda::CudaOptions;
use stand_in::StandIn;

const MACHINE: &str = "
    gpu memory_mib=1024
";

hopwise_core::twins_suite!(|| StandIn::with_machine(MACHINE).backend(CudaOptions::new()));

/// A backend that lists nothing passes everything.
#[test]
fn the_stand_in_is_listed() {
    assert_eq!(StandIn::with_machine(MACHINE).backend(CudaOptions::new()).gpus().count(), 1);
}

mod resident {
    //! The same with kernels that stay on the GPU.

    use hopwise_backend_cuda::{CudaBackend, ResidentUse};

    use super::{CudaOptions, MACHINE, StandIn};

    fn backend() -> CudaBackend {
        let options = CudaOptions::new().with_resident_kernels(ResidentUse::WherePossible);
        StandIn::with_machine(MACHINE).backend(options)
    }

    hopwise_core::twins_suite!(backend);
}
