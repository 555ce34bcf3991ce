//! A fault at every device call of a migration between an adapter and the host, one at a time.

#[path = "support/scene.rs"]
mod scene;

use std::sync::Arc;

use hopwise_backend_wgpu::{WgpuBackend, WgpuOptions};
use hopwise_core::backend::Backend;
use hopwise_core::error::DeviceError;
use hopwise_core::fault::FaultAction;
use hopwise_core::host::{HostBackend, HostOptions};
use scene::{Opened, at_every_call};

fn adapter_and_host() -> Option<[Opened; 2]> {
    let adapter = WgpuBackend::new(WgpuOptions::new().with_memory_bytes(64 << 20));
    adapter.enumerate().ok()?;
    let host = HostBackend::new(HostOptions::new(1).with_workers(1));
    Some([(Arc::new(adapter), 0), (Arc::new(host), 0)])
}

#[test]
fn a_failed_call_leaves_the_kernel_running() {
    let busy = || FaultAction::Fail(DeviceError::Driver { message: "busy".to_owned() });
    at_every_call(&adapter_and_host, &busy, false);
}

#[test]
fn a_corrupted_transfer_is_never_taken_for_the_state() {
    at_every_call(&adapter_and_host, &|| FaultAction::Corrupt, false);
}

#[test]
fn a_loss_of_the_target_leaves_the_kernel_running_one_of_the_source_leaves_it_lost() {
    let lose = || FaultAction::Lose { cause: "pulled out".to_owned() };
    at_every_call(&adapter_and_host, &lose, true);
}
