//! Devices for the coordinator's tests.

use std::sync::Arc;

use hopwise_core::{BackendKind, DeviceInfo, MultiGpuConfig, MultiGpuCoordinator};

/// A CUDA device of 16 GiB that can access peers.
pub(crate) fn gpu(index: usize) -> DeviceInfo {
    DeviceInfo::new(index, format!("gpu{index}"), BackendKind::Cuda)
        .with_memory(16 << 30)
        .with_compute_capability(8, 0)
        .with_pcie(4, 16)
        .with_peer_access(true)
}

/// A coordinator of devices 0, 1, ...
pub(crate) fn machine(devices: usize, config: MultiGpuConfig) -> Arc<MultiGpuCoordinator> {
    let coordinator = MultiGpuCoordinator::new(config);
    for index in 0..devices {
        coordinator.register_device(gpu(index)).expect("the index is free");
    }
    coordinator
}
