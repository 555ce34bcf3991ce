//! Adapters of this machine behind the traits of the core.

use std::sync::{Arc, OnceLock};

use hopwise_core::GpuConnection;
use hopwise_core::backend::Backend;
use hopwise_core::device::Device;
use hopwise_core::device_info::{BackendKind, DeviceInfo, DeviceLimits, Overrun};
use hopwise_core::error::DeviceError;
use hopwise_core::health::DeviceHealth;
use hopwise_core::implementing::{Number, Numbers, Quota};

use parking_lot::Mutex;

use crate::adapter::AdapterKind;
use crate::core::{DeviceCore, Transfers};
use crate::device::WgpuDevice;
use crate::digester::Digester;
use crate::driver::{Driver, Handles};
use crate::facts::AdapterFacts;
use crate::limits::{Limits, probe_loop_limit, probe_segments};
use crate::memory;
use crate::options::WgpuOptions;
use crate::probe::{self, Probe};
use crate::ready::block_on;
use crate::staging::Staging;

/// Most kernels of a batch: enough that the cost of a submission is shared widely, few enough that a
/// transfer, which waits behind a batch, waits briefly.
const MAX_BATCH_KERNELS: usize = 64;

/// Adapters of this machine as devices.
///
/// ```
/// use hopwise_backend_wgpu::{WgpuBackend, WgpuOptions};
/// use hopwise_core::backend::Backend;
///
/// let backend = WgpuBackend::new(WgpuOptions::new().with_logical_devices(2));
/// match backend.enumerate() {
///     Ok(devices) => assert_eq!(devices.len(), 2 * backend.adapters().count()),
///     Err(missing) => println!("{missing}"), // and the remedy
/// }
/// ```
#[derive(Debug)]
pub struct WgpuBackend {
    options: WgpuOptions,
    probe: Probe,
    cards: Vec<Card>,
}

/// What the logical devices of one adapter share.
#[derive(Debug)]
struct Card {
    facts: AdapterFacts,
    handle: wgpu::Adapter,
    opened: Mutex<Opened>,
    /// Found by trying when the first device is opened.
    max_loop_iterations: OnceLock<Option<u64>>,
}

/// The latch that devices opened now get, and the numbers that they have.
#[derive(Debug, Default)]
struct Opened {
    health: DeviceHealth,
    numbers: Arc<Numbers>,
}

impl WgpuBackend {
    /// Finds the adapters that the options name. Opens none.
    ///
    /// # Cost
    ///
    /// As [`probe()`](crate::probe()).
    #[must_use]
    pub fn new(options: WgpuOptions) -> Self {
        let (probe, handles) = probe::list(&options.apis);
        let found = probe.adapters().iter().cloned().zip(handles).enumerate();
        let cards = found
            .filter(|(index, (adapter, _))| options.fits(*index, adapter))
            .map(|(index, (adapter, handle))| Card::new(index, adapter, handle))
            .collect();
        Self { options, probe, cards }
    }

    /// The adapters that the options name, with what was known when they were found. The device
    /// with ordinal `n` is on the adapter at place `n` divided by the number of logical devices.
    pub fn adapters(&self) -> impl Iterator<Item = &AdapterFacts> {
        self.cards.iter().map(|card| &card.facts)
    }

    /// Opens a device as what it is. See [`Backend::open`].
    ///
    /// After a loss a device opened anew works again, with a new latch, as far as the driver does.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Unavailable`] when there is no such device, or the driver's error.
    ///
    /// # Cost
    ///
    /// Compiles two small shaders, and on hardware creates and binds a buffer of at most 1 GiB for a
    /// moment; the first time it also measures how long a loop may be.
    pub fn open_wgpu(&self, ordinal: usize) -> Result<Arc<WgpuDevice>, DeviceError> {
        let logical_devices = self.options.logical_devices;
        let card = self.cards.get(ordinal / logical_devices).ok_or_else(|| {
            let listed = self.cards.len() * logical_devices;
            self.unavailable(&format!("wgpu device {ordinal} asked for, {listed} listed"))
        })?;
        let logical = ordinal % logical_devices;
        let (health, number) = card.next_logical(logical, logical_devices);
        let info = card.info_now(ordinal, number.value(), &self.options);
        let device = card.open(health, number, &self.options)?;
        let max_loop_iterations = card.max_loop_iterations(&device.driver)?;
        let limits = DeviceLimits {
            max_state_bytes: device.limits.max_state_bytes(),
            max_batch_kernels: MAX_BATCH_KERNELS,
            max_loop_iterations,
            overrun: Overrun::LosesDevice,
        };
        Ok(Arc::new(WgpuDevice::new(info, limits, device, card.handle.clone())))
    }

    /// What is missing, where there is no adapter or no fitting one.
    fn unavailable(&self, what: &str) -> DeviceError {
        let found = self.probe.to_string();
        let filters = &self.options.filters;
        let reason = if filters.is_empty() {
            format!("{what}; {found}")
        } else {
            let filters: Vec<_> = filters.iter().map(ToString::to_string).collect();
            let filters = filters.join(" or ");
            format!("{what}; an adapter {filters} was looked for among: {found}")
        };
        DeviceError::Unavailable { reason }
    }
}

impl Backend for WgpuBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Wgpu
    }

    fn enumerate(&self) -> Result<Vec<DeviceInfo>, DeviceError> {
        if self.cards.is_empty() {
            return Err(self.unavailable("wgpu finds no adapter"));
        }
        let logical_devices = self.options.logical_devices;
        let ordinals = 0..self.cards.len() * logical_devices;
        let info = |ordinal: usize| {
            let card = &self.cards[ordinal / logical_devices];
            card.info_now(ordinal, ordinal % logical_devices, &self.options)
        };
        Ok(ordinals.map(info).collect())
    }

    fn open(&self, ordinal: usize) -> Result<Arc<dyn Device>, DeviceError> {
        Ok(self.open_wgpu(ordinal)?)
    }

    /// None: wgpu knows devices only one by one.
    fn links(&self) -> Result<Vec<GpuConnection>, DeviceError> {
        Ok(Vec::new())
    }
}

impl Card {
    fn new(index: usize, adapter: crate::Adapter, handle: wgpu::Adapter) -> Self {
        let facts = AdapterFacts::new(index, adapter, &handle);
        Self { facts, handle, opened: Mutex::default(), max_loop_iterations: OnceLock::new() }
    }

    /// The facts with the memory that is free now.
    fn info_now(&self, ordinal: usize, logical: usize, options: &WgpuOptions) -> DeviceInfo {
        let mut facts = self.facts.clone();
        facts.memory = memory::ask(&self.handle).or(facts.memory);
        facts.device_info(ordinal, logical, options)
    }

    /// The latch for one more logical device, and its number: the listed one unless a device has it.
    /// A closed latch stays with those who have it, and so do their numbers: after a loss the
    /// adapter starts anew.
    fn next_logical(&self, logical: usize, logical_devices: usize) -> (DeviceHealth, Number) {
        let mut opened = self.opened.lock();
        if !opened.health.is_working() {
            *opened = Opened::default();
        }
        let number = opened.numbers.take(logical, logical_devices, &opened.health);
        (opened.health.clone(), number)
    }

    fn open(
        &self,
        health: DeviceHealth,
        number: Number,
        options: &WgpuOptions,
    ) -> Result<DeviceCore, DeviceError> {
        let required_limits = self.handle.limits();
        let limits = Limits::new(&required_limits);
        let (transfers, required_features) = self.transfers(options);
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("hopwise"),
            required_features,
            required_limits,
            experimental_features: wgpu::ExperimentalFeatures::disabled(),
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            trace: wgpu::Trace::Off,
        };
        let (device, queue) =
            block_on(self.handle.request_device(&descriptor)).map_err(|error| {
                let name = &self.facts.adapter.name;
                let reason = format!("the driver does not open {name}: {error}");
                DeviceError::Unavailable { reason }
            })?;
        let driver = Driver::new(Handles { device, queue }, health, options.wait_limit);
        // Software binds what the host's memory can hold; trying that would fill it.
        let limits = match self.facts.adapter.kind {
            AdapterKind::Cpu => limits,
            _ => probe_segments(&driver, limits, transfers.usage())?,
        };
        let digester = Digester::new(&driver, limits)?;
        Ok(DeviceCore {
            driver,
            limits,
            quota: Arc::new(Quota::new(self.facts.quota_bytes(number.value(), options))),
            transfers,
            digester,
            transfer_wait: options.transfer_wait,
            _number: number,
        })
    }

    /// Software drivers keep buffers in the host's memory; what they can map need not be copied
    /// twice. Integrated GPUs share the memory too, but reading what they map bypasses the caches.
    fn transfers(&self, options: &WgpuOptions) -> (Transfers, wgpu::Features) {
        let mappable = wgpu::Features::MAPPABLE_PRIMARY_BUFFERS;
        let is_software = self.facts.adapter.kind == AdapterKind::Cpu;
        if is_software && !options.staged_transfers && self.handle.features().contains(mappable) {
            (Transfers::Mapped, mappable)
        } else {
            (Transfers::Staged(Staging::default()), wgpu::Features::empty())
        }
    }

    fn max_loop_iterations(&self, driver: &Driver) -> Result<Option<u64>, DeviceError> {
        if let Some(known) = self.max_loop_iterations.get() {
            return Ok(*known);
        }
        let found = probe_loop_limit(driver)?;
        Ok(*self.max_loop_iterations.get_or_init(|| found))
    }
}
