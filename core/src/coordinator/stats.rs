//! Figures about the coordinator as a whole.

use serde::Serialize;

use super::{DeviceState, DeviceStatus};

/// Sums over all devices. Taken while nothing changes, they agree with
/// [`get_all_status`](super::MultiGpuCoordinator::get_all_status).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MultiGpuStats {
    /// Registered devices that are not leaving.
    pub device_count: usize,
    /// Devices that are leaving and still hold kernels.
    pub leaving_devices: usize,
    /// Kernels launched since the coordinator was made: placed, or assigned for the first time.
    pub total_kernels: u64,
    /// Kernels mapped now, on whatever device.
    pub mapped_kernels: usize,
    /// Reservations held now for migrations in flight.
    pub reserved: usize,
    /// How many more kernels the devices that can be selected take together.
    pub room: usize,
    /// Memory of the devices that are not leaving, in bytes.
    pub total_memory_bytes: u64,
    /// What of it can still be promised, in bytes.
    pub available_memory_bytes: u64,
    /// Panics of observers and activity sources that were caught.
    pub callback_panics: u64,
}

impl MultiGpuStats {
    pub(super) fn sum(statuses: &[DeviceStatus]) -> Self {
        let mut stats = Self::default();
        for status in statuses {
            stats.mapped_kernels += status.kernel_count;
            stats.reserved += status.reserved;
            if status.state == DeviceState::Leaving {
                stats.leaving_devices += 1;
                continue;
            }
            stats.device_count += 1;
            stats.total_memory_bytes += status.info.total_memory_bytes;
            stats.available_memory_bytes += status.available_memory_bytes;
            if status.state.is_selectable() {
                stats.room += status.room();
            }
        }
        stats
    }
}
