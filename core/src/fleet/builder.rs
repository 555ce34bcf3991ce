//! Putting a fleet together.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::bounded;

use super::error::FleetError;
use super::inject::{Injector, MessageFault};
use super::runtime::Runtime;
use super::worker::DeviceRuntime;
use super::{Fleet, Watchdog, watchdog};
use crate::backend::Backend;
use crate::coordinator::{MultiGpuConfig, MultiGpuCoordinator};
use crate::device::Device;
use crate::error::DeviceError;

/// How long a batch of steps may run unless the builder says otherwise.
const DEFAULT_STEP_LIMIT: Duration = Duration::from_secs(5);

/// How long the idle threads of a device that is closed are given to end.
const RETIRE_PATIENCE: Duration = Duration::from_secs(1);

/// Describes a fleet. Devices get the indices 0, 1, 2... in the order in which they are given.
#[derive(Debug)]
pub struct FleetBuilder {
    config: MultiGpuConfig,
    devices: Vec<Arc<dyn Device>>,
    step_limit: Duration,
    fault: Option<MessageFault>,
}

impl FleetBuilder {
    pub(crate) fn new() -> Self {
        Self {
            config: MultiGpuConfig::default(),
            devices: Vec::new(),
            step_limit: DEFAULT_STEP_LIMIT,
            fault: None,
        }
    }

    /// Adds an open device.
    #[must_use]
    pub fn device(mut self, device: Arc<dyn Device>) -> Self {
        self.devices.push(device);
        self
    }

    /// Opens every device that a backend lists, and adds them.
    ///
    /// # Errors
    ///
    /// The backend's, when it cannot list or open them.
    pub fn backend(mut self, backend: &dyn Backend) -> Result<Self, DeviceError> {
        for info in backend.enumerate()? {
            self.devices.push(backend.open(info.index)?);
        }
        Ok(self)
    }

    /// Sets the coordinator's configuration.
    #[must_use]
    pub fn config(mut self, config: MultiGpuConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets how long a batch of steps may run; 5 seconds if not called. A batch that runs longer is
    /// given up, and its kernels are lost.
    #[must_use]
    pub fn step_limit(mut self, limit: Duration) -> Self {
        self.step_limit = limit;
        self
    }

    /// Injects a fault between kernels, to see the ledgers notice it.
    #[must_use]
    pub fn message_fault(mut self, fault: MessageFault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Registers the devices and starts the threads.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Unavailable`]: there is no device, or a thread could not be started.
    pub fn build(self) -> Result<Fleet, DeviceError> {
        if self.devices.is_empty() {
            let reason = "a fleet needs at least one device; add one to the builder".to_owned();
            return Err(DeviceError::Unavailable { reason });
        }
        let coordinator = MultiGpuCoordinator::new(self.config);
        let injector = self.fault.map(Injector::new);
        let runtime = Arc::new(Runtime::new(coordinator, self.step_limit, injector));
        let for_activity = Arc::downgrade(&runtime);
        runtime.coordinator.set_activity_source(Arc::new(move |kernel| {
            for_activity.upgrade().and_then(|runtime| runtime.activity(kernel))
        }));
        let for_observer = Arc::downgrade(&runtime);
        runtime.coordinator.add_observer(move |event| {
            if let Some(runtime) = for_observer.upgrade() {
                runtime.observe(event);
            }
        });
        let (stop, stopped) = bounded(0);
        let for_watchdog = Arc::clone(&runtime);
        let thread = std::thread::Builder::new()
            .name("hopwise-watchdog".to_owned())
            .spawn(move || watchdog::watch(&for_watchdog, &stopped))
            .map_err(unavailable)?;
        let fleet = Fleet { runtime, watchdog: Some(Watchdog { stop, thread }) };
        for device in self.devices {
            fleet.add_device(device)?;
        }
        Ok(fleet)
    }
}

impl Fleet {
    /// Adds an open device to a running fleet and returns its index.
    ///
    /// # Errors
    ///
    /// [`DeviceError`]: the device is lost already, or a thread could not be started.
    pub fn add_device(&self, device: Arc<dyn Device>) -> Result<usize, DeviceError> {
        device.health().check()?;
        let mut info = device.info().clone();
        let added = {
            let mut devices = self.runtime.devices.write();
            let added = Arc::new(DeviceRuntime::new(devices.len(), Arc::clone(&device)));
            devices.push(Some(Arc::clone(&added)));
            added
        };
        info.index = added.index;
        let started = added
            .start_workers(&self.runtime)
            .map_err(unavailable)
            .and_then(|()| self.runtime.coordinator.register_device(info).map_err(unavailable));
        if let Err(error) = started {
            self.retire(&added);
            return Err(error);
        }
        let (runtime, lost) = (Arc::downgrade(&self.runtime), Arc::downgrade(&added));
        device.health().on_loss(Box::new(move |cause| {
            if let (Some(runtime), Some(device)) = (runtime.upgrade(), lost.upgrade()) {
                runtime.lose_device(&device, cause);
            }
        }));
        Ok(added.index)
    }

    /// Stops a device's threads and forgets it. Its index is not used again.
    fn retire(&self, device: &DeviceRuntime) {
        self.runtime.forget_device(device.index);
        device.ask_to_stop();
        device.join_workers(Instant::now() + RETIRE_PATIENCE);
    }

    /// Unregisters a device that has no kernels, stops its threads and lets go of it. Its index is
    /// not used again in this fleet.
    ///
    /// # Errors
    ///
    /// [`FleetError::UnknownDevice`], and [`FleetError::DeviceInUse`] while kernels are mapped to it.
    /// If one was placed there while this ran, the device is leaving from then on.
    pub fn close_device(&self, index: usize) -> Result<(), FleetError> {
        let device = self.runtime.device(index)?;
        let coordinator = &self.runtime.coordinator;
        let mapped = coordinator.get_device_status(index).map_or(0, |status| status.kernel_count);
        if mapped > 0 {
            return Err(FleetError::DeviceInUse { device: index, kernels: mapped });
        }
        // From here on nothing can be placed here; what was placed a moment ago shows now.
        let left = coordinator.unregister_device(index);
        let kernels = left.plans.len() + left.orphans.len();
        if kernels > 0 {
            return Err(FleetError::DeviceInUse { device: index, kernels });
        }
        self.retire(&device);
        Ok(())
    }
}

fn unavailable(error: impl std::fmt::Display) -> DeviceError {
    DeviceError::Unavailable { reason: error.to_string() }
}
