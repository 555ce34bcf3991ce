//! What NVML knows beside the driver: facts, links, and the health of GPUs while they work.
//!
//! The CUDA driver says that a GPU is gone only to who calls it for that GPU. NVML reports it as an
//! event, and reports what makes a GPU worse before it falls. Without NVML nothing of this is known,
//! and devices work as well.

use std::collections::HashMap;

use hopwise_core::error::DeviceError;
use hopwise_core::health::{Degradation, DeviceHealth};
use hopwise_topology::{Format, GpuConnection, Machine, Reading};
use parking_lot::Mutex;

use crate::facts::GpuFacts;
use crate::library::Libraries;
use crate::nvml::{Condition, Effect, EventWatcher, ManagedGpu, Nvml};

/// Degradations of one GPU that events told of and that are remembered, at most.
const MOST_NOTED: usize = 16;

/// NVML, for the devices of a backend.
#[derive(Debug)]
pub(crate) struct Watch {
    nvml: Option<Nvml>,
    gpus: Vec<ManagedGpu>,
    /// Taken out while somebody listens: NVML is called with no lock held.
    watcher: Mutex<Option<EventWatcher>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The latches of open GPUs, by the UUID of the whole GPU.
    latches: HashMap<String, Vec<DeviceHealth>>,
    /// What events told of, by the UUID of the whole GPU.
    noted: HashMap<String, Vec<Degradation>>,
}

impl Watch {
    pub(crate) fn new(libraries: &Libraries) -> Self {
        let nvml = Nvml::open(libraries).ok();
        let gpus = nvml.as_ref().map(|nvml| nvml.facts().0).unwrap_or_default();
        let watcher = Mutex::new(nvml.as_ref().map(Nvml::watch));
        Self { nvml, gpus, watcher, state: Mutex::default() }
    }

    /// What NVML says about a GPU of the driver's.
    pub(crate) fn managed(&self, gpu: &GpuFacts) -> Option<&ManagedGpu> {
        let is_it = |managed: &&ManagedGpu| {
            let uuid = managed.uuid.as_deref();
            uuid.is_some_and(|uuid| uuid.eq_ignore_ascii_case(gpu.whole_uuid()))
        };
        self.gpus.iter().find(is_it)
    }

    /// Closes this latch when the GPU is reported to be lost.
    pub(crate) fn attend(&self, gpu: &GpuFacts, health: &DeviceHealth) {
        let mut state = self.state.lock();
        let latches = state.latches.entry(gpu.whole_uuid().to_lowercase()).or_default();
        latches.retain(DeviceHealth::is_working);
        latches.push(health.clone());
    }

    /// Hears what has happened since it was asked last. Never waits; who finds somebody else
    /// listening leaves it to them.
    pub(crate) fn poll(&self) {
        let Some(mut watcher) = self.watcher.lock().take() else { return };
        for event in watcher.poll() {
            let uuid = event.uuid.to_lowercase();
            match event.effect() {
                Effect::Lost { cause } => self.lose(&uuid, &cause),
                Effect::Degraded(degradation) => {
                    let mut state = self.state.lock();
                    let noted = state.noted.entry(uuid).or_default();
                    if noted.len() < MOST_NOTED && !noted.contains(&degradation) {
                        noted.push(degradation);
                    }
                }
                Effect::ProcessOnly | Effect::Informative => {}
            }
        }
        *self.watcher.lock() = Some(watcher);
    }

    /// Latches outside of the lock: listeners are called.
    fn lose(&self, uuid: &str, cause: &str) {
        let latches = self.state.lock().latches.remove(uuid).unwrap_or_default();
        for latch in latches {
            latch.latch(DeviceError::Lost { cause: cause.to_owned() });
        }
    }

    /// What makes a GPU worse than it should be.
    pub(crate) fn degradations(&self, gpu: &GpuFacts) -> Vec<Degradation> {
        self.poll();
        let uuid = gpu.whole_uuid();
        let mut found = match self.nvml.as_ref().map(|nvml| nvml.condition(uuid)) {
            Some(Condition::Degraded(found)) => found,
            Some(Condition::Lost { cause }) => {
                self.lose(&uuid.to_lowercase(), &cause);
                Vec::new()
            }
            _ => Vec::new(),
        };
        let noted = self.state.lock().noted.get(&uuid.to_lowercase()).cloned();
        found.extend(noted.unwrap_or_default());
        found
    }

    /// Links between GPUs that NVML knows, by the place of each GPU in the list. Instances of a
    /// divided GPU have none of their own.
    pub(crate) fn links(&self, gpus: &[&GpuFacts]) -> Vec<GpuConnection> {
        let Some(nvml) = &self.nvml else { return Vec::new() };
        let reading = Reading { format: Format::Nvml, observations: nvml.links() };
        let machine = Machine::merge(&[reading]);
        let place_of = |node: usize| {
            let node = &machine.nodes()[node];
            let has = |gpu: &&GpuFacts| {
                gpu.parent_uuid.is_none()
                    && gpu.pci_address.is_some()
                    && gpu.pci_address == node.pci.map(|address| address.to_string())
            };
            gpus.iter().position(has)
        };
        let places: Vec<_> = machine.gpus().iter().map(|node| place_of(*node)).collect();
        let topology = machine.topology();
        let listed = topology.connections().into_iter().filter_map(|connection| {
            let place = |device: usize| places.get(device).copied().flatten();
            let mut connection = connection.clone();
            (connection.from, connection.to) = (place(connection.from)?, place(connection.to)?);
            Some(connection)
        });
        listed.collect()
    }
}
