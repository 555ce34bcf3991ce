//! Host bridges and PCIe switches as nodes, for sources that show every bridge.
//!
//! A PCIe switch shows as a bridge (its upstream port) with further bridges below (its downstream
//! ports); it becomes one node at the upstream port's address. A bridge directly below a host
//! bridge is a root port and belongs to the host bridge. So of the bridges above a device, the
//! second, fourth, ... from the top are switches.

use std::collections::BTreeMap;

use crate::{Node, NodeKind, Observations, PciAddress, Tool, Uplink};

#[cfg(test)]
mod tests;

/// Buses that a bridge leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BusRange {
    pub(super) domain: u32,
    /// The bus directly below the bridge.
    pub(super) first: u8,
    /// The highest bus somewhere below it.
    pub(super) last: u8,
}

impl BusRange {
    /// Whether all of `other` lies in this range, below its first bus.
    pub(super) const fn has_below(self, other: Self) -> bool {
        self.domain == other.domain
            && self.first < other.first
            && other.first <= other.last
            && other.last <= self.last
    }

    /// Whether a device of this address sits on the bus directly below the bridge.
    pub(super) const fn has_directly(self, address: PciAddress) -> bool {
        self.domain == address.domain && self.first == address.bus
    }
}

/// A host bridge.
#[derive(Clone, Debug)]
pub(super) struct Root {
    pub(super) buses: BusRange,
    /// NUMA nodes that it is near to.
    pub(super) numa_nodes: Vec<u32>,
    /// Threads that it is near to.
    pub(super) cpu_affinity: Option<String>,
}

/// A PCI-PCI bridge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bridge {
    pub(super) address: PciAddress,
    pub(super) buses: BusRange,
    pub(super) uplink: Option<Uplink>,
}

/// The bridges of a machine. A bridge becomes a node when something is hung below it.
#[derive(Debug, Default)]
pub(super) struct PciTree {
    places: Vec<Place>,
    /// Positions of nodes; a bridge that is listed twice is one node.
    nodes: BTreeMap<(NodeKind, PciAddress), usize>,
}

#[derive(Debug)]
enum Place {
    Root(Root),
    Bridge { bridge: Bridge, above: usize, is_switch: bool },
}

impl PciTree {
    /// Adds a host bridge; returns its place.
    pub(super) fn add_root(&mut self, root: Root) -> usize {
        self.add(Place::Root(root))
    }

    /// Adds a bridge below a place; returns its own.
    pub(super) fn add_bridge(&mut self, above: usize, bridge: Bridge) -> usize {
        let is_switch = match self.places[above] {
            Place::Root(_) => false,
            Place::Bridge { is_switch, .. } => !is_switch,
        };
        self.add(Place::Bridge { bridge, above, is_switch })
    }

    fn add(&mut self, place: Place) -> usize {
        self.places.push(place);
        self.places.len() - 1
    }

    /// The buses below a place.
    pub(super) fn buses(&self, place: usize) -> BusRange {
        match &self.places[place] {
            Place::Root(root) => root.buses,
            Place::Bridge { bridge, .. } => bridge.buses,
        }
    }

    /// Position of the switch or host bridge that a device at this place hangs on.
    pub(super) fn node(&mut self, place: usize, observed: &mut Observations) -> usize {
        // From the device up to what is a node already, then down again.
        let mut missing = Vec::new();
        let mut at = place;
        let mut parent = loop {
            match &self.places[at] {
                Place::Root(root) => break self.host_bridge(&root.clone(), observed),
                Place::Bridge { bridge, above, is_switch } => {
                    let key = (NodeKind::PcieSwitch, bridge.address);
                    if let Some(&known) = self.nodes.get(&key).filter(|_| *is_switch) {
                        break known;
                    }
                    if *is_switch {
                        missing.push(*bridge);
                    }
                    at = *above;
                }
            }
        };
        for bridge in missing.into_iter().rev() {
            let mut node = Node::new(NodeKind::PcieSwitch);
            node.pci = Some(bridge.address);
            node.numa_nodes.clone_from(&observed.nodes[parent].numa_nodes);
            node.uplink = bridge.uplink;
            node.parent = Some(parent);
            parent = observed.add_node(node);
            self.nodes.insert((NodeKind::PcieSwitch, bridge.address), parent);
        }
        parent
    }

    /// A host bridge is known by its root bus, as in sysfs: `pci0000:17`.
    fn host_bridge(&mut self, root: &Root, observed: &mut Observations) -> usize {
        let BusRange { domain, first: bus, .. } = root.buses;
        let address = PciAddress { domain, bus, device: 0, function: 0 };
        *self.nodes.entry((NodeKind::HostBridge, address)).or_insert_with(|| {
            let name = format!("pci{domain:04x}:{bus:02x}");
            let mut node = Node::new(NodeKind::HostBridge).labelled(Tool::Os, name);
            node.pci = Some(address);
            node.numa_nodes.clone_from(&root.numa_nodes);
            node.cpu_affinity.clone_from(&root.cpu_affinity);
            observed.add_node(node)
        })
    }
}
