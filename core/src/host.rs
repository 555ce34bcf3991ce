//! The host backend: devices made of threads and memory of this process.
//!
//! A reference for every other backend and a place to park kernels, never a silent fallback: who
//! wants host devices asks for them. Each has a memory quota of its own. A step runs on the thread
//! that calls [`run_batch`](crate::device::Device::run_batch) and *owns* its state meanwhile: no
//! lock is held while a program runs, and a step that never ends keeps nothing but its own thread
//! and its own instance.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use hopwise_topology::GpuConnection;
use parking_lot::Mutex;

use crate::backend::Backend;
use crate::device::Device;
use crate::device_info::{BackendKind, DeviceIdentity, DeviceInfo};
use crate::error::DeviceError;
use crate::health::DeviceHealth;

mod device;
mod instance;

pub use device::HostDevice;
pub use instance::HostInstance;

use crate::implementing::Quota;
use device::DeviceCore;

/// Memory of a host device unless another quota is asked for: 4 GiB.
pub const DEFAULT_MEMORY_BYTES: u64 = 4 << 30;

/// How long a read or write waits for a running step unless asked otherwise.
pub const DEFAULT_TRANSFER_WAIT: Duration = Duration::from_secs(2);

/// Which host devices there are.
///
/// ```
/// use hopwise_core::backend::Backend;
/// use hopwise_core::host::{HostBackend, HostOptions};
///
/// let options = HostOptions::new(2).with_workers(1).with_memory_bytes(64 << 20);
/// let backend = HostBackend::new(options);
/// assert_eq!(backend.enumerate()?.len(), 2);
/// assert_eq!(backend.open(0)?.memory()?.available_bytes, 64 << 20);
/// # Ok::<(), hopwise_core::error::DeviceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct HostOptions {
    devices: Vec<DeviceOptions>,
    transfer_wait: Duration,
}

#[derive(Clone, Copy, Debug)]
struct DeviceOptions {
    workers: usize,
    memory_bytes: u64,
}

impl HostOptions {
    /// So many devices, which share the processors: each has at least one worker, and a quota of
    /// [`DEFAULT_MEMORY_BYTES`].
    #[must_use]
    pub fn new(devices: usize) -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let workers = (processors / devices.max(1)).max(1);
        let device = DeviceOptions { workers, memory_bytes: DEFAULT_MEMORY_BYTES };
        Self { devices: vec![device; devices], transfer_wait: DEFAULT_TRANSFER_WAIT }
    }

    /// Sets the workers of every device declared so far. At least one.
    #[must_use]
    pub fn with_workers(mut self, workers: usize) -> Self {
        for device in &mut self.devices {
            device.workers = workers.max(1);
        }
        self
    }

    /// Sets the memory quota of every device declared so far, in bytes.
    #[must_use]
    pub fn with_memory_bytes(mut self, bytes: u64) -> Self {
        for device in &mut self.devices {
            device.memory_bytes = bytes;
        }
        self
    }

    /// Declares one more device with workers, at least one, and a quota of its own.
    #[must_use]
    pub fn with_device(mut self, workers: usize, memory_bytes: u64) -> Self {
        self.devices.push(DeviceOptions { workers: workers.max(1), memory_bytes });
        self
    }

    /// Sets how long a read or write waits for a running step before it answers that the instance
    /// is busy. [`DEFAULT_TRANSFER_WAIT`] if not called.
    #[must_use]
    pub fn with_transfer_wait(mut self, wait: Duration) -> Self {
        self.transfer_wait = wait;
        self
    }
}

/// One device.
impl Default for HostOptions {
    fn default() -> Self {
        Self::new(1)
    }
}

/// Host devices behind the traits that GPUs implement.
#[derive(Debug)]
pub struct HostBackend {
    cards: Vec<Card>,
    transfer_wait: Duration,
}

/// What the logical devices of one ordinal share.
#[derive(Debug)]
struct Card {
    info: DeviceInfo,
    quota: Arc<Quota>,
    opened: Mutex<Opened>,
}

/// The latch that devices opened now get, and how many did.
#[derive(Debug, Default)]
struct Opened {
    health: DeviceHealth,
    logical_devices: usize,
}

impl HostBackend {
    /// Devices as the options say. Nothing is allocated and no thread is started.
    #[must_use]
    pub fn new(options: HostOptions) -> Self {
        // Adapters are counted over the process, so that two backends have no identity in common.
        static NEXT_ADAPTER: AtomicUsize = AtomicUsize::new(0);
        let first_adapter = NEXT_ADAPTER.fetch_add(options.devices.len(), Ordering::Relaxed);
        let cards = options.devices.iter().enumerate();
        let cards = cards.map(|(ordinal, device)| Card::new(ordinal, first_adapter, *device));
        Self { cards: cards.collect(), transfer_wait: options.transfer_wait }
    }

    /// Opens a device as what it is. See [`Backend::open`].
    ///
    /// After a loss a device opened anew works again, with a new latch; memory of instances that
    /// still live is counted on.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Unavailable`] when there is no such device.
    pub fn open_host(&self, ordinal: usize) -> Result<Arc<HostDevice>, DeviceError> {
        let card = self.cards.get(ordinal).ok_or_else(|| DeviceError::Unavailable {
            reason: format!(
                "host device {ordinal} asked for, {} declared; declare more (HostOptions)",
                self.cards.len()
            ),
        })?;
        let (health, logical) = card.next_logical();
        let adapter = card.adapter();
        let info = card.info_now().with_identity(identity(adapter, logical));
        let core = DeviceCore::new(health, Arc::clone(&card.quota), self.transfer_wait);
        Ok(Arc::new(HostDevice::new(info, core)))
    }
}

impl Backend for HostBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Host
    }

    fn enumerate(&self) -> Result<Vec<DeviceInfo>, DeviceError> {
        Ok(self.cards.iter().map(Card::info_now).collect())
    }

    fn open(&self, ordinal: usize) -> Result<Arc<dyn Device>, DeviceError> {
        Ok(self.open_host(ordinal)?)
    }

    /// None: host devices share one memory, no link between them has a figure of its own.
    fn links(&self) -> Result<Vec<GpuConnection>, DeviceError> {
        Ok(Vec::new())
    }
}

impl Card {
    fn new(ordinal: usize, first_adapter: usize, options: DeviceOptions) -> Self {
        let adapter = first_adapter + ordinal;
        let info = DeviceInfo::new(ordinal, format!("host {ordinal}"), BackendKind::Host)
            .with_identity(identity(adapter, 0))
            .with_failure_domain(format!("host adapter {adapter}"))
            .with_memory(options.memory_bytes)
            .with_peer_access(true)
            .with_workers(options.workers);
        let quota = Arc::new(Quota::new(options.memory_bytes));
        Self { info, quota, opened: Mutex::default() }
    }

    fn adapter(&self) -> usize {
        match self.info.identity {
            DeviceIdentity::Unstable { adapter, .. } => adapter,
            _ => self.info.index,
        }
    }

    fn info_now(&self) -> DeviceInfo {
        self.info.clone().with_available_memory(self.quota.available_bytes())
    }

    /// The latch for one more logical device, and its number. A closed latch stays with those who
    /// have it.
    fn next_logical(&self) -> (DeviceHealth, usize) {
        let mut opened = self.opened.lock();
        if !opened.health.is_working() {
            *opened = Opened::default();
        }
        let logical = opened.logical_devices;
        opened.logical_devices += 1;
        (opened.health.clone(), logical)
    }
}

fn identity(adapter: usize, logical: usize) -> DeviceIdentity {
    DeviceIdentity::Unstable { backend: BackendKind::Host, adapter, logical }
}
