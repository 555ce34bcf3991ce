//! What a kernel asks of its device.

use serde::{Deserialize, Serialize};

use super::KernelPriority;
use crate::device_info::{BackendKind, ComputeCapability};

/// What a kernel asks of its device. Every option is satisfied, or the device is refused by name
/// of the option that it does not satisfy. The default asks for nothing.
///
/// ```
/// use hopwise_core::{BackendKind, LaunchOptions};
///
/// let options = LaunchOptions::new()
///     .with_required_memory(2 << 30)
///     .with_backend(BackendKind::Cuda)
///     .with_excluded_devices([0]);
/// assert!(options.preferred_devices.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LaunchOptions {
    /// Bytes of device memory; `place` promises them to the kernel. Zero asks for none.
    pub required_memory_bytes: u64,
    /// Where it is not empty, only these devices will do, and the preference of the configuration
    /// does not count.
    pub preferred_devices: Vec<usize>,
    /// Devices that will not do.
    pub excluded_devices: Vec<usize>,
    /// The interface that the device must be driven through.
    pub backend: Option<BackendKind>,
    /// The least compute capability; a device without one is refused.
    pub min_compute_capability: Option<ComputeCapability>,
    /// A device whose memory the kernel's device must be able to access; that device itself will
    /// do.
    pub peer_access_with: Option<usize>,
    /// The kernel's declared priority, which decides how soon it is moved off a leaving device.
    pub priority: KernelPriority,
}

impl LaunchOptions {
    /// Asks for nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for device memory, in bytes.
    #[must_use]
    pub fn with_required_memory(mut self, bytes: u64) -> Self {
        self.required_memory_bytes = bytes;
        self
    }

    /// Restricts the choice to these devices.
    #[must_use]
    pub fn with_preferred_devices(mut self, devices: impl IntoIterator<Item = usize>) -> Self {
        self.preferred_devices = devices.into_iter().collect();
        self
    }

    /// Rules these devices out.
    #[must_use]
    pub fn with_excluded_devices(mut self, devices: impl IntoIterator<Item = usize>) -> Self {
        self.excluded_devices = devices.into_iter().collect();
        self
    }

    /// Asks for devices driven through this interface.
    #[must_use]
    pub fn with_backend(mut self, backend: BackendKind) -> Self {
        self.backend = Some(backend);
        self
    }

    /// Asks for at least this compute capability.
    #[must_use]
    pub fn with_min_compute_capability(mut self, major: u32, minor: u32) -> Self {
        self.min_compute_capability = Some(ComputeCapability { major, minor });
        self
    }

    /// Asks for access to this device's memory.
    #[must_use]
    pub fn with_peer_access_to(mut self, device: usize) -> Self {
        self.peer_access_with = Some(device);
        self
    }

    /// Declares the kernel's priority.
    #[must_use]
    pub fn with_priority(mut self, priority: KernelPriority) -> Self {
        self.priority = priority;
        self
    }

    /// Whether the options rule devices out by more than room and memory.
    pub(super) fn constrains_devices(&self) -> bool {
        !self.preferred_devices.is_empty()
            || !self.excluded_devices.is_empty()
            || self.backend.is_some()
            || self.min_compute_capability.is_some()
            || self.peer_access_with.is_some()
    }
}
