//! One machine: everything that its sources say, joined, and what follows from it.

use std::collections::BTreeSet;

use crate::merge::merge;
use crate::{
    ChannelGraph, InterconnectType, Link, Node, NodeKind, Observations, Pair, Reading,
    SourceWarning, Statement, Tool,
};

mod class;
mod effective;
mod fabric;
mod figures;
#[cfg(test)]
mod tests;
mod tree;
mod wires;

/// What is known about one machine: its nodes, the links between them, and statements about pairs.
///
/// Nodes are known by their position in [`nodes`](Self::nodes). The GPUs are numbered in the order
/// of [`gpus`](Self::gpus); in the [`topology`](Self::topology) a GPU's number is its index.
///
/// ```
/// use hopwise_topology::{Machine, read_text};
///
/// let machine = Machine::merge(&read_text(
///     "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n\
///      GPU0\t X \tNV4\t0-23\t0\n\
///      GPU1\tNV4\t X \t0-23\t0\n",
///     None,
/// )?);
/// assert_eq!(machine.gpus().len(), 2);
/// assert_eq!(machine.classes()[0], ["X", "NV4"]);
/// # Ok::<(), hopwise_topology::SourceError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    all: Observations,
    gpus: Vec<usize>,
    nics: Vec<usize>,
}

impl Machine {
    /// Joins what several sources say about one machine.
    ///
    /// Nodes are one where they have the same PCI address or UUID, or the same label of the same
    /// tool. Of several figures the one of better quality stands. Where equally good sources say
    /// different things, a warning names both. The result does not depend on the order of the
    /// readings.
    ///
    /// Statements that two GPUs are joined by NVLink, Infinity Fabric or Xe Link become links;
    /// where a GPU has more of them than it can have NVLinks, they lead through an NVSwitch. Links
    /// without a stated bandwidth get an estimate where a rule gives one.
    ///
    /// Costs O(nodes x links) at worst.
    pub fn merge(readings: &[Reading]) -> Self {
        let mut all = merge(readings);
        fabric::add_implied_links(&mut all);
        figures::estimate(&mut all);
        all.links.sort_by_key(|link| (link.from, link.to, link.kind.family()));
        let mut told = BTreeSet::new();
        all.warnings.retain(|warning| told.insert(warning.clone()));
        let of_kind = |kind| {
            let nodes = all.nodes.iter().enumerate().filter(move |(_, node)| node.kind == kind);
            nodes.map(|(position, _)| position).collect()
        };
        Self { gpus: of_kind(NodeKind::Gpu), nics: of_kind(NodeKind::Nic), all }
    }

    /// All nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.all.nodes
    }

    /// All links, one entry for each direction.
    pub fn links(&self) -> &[Link] {
        &self.all.links
    }

    /// What sources say about pairs.
    pub fn pairs(&self) -> &[Pair] {
        &self.all.pairs
    }

    /// Positions of the GPUs, in the order in which their sources number them.
    pub fn gpus(&self) -> &[usize] {
        &self.gpus
    }

    /// Positions of the network interfaces.
    pub fn nics(&self) -> &[usize] {
        &self.nics
    }

    /// The channels of NCCL graph dumps.
    pub fn channel_graphs(&self) -> &[ChannelGraph] {
        &self.all.channel_graphs
    }

    /// What looked wrong in the sources or between them.
    pub fn warnings(&self) -> &[SourceWarning] {
        &self.all.warnings
    }

    /// Everything, as one source would say it.
    pub const fn observations(&self) -> &Observations {
        &self.all
    }

    /// What people call a node: `GPU0`, `NIC3`, `mlx5_0`, `NUMA 1`, a PCI address.
    pub fn name(&self, position: usize) -> String {
        let node = &self.all.nodes[position];
        let number = |of: &[usize]| of.iter().position(|&other| other == position).unwrap_or(0);
        let label = |tools: &[Tool]| tools.iter().find_map(|&tool| node.label(tool));
        let own = [Tool::Own, Tool::NvidiaSmi, Tool::RocmSmi, Tool::XpuSmi, Tool::Nccl];
        let address = || node.pci.map(|pci| pci.to_string());
        match node.kind {
            NodeKind::Gpu => label(&own)
                .or_else(|| label(&[Tool::Profile]))
                .map_or_else(|| format!("GPU{}", number(&self.gpus)), str::to_owned),
            NodeKind::Nic => label(&[Tool::Own, Tool::NvidiaSmi, Tool::Os, Tool::Profile])
                .map_or_else(|| format!("NIC{}", number(&self.nics)), str::to_owned),
            NodeKind::NumaNode => {
                label(&[Tool::Numa]).map_or_else(|| "NUMA ?".to_owned(), |n| format!("NUMA {n}"))
            }
            NodeKind::NvSwitch => address()
                .map_or_else(|| "NVSwitch".to_owned(), |address| format!("NVSwitch {address}")),
            NodeKind::PcieSwitch => address()
                .map_or_else(|| "PCIe switch".to_owned(), |address| format!("switch {address}")),
            NodeKind::HostBridge => address()
                .map_or_else(|| "host bridge".to_owned(), |address| format!("bridge {address}")),
            NodeKind::Card => {
                address().map_or_else(|| "card".to_owned(), |address| format!("card {address}"))
            }
            NodeKind::PciDevice => address().unwrap_or_else(|| "device".to_owned()),
        }
    }

    /// What joins two nodes, as `nvidia-smi topo -m` puts it; `Unknown` where nothing says.
    ///
    /// A statement of a source comes first, then a link, then the PCI tree.
    pub fn class(&self, from: usize, to: usize) -> InterconnectType {
        class::of(&self.all, from, to)
    }

    /// The class names of all pairs, GPUs first and then network interfaces, `X` on the diagonal
    /// and `?` where nothing is known.
    pub fn classes(&self) -> Vec<Vec<String>> {
        let shown: Vec<usize> = self.gpus.iter().chain(&self.nics).copied().collect();
        let classes = class::Classes::new(&self.all);
        let cell = |from, to| {
            if from == to { "X".to_owned() } else { classes.of(from, to).class_name() }
        };
        shown.iter().map(|&from| shown.iter().map(|&to| cell(from, to)).collect()).collect()
    }

    /// What falls together with a node, from the nearest to the widest: the card that it is a part
    /// of, the switches, host bridge and NUMA node that it hangs on.
    pub fn failure_domains(&self, position: usize) -> Vec<usize> {
        let card = self.all.nodes[position].card;
        let hangs_on = tree::ancestors(&self.all, card.unwrap_or(position));
        let own = tree::ancestors(&self.all, position);
        let chain = if hangs_on.is_empty() { own } else { hangs_on };
        card.into_iter().chain(chain).collect()
    }

    /// Whether sources say that `from` has access to the memory of `to`; `None` if none does.
    ///
    /// Reading and writing must both be supported where both are stated.
    pub fn peer_access(&self, from: usize, to: usize) -> Option<bool> {
        class::peer_access(&self.all, from, to)
    }

    /// Statements of one kind about a pair.
    pub fn statements(&self, from: usize, to: usize) -> impl Iterator<Item = &Statement> {
        let about = move |pair: &&Pair| pair.from == from && pair.to == to;
        self.all.pairs.iter().filter(about).map(|pair| &pair.statement)
    }
}
