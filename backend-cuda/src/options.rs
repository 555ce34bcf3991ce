//! Which GPUs are used, and as how many devices.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::facts::GpuFacts;

/// How long a read or write waits for a running step unless asked otherwise.
pub const DEFAULT_TRANSFER_WAIT: Duration = Duration::from_secs(2);

/// How long any call waits for the device unless asked otherwise. A fleet's step limit is shorter.
pub const DEFAULT_WAIT_LIMIT: Duration = Duration::from_secs(60);

/// Payloads of at least so many bytes keep a copy on the GPU that sent them: 64 KiB.
pub const DEFAULT_PAYLOADS_FROM_BYTES: u32 = 64 << 10;

/// Memory that the copies of payloads on a device may use: 64 MiB.
pub const DEFAULT_PAYLOAD_MEMORY_BYTES: u64 = 64 << 20;

/// Which GPUs a [`CudaBackend`](crate::CudaBackend) lists, and as how many logical devices.
///
/// ```
/// use hopwise_backend_cuda::{CudaOptions, GpuFilter};
///
/// let options = CudaOptions::new()
///     .with_gpu(GpuFilter::parse("0000:3b:00.0"))
///     .with_logical_devices(2)
///     .with_memory_bytes(8 << 30);
/// # let _ = options;
/// ```
#[derive(Clone, Debug)]
pub struct CudaOptions {
    pub(crate) filters: Vec<GpuFilter>,
    pub(crate) logical_devices: usize,
    pub(crate) memory_bytes: Option<u64>,
    /// By the number of the logical device.
    pub(crate) own_memory_bytes: BTreeMap<usize, u64>,
    pub(crate) transfer_wait: Duration,
    pub(crate) wait_limit: Duration,
    pub(crate) graphs: GraphUse,
    pub(crate) resident: ResidentUse,
    pub(crate) peer_access: bool,
    pub(crate) forbidden_peers: Vec<(String, String)>,
    pub(crate) payloads_from: Option<u32>,
    pub(crate) payload_memory: u64,
}

/// Whether batches are started as CUDA graphs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GraphUse {
    /// Each shape of batch in the way that was found to be quicker for it.
    #[default]
    Measured,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Whether kernels stay on the GPU between their steps, waiting for the next one.
///
/// A step of such a kernel costs no launch. It holds a part of the GPU while it waits (for some
/// milliseconds after each step), its boxes are read and written over the bus, and reading or writing
/// its state ends it until the next step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResidentUse {
    /// No.
    #[default]
    Never,
    /// Those that are made first, as many as half of the GPU holds, where the GPU can launch kernels
    /// whose blocks wait for each other, no watchdog of a display ends them, and the program has CUDA
    /// C. The others are launched for each step, as usual.
    WherePossible,
}

/// Every GPU as one device.
impl Default for CudaOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl CudaOptions {
    /// Every GPU as one device.
    #[must_use]
    pub fn new() -> Self {
        Self {
            filters: Vec::new(),
            logical_devices: 1,
            memory_bytes: None,
            own_memory_bytes: BTreeMap::new(),
            transfer_wait: DEFAULT_TRANSFER_WAIT,
            wait_limit: DEFAULT_WAIT_LIMIT,
            graphs: GraphUse::Measured,
            resident: ResidentUse::Never,
            peer_access: true,
            forbidden_peers: Vec::new(),
            payloads_from: Some(DEFAULT_PAYLOADS_FROM_BYTES),
            payload_memory: DEFAULT_PAYLOAD_MEMORY_BYTES,
        }
    }

    /// Lists GPUs that this filter fits. With several filters, those that any of them fits; with
    /// none, all.
    #[must_use]
    pub fn with_gpu(mut self, filter: GpuFilter) -> Self {
        self.filters.push(filter);
        self
    }

    /// Lists each GPU as so many devices, at least one: each with streams and a memory quota of its
    /// own. They fail together.
    #[must_use]
    pub fn with_logical_devices(mut self, count: usize) -> Self {
        self.logical_devices = count.max(1);
        self
    }

    /// Sets the memory quota of each device in bytes. Without it the memory of the GPU is shared out
    /// evenly.
    #[must_use]
    pub fn with_memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = Some(bytes);
        self
    }

    /// Sets the memory quota of one of a GPU's logical devices, from 0, in bytes. The others keep
    /// theirs.
    #[must_use]
    pub fn with_memory_bytes_of(mut self, logical_device: usize, bytes: u64) -> Self {
        self.own_memory_bytes.insert(logical_device, bytes);
        self
    }

    /// Sets how long a read or write waits for a running step before it answers that the instance
    /// is busy. [`DEFAULT_TRANSFER_WAIT`] if not called.
    #[must_use]
    pub fn with_transfer_wait(mut self, wait: Duration) -> Self {
        self.transfer_wait = wait;
        self
    }

    /// Sets how long any call waits for the device; then the device counts as unresponsive.
    /// [`DEFAULT_WAIT_LIMIT`] if not called.
    #[must_use]
    pub fn with_wait_limit(mut self, limit: Duration) -> Self {
        self.wait_limit = limit;
        self
    }

    /// Says whether batches are started as CUDA graphs. [`GraphUse::Measured`] if not called.
    #[must_use]
    pub fn with_graphs(mut self, graphs: GraphUse) -> Self {
        self.graphs = graphs;
        self
    }

    /// Says whether kernels stay on the GPU between their steps. [`ResidentUse::Never`] if not called.
    #[must_use]
    pub fn with_resident_kernels(mut self, resident: ResidentUse) -> Self {
        self.resident = resident;
        self
    }

    /// Says whether GPUs may copy from one to another directly. `true` if not called; `false` sends
    /// everything through host memory, for machines whose bus loses what the driver promises.
    #[must_use]
    pub fn with_peer_access(mut self, allowed: bool) -> Self {
        self.peer_access = allowed;
        self
    }

    /// Forbids direct copies for these ordered pairs of GPUs, by UUID: what the check of
    /// [`verify_pair_in_child`](crate::verify_pair_in_child) found to be unsound.
    #[must_use]
    pub fn with_forbidden_peers(
        mut self,
        pairs: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        self.forbidden_peers.extend(pairs);
        self
    }

    /// Says which payloads keep a copy on the GPU that sent them, for a receiver that can fetch it
    /// from there, and how much memory all copies of a device may use, beside its quota. Payloads of
    /// at least so many bytes are kept, none with `None`. [`DEFAULT_PAYLOADS_FROM_BYTES`] and
    /// [`DEFAULT_PAYLOAD_MEMORY_BYTES`] if not called: chosen, not measured.
    #[must_use]
    pub fn with_payloads_on_device(mut self, from_bytes: Option<u32>, memory_bytes: u64) -> Self {
        (self.payloads_from, self.payload_memory) = (from_bytes, memory_bytes);
        self
    }

    pub(crate) fn fits(&self, gpu: &GpuFacts) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| filter.fits(gpu))
    }
}

/// Says which GPUs are meant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GpuFilter {
    /// The one that the CUDA driver lists at this place. Places depend on `CUDA_VISIBLE_DEVICES` and
    /// `CUDA_DEVICE_ORDER`, and are not those of `nvidia-smi`.
    Ordinal(usize),
    /// The one whose UUID begins with this text, such as `GPU-5a4f`.
    Uuid(String),
    /// The one at this PCI address, such as `0000:3b:00.0`; the domain `0000:` may be left out.
    PciAddress(String),
    /// Those whose name contains this text, in whatever case.
    Name(String),
}

impl GpuFilter {
    /// Understands a number as an ordinal, `GPU-...` and `MIG-...` as a UUID, `3b:00.0` as a PCI
    /// address, all else as a name.
    ///
    /// ```
    /// use hopwise_backend_cuda::GpuFilter;
    ///
    /// assert_eq!(GpuFilter::parse("1"), GpuFilter::Ordinal(1));
    /// assert_eq!(GpuFilter::parse("GPU-5a4f"), GpuFilter::Uuid("GPU-5a4f".to_owned()));
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Self {
        if let Ok(ordinal) = text.parse() {
            return Self::Ordinal(ordinal);
        }
        let upper = text.to_ascii_uppercase();
        if upper.starts_with("GPU-") || upper.starts_with("MIG-") {
            return Self::Uuid(text.to_owned());
        }
        match pci_address(text) {
            Some(address) => Self::PciAddress(address),
            None => Self::Name(text.to_owned()),
        }
    }

    fn fits(&self, gpu: &GpuFacts) -> bool {
        match self {
            Self::Ordinal(ordinal) => gpu.ordinal == *ordinal,
            Self::Uuid(prefix) => {
                let uuid = gpu.uuid.to_ascii_lowercase();
                uuid.starts_with(&prefix.to_ascii_lowercase())
            }
            Self::PciAddress(address) => gpu.pci_address == pci_address(address),
            Self::Name(name) => gpu.name.to_lowercase().contains(&name.to_lowercase()),
        }
    }
}

/// `domain:bus:device.function` in lower case, with four digits of domain.
pub(crate) fn pci_address(text: &str) -> Option<String> {
    let address: hopwise_topology::PciAddress = text.trim().parse().ok()?;
    Some(address.to_string())
}

impl fmt::Display for GpuFilter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ordinal(ordinal) => write!(formatter, "at place {ordinal}"),
            Self::Uuid(prefix) => write!(formatter, "with UUID {prefix}"),
            Self::PciAddress(address) => write!(formatter, "at PCI address {address}"),
            Self::Name(name) => write!(formatter, "called `{name}`"),
        }
    }
}
