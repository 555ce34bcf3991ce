//! Where to put a kernel that talks to another one.

use std::sync::Arc;

use hopwise_topology::RouteTable;

use super::{CoordinatorError, LaunchOptions, MultiGpuCoordinator, Refusal, Result};
use crate::id::KernelId;

/// Size of the message that routes are compared for, in bytes.
const MESSAGE_BYTES: u64 = 4096;

/// What a message costs between two kernels of one device, in microseconds: about a queue operation
/// in host memory. It only keeps a load on the source device from counting for nothing.
const LOCAL_US: f64 = 1.0;

impl MultiGpuCoordinator {
    /// The best device for a new kernel that exchanges messages with `source_kernel`.
    ///
    /// The source's own device is a candidate like any other, and the devices that selection refuses
    /// are refused here. Each candidate costs the time of a message of 4 KiB over the best route
    /// that can really be taken, plus 1 us for handing it over, divided by the free share of the
    /// device: a device that is nearly full must be much nearer to win. A candidate whose time is
    /// unknown comes after all others. Costs O(devices).
    ///
    /// # Errors
    ///
    /// [`CoordinatorError::UnknownKernel`]; [`CoordinatorError::NoDevice`] with a reason for every
    /// device.
    pub fn select_device_for_k2k(&self, source_kernel: &KernelId) -> Result<usize> {
        let source = self
            .get_kernel_device(source_kernel)
            .ok_or(CoordinatorError::UnknownKernel { kernel: *source_kernel })?;
        let routes = self.routes();
        let options = LaunchOptions::default();
        let wish = self.wish(&options);
        let mut refusals = Vec::new();
        let mut best: Option<(bool, f64, usize)> = None;
        for slot in self.registry.table().iter() {
            let Some(view) = slot.view() else { continue };
            if let Some(reason) = wish.refuse(slot, view) {
                refusals.push(Refusal { device: slot.index, reason });
                continue;
            }
            let free = free_share(view.kernels + view.reserved, slot.capacity);
            let time_us = message_time_us(&routes, source, slot.index);
            let cost = (LOCAL_US + time_us.unwrap_or(0.0)) / free;
            let candidate = (time_us.is_none(), cost, slot.index);
            if best.is_none_or(|best| is_better(candidate, best)) {
                best = Some(candidate);
            }
        }
        best.map(|(.., index)| index).ok_or(CoordinatorError::NoDevice { refusals })
    }

    /// The routes of the present topology.
    pub(crate) fn routes(&self) -> Arc<RouteTable> {
        Arc::clone(&self.topology_view().routes)
    }
}

fn message_time_us(routes: &RouteTable, from: usize, to: usize) -> Option<f64> {
    if from == to {
        return Some(0.0);
    }
    routes.route(from, to, MESSAGE_BYTES)?.time_us(MESSAGE_BYTES)
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn free_share(used: usize, capacity: usize) -> f64 {
    1.0 - used as f64 / capacity as f64
}

/// Known times before unknown ones, then the lesser cost, then the lower index.
fn is_better(a: (bool, f64, usize), b: (bool, f64, usize)) -> bool {
    a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)).is_lt()
}
