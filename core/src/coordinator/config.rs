//! How a coordinator chooses and how much it puts on one device.

use serde::{Deserialize, Serialize};

/// How a device is chosen among those that fit.
///
/// Ties go to the device with more room, then to the lower index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LoadBalancingStrategy {
    /// The lowest index that fits.
    FirstAvailable,
    /// The device with the most room.
    #[default]
    LeastLoaded,
    /// The devices that fit, in turn.
    RoundRobin,
    /// The device with the most memory not yet promised.
    MemoryBased,
    /// The device with the highest compute capability; a device without one comes last.
    ComputeCapability,
    /// Whatever the selector set with
    /// [`set_custom_selector`](super::MultiGpuCoordinator::set_custom_selector) answers. Its answer
    /// is checked like any other choice.
    Custom,
}

/// The settings of a coordinator. They do not change while it lives.
///
/// ```
/// use hopwise_core::{LoadBalancingStrategy, MultiGpuConfig};
///
/// let config = MultiGpuConfig::builder()
///     .load_balancing(LoadBalancingStrategy::RoundRobin)
///     .max_kernels_per_device(8)
///     .build();
/// assert!(config.enable_p2p);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MultiGpuConfig {
    /// How a device is chosen among those that fit.
    pub load_balancing: LoadBalancingStrategy,
    /// Most kernels on one device; reservations for migrations in flight count. Zero admits
    /// nothing. Values above 2^28 - 1 mean that number.
    pub max_kernels_per_device: usize,
    /// Whether devices may read and write each other's memory where they can. Without it every
    /// route between two devices leads through the host.
    pub enable_p2p: bool,
    /// Where it is not empty, only these devices are selected, unless the launch options name a set
    /// of their own.
    pub preferred_devices: Vec<usize>,
}

impl Default for MultiGpuConfig {
    /// Least loaded, 64 kernels per device, peer access where there is some, no preference.
    fn default() -> Self {
        Self {
            load_balancing: LoadBalancingStrategy::default(),
            max_kernels_per_device: 64,
            enable_p2p: true,
            preferred_devices: Vec::new(),
        }
    }
}

impl MultiGpuConfig {
    /// Starts from the defaults.
    #[must_use]
    pub fn builder() -> MultiGpuBuilder {
        MultiGpuBuilder::new()
    }
}

/// Builds a [`MultiGpuConfig`] step by step.
#[derive(Clone, Debug, Default)]
pub struct MultiGpuBuilder {
    config: MultiGpuConfig,
}

impl MultiGpuBuilder {
    /// Starts from the defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how a device is chosen.
    #[must_use]
    pub fn load_balancing(mut self, strategy: LoadBalancingStrategy) -> Self {
        self.config.load_balancing = strategy;
        self
    }

    /// Sets how many kernels one device takes.
    #[must_use]
    pub fn max_kernels_per_device(mut self, kernels: usize) -> Self {
        self.config.max_kernels_per_device = kernels;
        self
    }

    /// Says whether devices may access each other's memory.
    #[must_use]
    pub fn enable_p2p(mut self, enable: bool) -> Self {
        self.config.enable_p2p = enable;
        self
    }

    /// Restricts selection to these devices.
    #[must_use]
    pub fn preferred_devices(mut self, devices: impl IntoIterator<Item = usize>) -> Self {
        self.config.preferred_devices = devices.into_iter().collect();
        self
    }

    /// The finished settings.
    #[must_use]
    pub fn build(self) -> MultiGpuConfig {
        self.config
    }
}
