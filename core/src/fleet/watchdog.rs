//! The watchdog: gives up steps that outlive their limit. It makes no driver call.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::runtime::Runtime;
use super::worker::DeviceRuntime;
use crate::device_info::Overrun;
use crate::error::DeviceError;

/// Looks at every worker until `stop` is dropped.
pub(crate) fn watch(runtime: &Arc<Runtime>, stop: &Receiver<()>) {
    let interval =
        (runtime.step_limit / 4).clamp(Duration::from_millis(1), Duration::from_millis(50));
    while stop.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
        for device in runtime.all_devices() {
            look_at(runtime, &device);
        }
    }
}

fn look_at(runtime: &Arc<Runtime>, device: &Arc<DeviceRuntime>) {
    let overdue = device.abandon_overdue(runtime.step_limit);
    let limit_ms = runtime.step_limit.as_millis();
    for kernels in overdue {
        let names = kernels.iter().map(|cell| cell.id.to_string()).collect::<Vec<_>>().join(", ");
        let cause = if kernels.is_empty() {
            format!("idle, it did not answer within {limit_ms} ms whether it is still there")
        } else {
            format!("a step of {names} ran longer than its limit of {limit_ms} ms")
        };
        match device.device.limits().overrun {
            Overrun::LosesDevice => {
                // The latch's listeners mark every kernel of every device that shares it.
                device.device.health().latch(DeviceError::Unresponsive { cause });
            }
            Overrun::LosesWorker => {
                for cell in &kernels {
                    runtime.lose_kernel(cell, device.index, &cause);
                }
                // Without a new thread the device has a worker less; the others go on.
                let _ = device.start_worker(runtime);
            }
        }
    }
}
