//! What the coordinator knows about links, and the routes that follow from it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hopwise_topology::{DeviceFacts, End, GpuTopology, RouteTable, SwitchLink};
use parking_lot::{Mutex, RwLock};

use super::slot::{DeviceSlot, SlotView};
use super::{CoordinatorError, CoordinatorEvent, DeviceState, MultiGpuCoordinator, Result};
use crate::device_info::{BackendKind, DeviceInfo};

/// The topology set by hand, and what was computed for the present epoch.
#[derive(Default)]
pub(super) struct TopologyCache {
    set: RwLock<Option<Arc<GpuTopology>>>,
    /// Raised after every change that routes depend on.
    epoch: AtomicU64,
    /// Held while a view is computed, so that one thread does it.
    rebuild: Mutex<()>,
    view: RwLock<Option<Arc<TopologyView>>>,
}

/// Everything that follows from the devices and links of one epoch.
pub(super) struct TopologyView {
    epoch: u64,
    /// What `topology()` answers.
    shown: GpuTopology,
    /// Links between registered devices, and to the switches that these can use. Peer access is
    /// taken away where configuration or devices rule it out.
    usable: GpuTopology,
    /// Over `usable`; only devices whose state allows it relay.
    pub(super) routes: Arc<RouteTable>,
}

impl TopologyView {
    /// Whether one device can access the memory of the other over a link of theirs, or through a
    /// switch that both hang on.
    pub(super) fn can_access(&self, from: usize, to: usize) -> bool {
        self.usable.has_peer_access(from, to)
    }
}

impl TopologyCache {
    /// Makes the next reader compute anew. Called after the change itself.
    pub(super) fn outdate(&self) {
        self.epoch.fetch_add(1, Ordering::Release);
    }

    fn current(&self) -> Option<Arc<TopologyView>> {
        let epoch = self.epoch.load(Ordering::Acquire);
        let view = self.view.read();
        view.as_ref().filter(|view| view.epoch == epoch).map(Arc::clone)
    }
}

impl MultiGpuCoordinator {
    /// The topology that follows from the facts about the registered devices alone, whatever was set
    /// by hand. Nothing is probed: every figure is an estimate and names its rule, and no link is
    /// made up. Changes nothing. Costs O(devices^2).
    #[must_use]
    pub fn discover_topology(&self) -> GpuTopology {
        let table = self.registry.table();
        estimate(table.iter().filter(|slot| slot.is_staying()))
    }

    /// The present topology: the one set by hand, to which registered devices that it does not know
    /// are added without links, or else [`discover_topology`](Self::discover_topology)'s. It follows
    /// registration. Costs O(devices^2) for the copy; computed once for each change.
    #[must_use]
    pub fn topology(&self) -> GpuTopology {
        self.topology_view().shown.clone()
    }

    /// Sets the topology by hand. It stays, also when devices come and go: a device that it does not
    /// know has no links and is reached through the host.
    ///
    /// Figures need no check here: a [`Figure`](hopwise_topology::Figure) is positive and finite or
    /// unknown from the start, and links lead between devices of the topology.
    ///
    /// # Errors
    ///
    /// [`CoordinatorError::TopologyDevice`] if it names a device that is not registered.
    pub fn set_topology(&self, topology: GpuTopology) -> Result<()> {
        let known = self.registry.indices();
        if let Some(index) = topology.devices().find(|index| !known.contains(index)) {
            return Err(CoordinatorError::TopologyDevice { index, known });
        }
        *self.topology.set.write() = Some(Arc::new(topology));
        self.topology.outdate();
        self.observers.tell(&CoordinatorEvent::TopologySet);
        Ok(())
    }

    /// Whether `device_a` can access the memory of `device_b` directly: the configuration allows it,
    /// both devices work, are registered and not leaving, are driven through one interface and able
    /// to access peers, and the link from the one to the other has peer access. A device is not its
    /// own peer.
    #[must_use]
    pub fn can_p2p(&self, device_a: usize, device_b: usize) -> bool {
        let works = |index| {
            let view = self.registry.slot(index).and_then(|slot| slot.view());
            view.is_some_and(|view| view.state.accepts_kernels())
        };
        works(device_a) && works(device_b) && self.topology_view().can_access(device_a, device_b)
    }

    /// The view of the present epoch; computed by the first who asks.
    pub(super) fn topology_view(&self) -> Arc<TopologyView> {
        if let Some(view) = self.topology.current() {
            return view;
        }
        let _one_at_a_time = self.topology.rebuild.lock();
        if let Some(view) = self.topology.current() {
            return view;
        }
        let view = Arc::new(self.build_view());
        *self.topology.view.write() = Some(Arc::clone(&view));
        view
    }

    fn build_view(&self) -> TopologyView {
        // Read before the facts: a change after this raises the epoch again, and the view is stale.
        let epoch = self.topology.epoch.load(Ordering::Acquire);
        let set = self.topology.set.read().clone();
        let table = self.registry.table();
        let slots: Vec<_> = table.iter().filter(|slot| !slot.is_retired()).collect();
        let staying = || slots.iter().copied().filter(|slot| slot.is_staying());
        let (shown, usable) = match set {
            Some(set) => (with_unknown(&set, staying()), usable(&set, &slots, &self.config)),
            // Kernels of a leaving device still send messages and must be copied off it, so routes
            // start and end there.
            None => {
                let all = estimate(slots.iter().copied());
                (estimate(staying()), usable(&all, &slots, &self.config))
            }
        };
        let relays: Vec<usize> = slots
            .iter()
            .filter(|slot| slot.view().is_some_and(|view| view.state.relays()))
            .map(|slot| slot.index)
            .collect();
        let may_relay = |index| relays.binary_search(&index).is_ok();
        let routes = Arc::new(RouteTable::build(&usable, &may_relay));
        TopologyView { epoch, shown, usable, routes }
    }
}

fn estimate<'a>(slots: impl Iterator<Item = &'a Arc<DeviceSlot>>) -> GpuTopology {
    let facts: Vec<_> = slots.map(|slot| facts_for_estimate(&slot.facts)).collect();
    GpuTopology::estimate(&facts)
}

fn facts_for_estimate(info: &DeviceInfo) -> DeviceFacts {
    DeviceFacts {
        backend: Some(info.backend.to_string()),
        numa_node: info.numa_node,
        peer_capable: info.peer_capable,
        pcie: info.pcie.map(|link| (link.generation, link.lanes)),
        host: info.backend == BackendKind::Host,
        ..DeviceFacts::new(info.index)
    }
}

/// The topology set by hand, and the devices that it does not know.
fn with_unknown<'a>(
    set: &GpuTopology,
    slots: impl Iterator<Item = &'a Arc<DeviceSlot>>,
) -> GpuTopology {
    let mut shown = set.clone();
    for slot in slots.filter(|slot| !set.contains(slot.index)) {
        shown.add_device(slot.index).expect("the topology does not know the device");
    }
    shown
}

/// The part of a topology between these devices, with peer access only where it can be used.
fn usable(
    from: &GpuTopology,
    slots: &[&Arc<DeviceSlot>],
    config: &super::MultiGpuConfig,
) -> GpuTopology {
    const KNOWN: &str = "the devices were added, and the links were valid where they come from";
    let mut usable = GpuTopology::new(slots.iter().map(|slot| slot.index));
    for slot in slots {
        if let Some(link) = from.host_link(slot.index) {
            usable.set_host_link(link).expect(KNOWN);
        }
    }
    for link in from.connections() {
        let (Some(here), Some(there)) = (slot_of(slots, link.from), slot_of(slots, link.to)) else {
            continue;
        };
        let peers = config.enable_p2p && link.peer_access && are_peers(here, there);
        usable.set_connection(link.clone().with_peer_access(peers)).expect(KNOWN);
    }
    if config.enable_p2p {
        add_switches(&mut usable, from, slots);
    }
    usable
}

fn slot_of<'a>(slots: &[&'a Arc<DeviceSlot>], index: usize) -> Option<&'a Arc<DeviceSlot>> {
    slots.binary_search_by_key(&index, |slot| slot.index).ok().map(|position| slots[position])
}

/// Adds the switches of `from`, with links to those devices only that could access peers. A switch
/// gives all its devices access to each other, so each backend gets switches of its own.
fn add_switches(usable: &mut GpuTopology, from: &GpuTopology, slots: &[&Arc<DeviceSlot>]) {
    let links = from.switch_links();
    let mut backends: Vec<BackendKind> = Vec::new();
    for slot in slots.iter().filter(|slot| is_peer(slot)) {
        if !backends.contains(&slot.facts.backend) {
            backends.push(slot.facts.backend);
        }
    }
    for backend in backends {
        let switches: Vec<_> = from.switches().map(|_| usable.add_switch()).collect();
        let end = |end| match end {
            End::Switch(switch) => Some(End::Switch(switches[switch.number()])),
            End::Device(index) => {
                let slot = slot_of(slots, index)?;
                (is_peer(slot) && slot.facts.backend == backend).then_some(End::Device(index))
            }
        };
        for &link in &links {
            if let (Some(from), Some(to)) = (end(link.from), end(link.to)) {
                let link = SwitchLink { from, to, ..link.clone() };
                usable.set_switch_link(link).expect("the ends are there, and it was valid before");
            }
        }
    }
}

/// Whether two devices could access each other's memory, were there a link.
fn are_peers(here: &DeviceSlot, there: &DeviceSlot) -> bool {
    here.facts.backend == there.facts.backend && is_peer(here) && is_peer(there)
}

/// Whether a device could access the memory of others of its backend, were there links.
fn is_peer(slot: &DeviceSlot) -> bool {
    let works = |view: SlotView| view.state.accepts_kernels() || view.state == DeviceState::Leaving;
    slot.facts.peer_capable && slot.view().is_some_and(works)
}
