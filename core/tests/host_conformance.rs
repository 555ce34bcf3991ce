//! Host devices obey the law for backends, and so does the fault-injecting wrapper without faults.

use hopwise_core::host::{HostBackend, HostOptions};

fn host() -> HostBackend {
    HostBackend::new(HostOptions::new(1).with_memory_bytes(16 << 20).with_device(2, 4 << 20))
}

mod plain {
    hopwise_core::conformance_suite!(super::host);
}

mod wrapped {
    use std::sync::Arc;

    use hopwise_core::fault::{FaultPlan, FaultyBackend};

    hopwise_core::conformance_suite!(|| FaultyBackend::new(
        Arc::new(super::host()),
        FaultPlan::new()
    ));
}
