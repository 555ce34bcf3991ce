//! What a device is: facts that do not change while it is registered.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Which interface a device is driven through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum BackendKind {
    /// Threads of this process.
    Host,
    /// Vulkan, Metal or DX12 through wgpu.
    Wgpu,
    /// The CUDA driver.
    Cuda,
}

impl fmt::Display for BackendKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Host => "host",
            Self::Wgpu => "wgpu",
            Self::Cuda => "cuda",
        })
    }
}

/// How a device is recognised again, in this process and later.
///
/// The order in which a driver lists devices is never an identity where something better exists.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DeviceIdentity {
    /// The vendor's UUID of the device or of a partition of it.
    Uuid(String),
    /// The PCI address `domain:bus:device.function`, lower case.
    PciAddress(String),
    /// Neither is known. The ordinals can mean another device after a restart.
    Unstable {
        /// The interface that lists the device.
        backend: BackendKind,
        /// Position in the list of adapters.
        adapter: usize,
        /// Which of the logical devices opened on that adapter.
        logical: usize,
    },
}

impl DeviceIdentity {
    /// Whether the identity means the same device after a restart.
    #[must_use]
    pub fn is_stable(&self) -> bool {
        !matches!(self, Self::Unstable { .. })
    }
}

impl fmt::Display for DeviceIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uuid(uuid) => write!(formatter, "{uuid}"),
            Self::PciAddress(address) => write!(formatter, "{address}"),
            Self::Unstable { backend, adapter, logical } => {
                write!(formatter, "{backend} adapter {adapter}.{logical} (unstable)")
            }
        }
    }
}

/// The compute capability of an NVIDIA device, ordered by major, then minor number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ComputeCapability {
    /// The generation: 9 for Hopper.
    pub major: u32,
    /// The variant within the generation.
    pub minor: u32,
}

impl fmt::Display for ComputeCapability {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

/// The PCI Express link of a device, at its best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PcieLink {
    /// Generation, from 1.
    pub generation: u8,
    /// Lanes, 1 to 16.
    pub lanes: u8,
}

/// Facts about one device.
///
/// `index` is the name under which a coordinator knows the device; it is chosen by whoever
/// registers the device and has no relation to a driver's ordinals.
///
/// ```
/// use hopwise_core::device_info::{BackendKind, DeviceInfo};
///
/// let device = DeviceInfo::new(0, "NVIDIA H100", BackendKind::Cuda)
///     .with_memory(80 << 30)
///     .with_compute_capability(9, 0)
///     .with_peer_access(true);
/// assert_eq!(device.available_memory_bytes, 80 << 30);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// The coordinator's index of the device.
    pub index: usize,
    /// What the driver calls it.
    pub name: String,
    /// The interface it is driven through.
    pub backend: BackendKind,
    /// How it is recognised again.
    pub identity: DeviceIdentity,
    /// Devices of one domain fail together: logical devices of one card, partitions of a card.
    /// `None`: the device is a domain of its own.
    pub failure_domain: Option<String>,
    /// Memory that the device has, or the quota that we enforce on it, in bytes.
    pub total_memory_bytes: u64,
    /// Memory that was free when the facts were read, in bytes.
    pub available_memory_bytes: u64,
    /// NVIDIA's compute capability, where the device has one.
    pub compute_capability: Option<ComputeCapability>,
    /// NUMA node of the host that the device hangs on.
    pub numa_node: Option<u32>,
    /// Whether the device can read and write a peer's memory at all. Whether it can do so with a
    /// certain peer is a question for the topology.
    pub peer_capable: bool,
    /// The PCI Express link at its best.
    pub pcie: Option<PcieLink>,
    /// Steps of different kernels that the device runs at the same time: threads of a host device,
    /// 1 for a GPU, which runs all its kernels in one batch.
    pub workers: usize,
}

impl DeviceInfo {
    /// A device of which only name and interface are known: no memory figure, no peer access,
    /// an unstable identity made from the index.
    #[must_use]
    pub fn new(index: usize, name: impl Into<String>, backend: BackendKind) -> Self {
        Self {
            index,
            name: name.into(),
            backend,
            identity: DeviceIdentity::Unstable { backend, adapter: index, logical: 0 },
            failure_domain: None,
            total_memory_bytes: 0,
            available_memory_bytes: 0,
            compute_capability: None,
            numa_node: None,
            peer_capable: false,
            pcie: None,
            workers: 1,
        }
    }

    /// Sets total and available memory, in bytes.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.total_memory_bytes = bytes;
        self.available_memory_bytes = bytes;
        self
    }

    /// Sets the available memory alone, in bytes.
    #[must_use]
    pub fn with_available_memory(mut self, bytes: u64) -> Self {
        self.available_memory_bytes = bytes;
        self
    }

    /// Sets NVIDIA's compute capability.
    #[must_use]
    pub fn with_compute_capability(mut self, major: u32, minor: u32) -> Self {
        self.compute_capability = Some(ComputeCapability { major, minor });
        self
    }

    /// Sets the NUMA node.
    #[must_use]
    pub fn with_numa_node(mut self, node: u32) -> Self {
        self.numa_node = Some(node);
        self
    }

    /// Says whether the device can access peers.
    #[must_use]
    pub fn with_peer_access(mut self, capable: bool) -> Self {
        self.peer_capable = capable;
        self
    }

    /// Sets the PCI Express link.
    #[must_use]
    pub fn with_pcie(mut self, generation: u8, lanes: u8) -> Self {
        self.pcie = Some(PcieLink { generation, lanes });
        self
    }

    /// Sets the identity.
    #[must_use]
    pub fn with_identity(mut self, identity: DeviceIdentity) -> Self {
        self.identity = identity;
        self
    }

    /// Puts the device into a failure domain.
    #[must_use]
    pub fn with_failure_domain(mut self, domain: impl Into<String>) -> Self {
        self.failure_domain = Some(domain.into());
        self
    }

    /// Sets the number of steps that the device runs at the same time.
    #[must_use]
    pub fn with_workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Whether the device and `other` fail together.
    #[must_use]
    pub fn shares_failure_domain(&self, other: &Self) -> bool {
        self.index == other.index
            || (self.failure_domain.is_some() && self.failure_domain == other.failure_domain)
    }
}

/// Limits of a device, found by asking its driver or by probing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceLimits {
    /// Largest state of one instance, in bytes.
    pub max_state_bytes: u64,
    /// Most kernels in one batch.
    pub max_batch_kernels: usize,
    /// Iterations after which the driver silently ends an invocation, where it does so.
    pub max_loop_iterations: Option<u64>,
    /// What a step that outlives its limit takes down.
    pub overrun: Overrun,
}

/// What is lost when a step outlives its limit. No interface can cancel a running step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overrun {
    /// The worker that runs it: it is left behind and replaced, other kernels go on.
    LosesWorker,
    /// The device and all of its failure domain.
    LosesDevice,
}
