//! The nodes of the merged machine.

use std::fmt::Debug;

use super::identity::{At, Groups};
use super::said::Said;
use crate::{Figure, Format, Node, NodeKind, Observations, PcieWidth, Uplink};

/// Adds a node for each group.
pub(super) fn merge(sources: &[Said<'_>], groups: &Groups, merged: &mut Observations) {
    for members in &groups.members {
        let node = Merging { sources, groups, members }.node(merged);
        merged.add_node(node);
    }
    cut_cycles(merged);
}

/// The members of one group, in the order of the sources.
struct Merging<'a> {
    sources: &'a [Said<'a>],
    groups: &'a Groups,
    members: &'a [At],
}

impl<'a> Merging<'a> {
    fn node(&self, merged: &mut Observations) -> Node {
        let mut node = Node::new(self.kind());
        node.is_implied = self.nodes().all(|(_, node)| node.is_implied);
        for label in self.nodes().flat_map(|(_, member)| &member.labels) {
            if !node.labels.contains(label) {
                node.labels.push(label.clone());
            }
        }
        node.labels.sort();
        let name = self.name(&node);
        let of = |what: &str| format!("the {what} of {name}");
        node.pci = first_or_warn(&of("PCI address"), self.values(|node| node.pci), merged);
        node.uuid = first_or_warn(&of("UUID"), self.values(|node| node.uuid.clone()), merged);
        // Names are spelled in many ways, so a difference is nothing to look at.
        node.model = self.longest(|node| node.model.as_ref());
        node.architecture = self.longest(|node| node.architecture.as_ref());
        node.cpu_affinity = self.nodes().find_map(|(_, node)| node.cpu_affinity.clone());
        node.numa_nodes = self.numa_nodes(&of("NUMA node"), merged);
        node.parent = self.position(tree_rank, |node| node.parent);
        node.card = self.position(|_| 0, |node| node.card);
        node.uplink = self.uplink(&of, merged);
        node.nvlinks_up =
            first_or_warn(&of("number of NVLinks"), self.values(|node| node.nvlinks_up), merged);
        node.nvlink_gb_per_s = best_figure(self.nodes().map(|(_, node)| &node.nvlink_gb_per_s));
        node.network_gb_per_s = best_figure(self.nodes().map(|(_, node)| &node.network_gb_per_s));
        node
    }

    fn nodes(&self) -> impl Iterator<Item = (Format, &'a Node)> {
        self.members.iter().map(|&(source, position)| {
            (self.sources[source].format, self.sources[source].node(position))
        })
    }

    fn values<T>(&self, field: impl Fn(&'a Node) -> Option<T>) -> Vec<(Format, T)> {
        self.nodes().filter_map(|(format, node)| Some((format, field(node)?))).collect()
    }

    /// A stated kind, rather than that of a PCI device of which nothing more is said.
    fn kind(&self) -> NodeKind {
        let mut kinds = self.nodes().map(|(_, node)| node.kind);
        kinds.find(|&kind| kind != NodeKind::PciDevice).unwrap_or(NodeKind::PciDevice)
    }

    fn name(&self, node: &Node) -> String {
        let label = node.labels.first().map(|label| label.name.clone());
        let address = || self.nodes().find_map(|(_, node)| node.pci).map(|pci| pci.to_string());
        label.or_else(address).unwrap_or_else(|| "a node".to_owned())
    }

    fn longest(&self, field: impl Fn(&'a Node) -> Option<&'a String>) -> Option<String> {
        let texts = self.nodes().filter_map(|(_, node)| field(node));
        texts.max_by_key(|text| (text.len(), *text)).cloned()
    }

    /// Where sources state one node and several, the one is the better answer.
    fn numa_nodes(&self, what: &str, merged: &mut Observations) -> Vec<u32> {
        let single = first_or_warn(what, self.values(Node::numa_node), merged);
        let mut several = self.nodes().filter(|(_, node)| !node.numa_nodes.is_empty());
        single.map_or_else(
            || several.next().map(|(_, node)| node.numa_nodes.clone()).unwrap_or_default(),
            |only| vec![only],
        )
    }

    /// The group that a member names, asking sources by rank and then in their order.
    fn position(
        &self,
        rank: impl Fn(Format) -> u8,
        field: impl Fn(&Node) -> Option<usize>,
    ) -> Option<usize> {
        let named = self.members.iter().filter_map(|&(source, position)| {
            let said = &self.sources[source];
            let group = self.groups.group((source, field(said.node(position))?));
            // What hangs on something of its own group hangs on nothing that is known.
            (group != self.groups.group((source, position))).then_some((rank(said.format), group))
        });
        named.min_by_key(|&(rank, _)| rank).map(|(_, group)| group)
    }

    fn uplink(&self, of: &dyn Fn(&str) -> String, merged: &mut Observations) -> Option<Uplink> {
        let uplinks = self.values(|node| node.uplink);
        if uplinks.is_empty() {
            return None;
        }
        // The present speed changes with the load, so only the best ones can contradict.
        let current = || uplinks.iter().map(|(_, uplink)| uplink.current);
        let current = PcieWidth {
            generation: current().filter_map(|width| width.generation).max(),
            lanes: current().filter_map(|width| width.lanes).max(),
        };
        let mut best = |what: &str, field: fn(PcieWidth) -> Option<u8>| {
            let stated = uplinks.iter().copied();
            let values =
                stated.filter_map(|(format, uplink)| Some((format, field(uplink.maximum)?)));
            first_or_warn(&of(what), values.collect(), merged)
        };
        let generation = best("best PCIe generation", |width| width.generation);
        let lanes = best("best PCIe width", |width| width.lanes);
        Some(Uplink { current, maximum: PcieWidth { generation, lanes } })
    }
}

/// Sources that see the whole tree come before those that see parts of it.
const fn tree_rank(format: Format) -> u8 {
    match format {
        Format::Json => 0,
        Format::Sysfs => 1,
        Format::HwlocXml => 2,
        Format::Lspci => 3,
        Format::NcclXml => 4,
        _ => 5,
    }
}

/// The first value; a warning for each that differs.
pub(super) fn first_or_warn<T: PartialEq + Debug>(
    what: &str,
    values: Vec<(Format, T)>,
    merged: &mut Observations,
) -> Option<T> {
    let mut values = values.into_iter();
    let (format, first) = values.next()?;
    for (other_format, other) in values.filter(|(_, other)| *other != first) {
        let text = format!(
            "{what} is {first:?} by {format}, but {other:?} by {other_format}; \
             the former is taken"
        );
        merged.warn(None, text);
    }
    Some(first)
}

/// The figure of the best quality, the first of several.
fn best_figure<'f>(figures: impl Iterator<Item = &'f Figure>) -> Figure {
    let mut best = Figure::unknown();
    for figure in figures {
        if figure.quality() > best.quality() {
            best = figure.clone();
        }
    }
    best
}

/// Two sources together may say that things hang on each other; such a statement is dropped.
fn cut_cycles(merged: &mut Observations) {
    for start in 0..merged.nodes.len() {
        let mut at = start;
        for _ in 0..=merged.nodes.len() {
            match merged.nodes[at].parent {
                Some(parent) if parent == start => {
                    merged.nodes[start].parent = None;
                    merged.warn(None, "the sources contradict each other about what hangs on what");
                    break;
                }
                Some(parent) => at = parent,
                None => break,
            }
        }
    }
}
