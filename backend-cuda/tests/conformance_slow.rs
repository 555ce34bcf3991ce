//! The law for backends, against a stand-in driver whose streams lag behind the calls: what is read,
//! freed or used again before a stream has come to it is found here.

#[path = "support/stand_in.rs"]
mod stand_in;

use hopwise_backend_cuda::{CudaBackend, CudaOptions};
use stand_in::StandIn;

const MACHINE: &str = "
    gpu memory_mib=64 slow_us=100
    gpu memory_mib=1024 capability=8.0 slow_us=250
    peers all
";

fn backend() -> CudaBackend {
    StandIn::with_machine(MACHINE).backend(CudaOptions::new())
}

hopwise_core::conformance_suite!(backend);
