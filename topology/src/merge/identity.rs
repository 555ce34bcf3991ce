//! Which nodes of which sources are the same thing.

use std::collections::{BTreeMap, BTreeSet};

use super::said::Said;
use crate::{Node, NodeKind, Observations, PciAddress, Tool};

/// A node of a source: number of the source, position in it.
pub(super) type At = (usize, usize);

/// The nodes of all sources, in groups that are one thing each.
pub(super) struct Groups {
    /// The members of each group in the order of the sources; groups in the order of their first
    /// members.
    pub(super) members: Vec<Vec<At>>,
    /// The group of each node, by source.
    of: Vec<Vec<usize>>,
}

impl Groups {
    pub(super) fn of(sources: &[Said<'_>], merged: &mut Observations) -> Self {
        let mut union = Union::new(sources);
        union.join_by(|node| node.pci.map(|pci| Key::Pci(sort_of(node.kind), pci)));
        union.join_by(|node| {
            node.uuid.as_ref().map(|uuid| Key::Uuid(sort_of(node.kind), uuid.to_lowercase()))
        });
        union.join_by_labels(merged);
        union.join_lone_switches();
        union.join_by_pci_order(merged);
        union.into_groups()
    }

    /// The group of a node.
    pub(super) fn group(&self, (source, position): At) -> usize {
        self.of[source][position]
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Pci(u8, PciAddress),
    Uuid(u8, String),
}

/// Kinds of one sort may be the same thing: a PCI device of which a source says no more may be a
/// GPU or a NIC.
const fn sort_of(kind: NodeKind) -> u8 {
    match kind {
        NodeKind::Gpu | NodeKind::Nic | NodeKind::PciDevice | NodeKind::NvSwitch => 0,
        NodeKind::Card => 1,
        NodeKind::PcieSwitch => 2,
        NodeKind::HostBridge => 3,
        NodeKind::NumaNode => 4,
    }
}

/// Disjoint sets of nodes.
struct Union<'a> {
    sources: &'a [Said<'a>],
    all: Vec<At>,
    leader: Vec<usize>,
}

impl<'a> Union<'a> {
    fn new(sources: &'a [Said<'a>]) -> Self {
        let all: Vec<At> = sources
            .iter()
            .enumerate()
            .flat_map(|(source, said)| {
                (0..said.observations.nodes.len()).map(move |position| (source, position))
            })
            .collect();
        Self { sources, leader: (0..all.len()).collect(), all }
    }

    fn node(&self, id: usize) -> &'a Node {
        let (source, position) = self.all[id];
        self.sources[source].node(position)
    }

    fn leader(&self, mut id: usize) -> usize {
        while self.leader[id] != id {
            id = self.leader[id];
        }
        id
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.leader(a), self.leader(b));
        // The lower leads, so the order of joins does not show.
        self.leader[a.max(b)] = a.min(b);
    }

    /// Joins nodes of different sources that have the same key, where no source has it twice: the
    /// ports of one NIC, or the partitions of one card, share an address.
    fn join_by(&mut self, key: impl Fn(&Node) -> Option<Key>) {
        let mut by_key: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
        for id in 0..self.all.len() {
            if let Some(key) = key(self.node(id)) {
                by_key.entry(key).or_default().push(id);
            }
        }
        for ids in by_key.into_values() {
            let sources: BTreeSet<usize> = ids.iter().map(|&id| self.all[id].0).collect();
            if sources.len() == ids.len() {
                ids.windows(2).for_each(|pair| self.join(pair[0], pair[1]));
            }
        }
    }

    /// Joins nodes of different sources that have the same label, unless their addresses say that
    /// they are different things.
    fn join_by_labels(&mut self, merged: &mut Observations) {
        let mut by_label = BTreeMap::new();
        for id in 0..self.all.len() {
            let node = self.node(id);
            for label in &node.labels {
                let key = (sort_of(node.kind), label.tool, &label.name);
                let other = *by_label.entry(key).or_insert(id);
                let is_known = self.leader(other) == self.leader(id);
                if is_known || self.all[other].0 == self.all[id].0 {
                    continue;
                }
                let Some([one, another]) = self.difference(other, id) else {
                    self.join(other, id);
                    continue;
                };
                let format = |id: usize| self.sources[self.all[id].0].format;
                let text = format!(
                    "{} is {one} for {}, but {another} for {}; they are kept apart",
                    label.name,
                    format(other),
                    format(id)
                );
                merged.warn(None, text);
            }
        }
    }

    /// The PCI addresses or UUIDs by which the groups of two nodes differ.
    fn difference(&self, a: usize, b: usize) -> Option<[String; 2]> {
        let (ours, theirs) = (self.group_of(a), self.group_of(b));
        let pci = |nodes: &[&Node]| nodes.iter().find_map(|node| node.pci);
        let uuid = |nodes: &[&Node]| nodes.iter().find_map(|node| node.uuid.clone());
        let addresses = pci(&ours).zip(pci(&theirs));
        if let Some((one, another)) = addresses.filter(|(one, another)| one != another) {
            return Some([one.to_string(), another.to_string()]);
        }
        let uuids = uuid(&ours).zip(uuid(&theirs));
        let (one, another) = uuids.filter(|(one, another)| !one.eq_ignore_ascii_case(another))?;
        Some([one, another])
    }

    fn group_of(&self, id: usize) -> Vec<&'a Node> {
        let leader = self.leader(id);
        let members = (0..self.all.len()).filter(|&id| self.leader(id) == leader);
        members.map(|id| self.node(id)).collect()
    }

    /// The NVSwitches of a machine are one node where a source does not tell them apart; two such
    /// sources mean the same node.
    fn join_lone_switches(&mut self) {
        let lone: Vec<usize> = (0..self.all.len())
            .filter(|&id| self.node(id).kind == NodeKind::NvSwitch && self.node(id).pci.is_none())
            .collect();
        lone.windows(2).for_each(|pair| self.join(pair[0], pair[1]));
    }

    /// nvidia-smi numbers GPUs by rising PCI address. If it is known by numbers alone, and just as
    /// many NVIDIA GPUs are known by address alone, they are the same in that order.
    fn join_by_pci_order(&mut self, merged: &mut Observations) {
        // One source alone knows which of its nodes are the same.
        if self.sources.len() < 2 {
            return;
        }
        let mut numbered = BTreeMap::new();
        let mut addressed = BTreeMap::new();
        let gpus = (0..self.all.len()).filter(|&id| self.node(id).kind == NodeKind::Gpu);
        let leaders: BTreeSet<usize> = gpus.map(|id| self.leader(id)).collect();
        for leader in leaders {
            let members = self.group_of(leader);
            let number = members.iter().find_map(|node| nvidia_number(node));
            let address = members.iter().find_map(|node| node.pci);
            match (number, address) {
                (Some(number), None) => {
                    numbered.insert(number, leader);
                }
                (None, Some(address)) if members.iter().all(|node| may_be_nvidia(node)) => {
                    addressed.insert(address, leader);
                }
                // A number with an address needs no guess, and shows which GPUs are counted.
                (Some(_), Some(_)) => return,
                _ => {}
            }
        }
        if numbered.is_empty() || numbered.len() != addressed.len() {
            return;
        }
        for (&by_number, &by_address) in numbered.values().zip(addressed.values()) {
            self.join(by_number, by_address);
        }
        merged.warn(
            None,
            "nvidia-smi's numbers were matched to PCI addresses in rising order, since no source \
             gives both",
        );
    }

    fn into_groups(self) -> Groups {
        let mut members: Vec<Vec<At>> = Vec::new();
        let mut group_of_leader = BTreeMap::new();
        let mut of: Vec<Vec<usize>> = vec![Vec::new(); self.sources.len()];
        for (id, &at) in self.all.iter().enumerate() {
            let group = *group_of_leader.entry(self.leader(id)).or_insert_with(|| {
                members.push(Vec::new());
                members.len() - 1
            });
            members[group].push(at);
            of[at.0].push(group);
        }
        Groups { members, of }
    }
}

fn nvidia_number(node: &Node) -> Option<u32> {
    node.label(Tool::NvidiaSmi)?.strip_prefix("GPU")?.parse().ok()
}

/// Whether nothing says that the GPU is of another maker.
fn may_be_nvidia(node: &Node) -> bool {
    let is_other = |text: &String| {
        ["gfx", "1002:", "8086:", "AMD", "Intel"].iter().any(|start| text.starts_with(start))
    };
    !node.architecture.as_ref().is_some_and(is_other) && !node.model.as_ref().is_some_and(is_other)
}
