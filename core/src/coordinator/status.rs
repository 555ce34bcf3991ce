//! What a device holds at the moment.

use std::sync::Arc;

use serde::Serialize;

use super::{DeviceState, Incarnation};
use crate::device_info::DeviceInfo;

/// One device as the coordinator sees it now.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DeviceStatus {
    /// The facts. `available_memory_bytes` in there is the last report;
    /// [`DeviceStatus::available_memory_bytes`] is what is left of it.
    pub info: Arc<DeviceInfo>,
    /// Which registration of the index this is.
    pub incarnation: Incarnation,
    /// What the device is fit for.
    pub state: DeviceState,
    /// Kernels mapped to the device.
    pub kernel_count: usize,
    /// Room reserved for migrations in flight.
    pub reserved: usize,
    /// Most kernels and reservations together.
    pub capacity: usize,
    /// Bytes that can still be promised to kernels.
    pub available_memory_bytes: u64,
}

impl DeviceStatus {
    /// The device's index.
    #[must_use]
    pub fn index(&self) -> usize {
        self.info.index
    }

    /// How many more kernels the device takes, were its state no obstacle.
    #[must_use]
    pub fn room(&self) -> usize {
        self.capacity.saturating_sub(self.kernel_count + self.reserved)
    }

    /// The used share of the capacity, 0 to 1. A device that takes no kernels counts as full.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub fn load(&self) -> f64 {
        if self.capacity == 0 {
            return 1.0;
        }
        (self.kernel_count + self.reserved) as f64 / self.capacity as f64
    }

    /// Whether selection could return the device for a kernel that asks for nothing special.
    #[must_use]
    pub fn is_available(&self) -> bool {
        self.state.is_selectable() && self.room() > 0
    }
}
