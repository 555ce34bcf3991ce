//! GPUs of this machine behind the traits of the core.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Weak};

use hopwise_core::GpuConnection;
use hopwise_core::backend::Backend;
use hopwise_core::device::Device;
use hopwise_core::device_info::{BackendKind, DeviceInfo, DeviceLimits, Overrun};
use hopwise_core::error::DeviceError;
use hopwise_core::health::DeviceHealth;
use hopwise_core::implementing::{Number, Numbers, Quota};
use parking_lot::Mutex;

use crate::compiler::Compiler;
use crate::context::Context;
use crate::core::DeviceCore;
use crate::device::CudaDevice;
use crate::digester::Digester;
use crate::driver::{Driver, DriverOutcome};
use crate::facts::{GpuFacts, Unreadable};
use crate::gpu::Gpu;
use crate::library::Libraries;
use crate::options::{CudaOptions, ResidentUse};
use crate::payload::PayloadMemory;
use crate::peer::{PEERS, Paths};
use crate::transfer::Lanes;
use crate::watch::Watch;

/// Most kernels of a batch: enough that the cost of a batch is shared widely, few enough that a
/// transfer, which waits behind a kernel's step, waits briefly.
const MAX_BATCH_KERNELS: usize = 256;

/// GPUs of this machine as devices.
///
/// ```
/// use hopwise_backend_cuda::{CudaBackend, CudaOptions};
/// use hopwise_core::backend::Backend;
///
/// let backend = CudaBackend::new(CudaOptions::new());
/// match backend.enumerate() {
///     Ok(devices) => println!("{} GPUs", devices.len()),
///     Err(missing) => println!("{missing}"), // and the remedy
/// }
/// ```
#[derive(Debug)]
pub struct CudaBackend {
    options: CudaOptions,
    driver: Result<Arc<Driver>, DriverOutcome>,
    compiler: Arc<Compiler>,
    watch: Arc<Watch>,
    cards: Vec<Card>,
    /// GPUs that the driver lists and does not describe: the others go on without them.
    unreadable: Vec<Unreadable>,
}

/// What the logical devices of one GPU share.
#[derive(Debug)]
struct Card {
    facts: GpuFacts,
    opened: Mutex<Opened>,
}

/// The latch and context that devices opened now get, and the numbers that they have.
#[derive(Debug, Default)]
struct Opened {
    health: DeviceHealth,
    context: Weak<Context>,
    numbers: Arc<Numbers>,
}

impl CudaBackend {
    /// Finds the GPUs that the options name. Opens none.
    ///
    /// # Cost
    ///
    /// As [`probe()`](crate::probe()).
    #[must_use]
    pub fn new(options: CudaOptions) -> Self {
        Self::with_libraries(options, &Libraries::system())
    }

    /// The same with other libraries than the machine's usual ones.
    #[must_use]
    pub fn with_libraries(options: CudaOptions, libraries: &Libraries) -> Self {
        let driver = Driver::open(&libraries.driver).map(Arc::new);
        let compiler = Arc::new(Compiler::new(&libraries.nvrtc));
        let watch = Arc::new(Watch::new(libraries));
        let (mut cards, mut unreadable) = (Vec::new(), Vec::new());
        for ordinal in 0..driver.as_ref().map_or(0, |driver| driver.device_count as usize) {
            match driver.as_ref().map(|driver| GpuFacts::read(driver, ordinal)) {
                Ok(Ok(facts)) if options.fits(&facts) => cards.push(Card::new(facts)),
                Ok(Err(reason)) => unreadable.push(reason),
                _ => {}
            }
        }
        Self { options, driver, compiler, watch, cards, unreadable }
    }

    /// The GPUs that the options name. The device with ordinal `n` is on the GPU at place `n` divided
    /// by the number of logical devices.
    pub fn gpus(&self) -> impl Iterator<Item = &GpuFacts> {
        self.cards.iter().map(|card| &card.facts)
    }

    /// GPUs that the driver lists and does not describe, with what it said: the others are listed
    /// without them.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        self.unreadable
            .iter()
            .map(|Unreadable { ordinal, call, status }| {
                format!("GPU {ordinal} is left out: {call}: {status}; {}", status.remedy())
            })
            .collect()
    }

    /// Opens a device as what it is. See [`Backend::open`].
    ///
    /// After a loss a device opened anew works again, with a new latch, as far as the driver does:
    /// the GPU's primary context is reset, which frees what the lost devices left behind.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Unavailable`] when there is no such device, or the driver's error.
    ///
    /// # Cost
    ///
    /// The first device of a GPU makes the driver set it up: a tenth of a second to seconds.
    pub fn open_cuda(&self, ordinal: usize) -> Result<Arc<CudaDevice>, DeviceError> {
        let logical_devices = self.options.logical_devices;
        let (driver, card) = match (&self.driver, self.cards.get(ordinal / logical_devices)) {
            (Ok(driver), Some(card)) => (driver, card),
            _ => {
                let listed = self.cards.len() * logical_devices;
                let what = format!("CUDA device {ordinal} asked for, {listed} listed");
                return Err(self.unavailable(&what));
            }
        };
        let (context, number) =
            card.next_logical(driver, &self.watch, ordinal % logical_devices, &self.options)?;
        let quota = card.facts.quota_bytes(number.value(), &self.options);
        let info = self.info(driver, card, ordinal, number.value());
        let limits = DeviceLimits {
            max_state_bytes: quota.min(card.facts.memory_bytes),
            max_batch_kernels: MAX_BATCH_KERNELS,
            max_loop_iterations: None,
            overrun: Overrun::LosesDevice,
        };
        let core = DeviceCore {
            context,
            capability: card.facts.compute_capability,
            compiler: Arc::clone(&self.compiler),
            quota: Arc::new(Quota::new(quota)),
            lanes: Lanes::default(),
            digester: Digester::default(),
            payloads: PayloadMemory::new(self.options.payloads_from, self.options.payload_memory),
            paths: Paths::new(&self.options.forbidden_peers),
            resident_on: (self.options.resident == ResidentUse::WherePossible)
                .then_some(&card.facts)
                .filter(|gpu| gpu.cooperative_launch && !gpu.has_display_watchdog)
                .map(|gpu| gpu.multiprocessors),
            residents: AtomicUsize::new(0),
            transfer_wait: self.options.transfer_wait,
            _number: number,
        };
        core.lanes.prepare(&core.context.enter()?)?;
        let facts = card.facts.clone();
        let watch = Arc::clone(&self.watch);
        let device = CudaDevice::new(info, facts, limits, core, watch, &self.options);
        Ok(Arc::new(device))
    }

    fn info(&self, driver: &Driver, card: &Card, ordinal: usize, logical: usize) -> DeviceInfo {
        let managed = self.watch.managed(&card.facts);
        let mut info = card.facts.device_info(ordinal, logical, &self.options, managed);
        info.peer_capable = self.options.peer_access && self.has_peer(driver, &card.facts);
        info
    }

    /// Whether the driver lets the GPU reach any other that is listed.
    fn has_peer(&self, driver: &Driver, gpu: &GpuFacts) -> bool {
        self.gpus().filter(|other| other.device != gpu.device).any(|other| {
            let mut can = 0;
            // SAFETY: `can` lives until the call returns; the driver lists both devices.
            let code = unsafe {
                (driver.functions.cuDeviceCanAccessPeer)(&raw mut can, gpu.device, other.device)
            };
            code == 0 && can != 0
        })
    }

    /// What is missing, where there is no GPU or no fitting one.
    fn unavailable(&self, what: &str) -> DeviceError {
        let found = match &self.driver {
            Err(outcome) => format!("CUDA driver: {outcome}"),
            Ok(driver) => format!("{} lists {}", driver.library_name, driver.device_count),
        };
        let filters: Vec<_> = self.options.filters.iter().map(ToString::to_string).collect();
        let mut reason = format!("{what}; {found}");
        if !filters.is_empty() {
            reason = format!("{reason}; a GPU {} was looked for", filters.join(" or "));
        }
        for problem in self.problems() {
            reason = format!("{reason}; {problem}");
        }
        DeviceError::Unavailable { reason }
    }
}

impl Backend for CudaBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Cuda
    }

    fn enumerate(&self) -> Result<Vec<DeviceInfo>, DeviceError> {
        let Ok(driver) = &self.driver else {
            return Err(self.unavailable("no CUDA device can be used"));
        };
        if self.cards.is_empty() {
            return Err(self.unavailable("no CUDA device fits"));
        }
        let logical_devices = self.options.logical_devices;
        let ordinals = 0..self.cards.len() * logical_devices;
        let info = |ordinal: usize| {
            let card = &self.cards[ordinal / logical_devices];
            self.info(driver, card, ordinal, ordinal % logical_devices)
        };
        Ok(ordinals.map(info).collect())
    }

    fn open(&self, ordinal: usize) -> Result<Arc<dyn Device>, DeviceError> {
        Ok(self.open_cuda(ordinal)?)
    }

    /// Those that NVML knows between the GPUs, each by its first logical device; none without NVML.
    fn links(&self) -> Result<Vec<GpuConnection>, DeviceError> {
        let gpus: Vec<_> = self.gpus().collect();
        let mut links = self.watch.links(&gpus);
        for link in &mut links {
            link.from *= self.options.logical_devices;
            link.to *= self.options.logical_devices;
        }
        Ok(links)
    }
}

impl Card {
    fn new(facts: GpuFacts) -> Self {
        Self { facts, opened: Mutex::default() }
    }

    /// The context for one more logical device, and its number: the listed one unless a device has
    /// it. After a loss the GPU starts anew.
    fn next_logical(
        &self,
        driver: &Arc<Driver>,
        watch: &Watch,
        logical: usize,
        options: &CudaOptions,
    ) -> Result<(Arc<Context>, Number), DeviceError> {
        // One at a time, whichever backend they come from: the GPU has one primary context.
        let gpu = Gpu::of(self.facts.device);
        let _opening = gpu.open();
        let (health, numbers, known) = {
            let mut opened = self.opened.lock();
            if !opened.health.is_working() {
                *opened = Opened::default();
            }
            (opened.health.clone(), Arc::clone(&opened.numbers), opened.context.upgrade())
        };
        let context = match known {
            Some(context) => context,
            None => {
                let (device, names) = (self.facts.device, self.facts.names());
                let limit = options.wait_limit;
                let new = Context::retain(driver, device, names, health.clone(), limit)?;
                self.opened.lock().context = Arc::downgrade(&new);
                PEERS.add(&new);
                watch.attend(&self.facts, new.health());
                new
            }
        };
        let number = numbers.take(logical, options.logical_devices, &health);
        Ok((context, number))
    }
}
