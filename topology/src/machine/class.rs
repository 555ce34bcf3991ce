//! What joins two nodes, in the classes that people know.

use std::collections::HashMap;

use super::tree::{self, TreePath};
use crate::{
    InterconnectType, NodeKind, Observations, Pair, PeerCapability, PeerStatus, Statement, Tool,
};

/// The class of one pair.
pub(super) fn of(all: &Observations, from: usize, to: usize) -> InterconnectType {
    Classes::new(all).of(from, to)
}

/// Classes, with what is stated about pairs at hand.
pub(super) struct Classes<'a> {
    all: &'a Observations,
    stated: HashMap<(usize, usize), InterconnectType>,
    links: HashMap<(usize, usize), InterconnectType>,
    /// For each node, the NVSwitches that it is linked to, with the number of links.
    switches: HashMap<usize, Vec<(usize, InterconnectType)>>,
}

impl<'a> Classes<'a> {
    pub(super) fn new(all: &'a Observations) -> Self {
        let stated = all.pairs.iter().filter_map(|pair| match pair.statement {
            Statement::Class(class) => Some(((pair.from, pair.to), class)),
            _ => None,
        });
        let mut switches: HashMap<_, Vec<_>> = HashMap::new();
        for link in &all.links {
            let switch = &all.nodes[link.to];
            // A switch that follows from statements about pairs says nothing about further pairs.
            if switch.kind == NodeKind::NvSwitch && !switch.is_implied {
                switches.entry(link.from).or_default().push((link.to, link.kind));
            }
        }
        let links = all.links.iter().map(|link| ((link.from, link.to), link.kind)).collect();
        Self { all, stated: stated.collect(), links, switches }
    }

    /// A statement comes first, unless it says no more than "some PCIe"; then a link; then an
    /// NVSwitch; then the tree.
    pub(super) fn of(&self, from: usize, to: usize) -> InterconnectType {
        let stated = self.stated.get(&(from, to)).copied();
        if let Some(class) = stated.filter(|class| !is_vague(*class)) {
            return class;
        }
        let link = self.links.get(&(from, to)).copied();
        link.filter(|class| !is_vague(*class))
            .or_else(|| self.through_nvswitch(from, to))
            .or_else(|| self.through_tree(from, to))
            .or(link)
            .or(stated)
            .unwrap_or(InterconnectType::Unknown)
    }

    /// The links of the end that has fewer, over all NVSwitches that both are linked to.
    fn through_nvswitch(&self, from: usize, to: usize) -> Option<InterconnectType> {
        let (here, there) = (self.switches.get(&from)?, self.switches.get(&to)?);
        let links = |of: &[(usize, InterconnectType)], other: &[(usize, InterconnectType)]| {
            let shared = of.iter().filter(|(at, _)| other.iter().any(|(to, _)| to == at));
            shared.map(|(_, kind)| kind.link_count().unwrap_or(0)).fold(0, u16::saturating_add)
        };
        let count = links(here, there).min(links(there, here));
        let generation = here.iter().find_map(|(_, kind)| kind.generation());
        (count > 0).then_some(InterconnectType::NvSwitch { generation, links: count })
    }

    fn through_tree(&self, from: usize, to: usize) -> Option<InterconnectType> {
        tree_class(self.all, &tree::path(self.all, from, to)?)
    }
}

/// Whether a class says no more than that there is something.
const fn is_vague(class: InterconnectType) -> bool {
    matches!(class, InterconnectType::Pcie { .. } | InterconnectType::Unknown)
}

/// The class of a way through the tree; nothing where it leaves what is known of the tree.
fn tree_class(all: &Observations, path: &TreePath) -> Option<InterconnectType> {
    let below = [path.up.last(), path.down.first()];
    let all_below =
        |kind: NodeKind| below.iter().all(|at| at.is_some_and(|&at| all.nodes[at].kind == kind));
    let Some(top) = path.top else {
        return all_below(NodeKind::NumaNode).then_some(InterconnectType::System);
    };
    Some(match all.nodes[top].kind {
        NodeKind::HostBridge => InterconnectType::HostBridge,
        NodeKind::NumaNode if all_below(NodeKind::HostBridge) => InterconnectType::Node,
        // AMD's driver shows neither switches nor host bridges.
        NodeKind::NumaNode if all.nodes[top].label(Tool::Kfd).is_some() => {
            InterconnectType::Pcie { generation: None, lanes: None }
        }
        // NCCL shows switches, and counts every way through the CPU as this.
        NodeKind::NumaNode => InterconnectType::HostBridge,
        // The ports of one card, or two devices on one switch.
        _ if path.up.len() == 1 && path.down.len() == 1 => InterconnectType::PcieSwitch,
        _ => InterconnectType::PcieSwitches,
    })
}

/// Whether reading and writing are supported, as far as they are stated.
pub(super) fn peer_access(all: &Observations, from: usize, to: usize) -> Option<bool> {
    let about = |pair: &&Pair| pair.from == from && pair.to == to;
    let statuses = all.pairs.iter().filter(about).filter_map(|pair| match pair.statement {
        Statement::Peer {
            capability: PeerCapability::Read | PeerCapability::Write | PeerCapability::Pcie,
            status,
        } if status != PeerStatus::Unknown => Some(status == PeerStatus::Supported),
        _ => None,
    });
    statuses.reduce(|all, this| all && this)
}
