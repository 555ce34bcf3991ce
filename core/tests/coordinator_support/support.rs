//! What the coordinator's tests share: devices, and a time limit that turns a deadlock into a
//! failure.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

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

/// Runs a test that could hang. A hang is a failure; the thread is left behind.
pub(crate) fn within(limit: Duration, test: impl FnOnce() + Send + 'static) {
    let (done, finished) = channel();
    let runner = thread::spawn(move || {
        test();
        let _ = done.send(());
    });
    match finished.recv_timeout(limit) {
        Err(RecvTimeoutError::Timeout) => panic!("not finished after {limit:?}: a deadlock"),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => {
            if let Err(panic) = runner.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}
