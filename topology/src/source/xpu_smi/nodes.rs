//! The tiles, cards, network interfaces and switches of a machine.

use std::collections::BTreeMap;
use std::fmt;

use super::device_table::Device;
use crate::source::fact::Fact;
use crate::{Node, NodeKind, Observations, Tool};

/// What a row or column of the matrix is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    /// A tile of a device: `GPU 0/1`.
    Tile { device: u32, tile: u32 },
    /// A network interface: `NIC0`.
    Nic(u32),
}

impl fmt::Display for End {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tile { device, tile } => write!(formatter, "GPU {device}/{tile}"),
            Self::Nic(number) => write!(formatter, "NIC{number}"),
        }
    }
}

/// What is said about a row of the matrix as such.
#[derive(Clone, Debug, Default)]
pub(super) struct EndFacts {
    pub(super) cpu_affinity: Fact<String>,
    pub(super) numa_node: Fact<u32>,
}

/// The nodes of the machine by what the tool calls them.
pub(super) struct Nodes {
    positions: BTreeMap<End, usize>,
}

impl Nodes {
    /// Adds the nodes to the observations: tiles and interfaces, then cards, then switches.
    pub(super) fn new(
        mut ends: BTreeMap<End, EndFacts>,
        devices: BTreeMap<u32, Device>,
        observations: &mut Observations,
    ) -> Self {
        for device in devices.keys() {
            let tile = |tile| End::Tile { device: *device, tile };
            if ends.range(tile(0)..=tile(u32::MAX)).next().is_none() {
                ends.insert(tile(0), EndFacts::default());
            }
        }
        let mut positions = BTreeMap::new();
        for (end, facts) in ends {
            positions.insert(end, observations.add_node(node(end, facts)));
        }
        let nodes = Self { positions };
        nodes.add_cards(observations);
        nodes.add_devices(devices, observations);
        nodes
    }

    pub(super) fn position(&self, end: End) -> Option<usize> {
        self.positions.get(&end).copied()
    }

    /// The positions of the tiles of a device.
    fn tiles(&self, device: u32) -> impl Iterator<Item = usize> {
        let tile = |tile| End::Tile { device, tile };
        self.positions.range(tile(0)..=tile(u32::MAX)).map(|(_, position)| *position)
    }

    fn add_cards(&self, observations: &mut Observations) {
        let mut tiles: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (end, position) in &self.positions {
            if let End::Tile { device, .. } = end {
                tiles.entry(*device).or_default().push(*position);
            }
        }
        for (device, tiles) in tiles.into_iter().filter(|(_, tiles)| tiles.len() > 1) {
            let card = Node::new(NodeKind::Card).labelled(Tool::XpuSmi, format!("GPU {device}"));
            let card = observations.add_node(card);
            for tile in tiles {
                observations.nodes[tile].card = Some(card);
            }
        }
    }

    /// Puts what the tables of devices say on their tiles, and the switches over them.
    fn add_devices(&self, devices: BTreeMap<u32, Device>, observations: &mut Observations) {
        let mut switches: BTreeMap<String, usize> = BTreeMap::new();
        for (device, facts) in devices {
            let mut parent = None;
            for path in facts.switches {
                let switch = *switches.entry(path).or_insert_with_key(|path| {
                    let node = Node::new(NodeKind::PcieSwitch).labelled(Tool::Os, path);
                    observations.add_node(Node { parent, ..node })
                });
                parent = Some(switch);
            }
            for tile in self.tiles(device) {
                let node = &mut observations.nodes[tile];
                node.parent = parent;
                if node.cpu_affinity.is_none() {
                    node.cpu_affinity.clone_from(&facts.cpu_affinity);
                }
            }
        }
    }
}

fn node(end: End, facts: EndFacts) -> Node {
    let kind = match end {
        End::Tile { .. } => NodeKind::Gpu,
        End::Nic(_) => NodeKind::Nic,
    };
    Node {
        cpu_affinity: facts.cpu_affinity.known(),
        numa_nodes: facts.numa_node.known().into_iter().collect(),
        ..Node::new(kind).labelled(Tool::XpuSmi, end.to_string())
    }
}
