//! What one source says about one machine: nodes, links, and statements about pairs.

use serde::{Deserialize, Serialize};

use crate::json::figure as figure_entry;
use crate::{Figure, InterconnectType, PciAddress};

pub use peer::{PeerCapability, PeerStatus};

mod peer;

/// What one source says about one machine.
///
/// A node is known within its observations by its position in `nodes`; links and pairs name their
/// ends by it. A source says what it knows and nothing else: what it does not mention is unknown,
/// not absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observations {
    /// The nodes, GPUs in the order in which the source numbers them.
    pub nodes: Vec<Node>,
    /// Links that the source shows as such, one entry for each direction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// What the source says about pairs of nodes, whatever lies between them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<Pair>,
    /// The rings and trees of an NCCL graph dump.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub channel_graphs: Vec<ChannelGraph>,
    /// What looked wrong on reading.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<SourceWarning>,
}

impl Observations {
    /// Adds a node and returns its position.
    pub fn add_node(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Adds the link in both directions.
    pub fn add_link_both(&mut self, link: Link) {
        self.links.push(Link { from: link.to, to: link.from, ..link.clone() });
        self.links.push(link);
    }

    /// Notes that something looks wrong; `line` counts from 1.
    pub fn warn(&mut self, line: impl Into<Option<usize>>, text: impl Into<String>) {
        self.warnings.push(SourceWarning { line: line.into(), text: text.into() });
    }
}

/// A thing that links lead to, or that things hang on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Whether no source shows it, but what they say about pairs needs it: an NVSwitch behind more
    /// NVLinks than a GPU can have.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_implied: bool,
    /// What tools call it. Labels are not identities: two tools may number the same GPUs in
    /// different orders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Label>,
    /// Where it sits on the PCI bus. This identifies it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci: Option<PciAddress>,
    /// Its UUID, as its driver writes it. This identifies it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// What it is called in the shop, or its PCI vendor and device (`10de:2330`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its architecture as its maker writes it: `sm90`, `gfx942`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// The NUMA nodes that it is near to, in ascending order; empty if unknown. Virtual machines
    /// and containers may state several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numa_nodes: Vec<u32>,
    /// The host's threads that are near to it, as the source writes them (`0-23,48-71`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_affinity: Option<String>,
    /// Position of what it hangs on: of a GPU its switch, of a switch its host bridge, of a host
    /// bridge its NUMA node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<usize>,
    /// Position of the card that it is a part of, if it is a partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<usize>,
    /// Its PCIe link towards `parent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uplink: Option<Uplink>,
    /// How many NVLinks of it are up, to whatever they lead. A GPU of which a source says that it
    /// has none states 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvlinks_up: Option<u16>,
    /// GB/s of one of its NVLinks, one direction, where a source states it.
    #[serde(default, skip_serializing_if = "Figure::is_unknown", with = "figure_entry")]
    pub nvlink_gb_per_s: Figure,
    /// GB/s of a NIC towards the network, one direction, where a source states it.
    #[serde(default, skip_serializing_if = "Figure::is_unknown", with = "figure_entry")]
    pub network_gb_per_s: Figure,
}

impl Node {
    /// A node of which nothing is known but its kind.
    pub const fn new(kind: NodeKind) -> Self {
        Self {
            kind,
            is_implied: false,
            labels: Vec::new(),
            pci: None,
            uuid: None,
            model: None,
            architecture: None,
            numa_nodes: Vec::new(),
            cpu_affinity: None,
            parent: None,
            card: None,
            uplink: None,
            nvlinks_up: None,
            nvlink_gb_per_s: Figure::unknown(),
            network_gb_per_s: Figure::unknown(),
        }
    }

    /// Adds what a tool calls the node.
    #[must_use]
    pub fn labelled(mut self, tool: Tool, name: impl Into<String>) -> Self {
        self.labels.push(Label { tool, name: name.into() });
        self
    }

    /// What a tool calls the node.
    pub fn label(&self, tool: Tool) -> Option<&str> {
        self.labels.iter().find(|label| label.tool == tool).map(|label| label.name.as_str())
    }

    /// The NUMA node that it is attached to, where just one is stated.
    pub fn numa_node(&self) -> Option<u32> {
        match self.numa_nodes[..] {
            [only] => Some(only),
            _ => None,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NodeKind {
    /// A GPU, or a partition of one that programs see as a GPU.
    Gpu,
    /// A physical card whose partitions are the GPUs; programs do not see it.
    Card,
    /// A network interface.
    Nic,
    /// A PCIe switch: one node for its upstream port and all downstream ports.
    PcieSwitch,
    /// A PCIe host bridge with its root ports.
    HostBridge,
    /// A NUMA node or CPU socket with its memory.
    NumaNode,
    /// The NVSwitches of a machine; all of them are one node where a source does not tell them
    /// apart.
    NvSwitch,
    /// A PCI device of which a source does not say what it is.
    PciDevice,
}

/// What a tool calls a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    /// Whose label it is.
    pub tool: Tool,
    /// The label: `GPU0`, `NIC3`, `mlx5_0`.
    pub name: String,
}

/// Who numbers or names nodes. Within one tool, on one machine, equal labels mean the same node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Tool {
    /// nvidia-smi and NVML: `GPU0`, `NIC0`.
    NvidiaSmi,
    /// rocm-smi and amd-smi: `GPU0`.
    RocmSmi,
    /// xpu-smi: `GPU 0/0`.
    XpuSmi,
    /// NCCL and RCCL: `GPU0` by CUDA ordinal.
    Nccl,
    /// Nodes of AMD's kernel driver: `node 4`.
    Kfd,
    /// A hand-written profile of a machine, such as TACCL's.
    Profile,
    /// The operating system's device names: `mlx5_0`, `eth0`, `nvme0`, `card1`.
    Os,
    /// NUMA nodes as the operating system numbers them: `0`.
    Numa,
    /// The caller's own numbers.
    Own,
}

/// The PCIe link between a node and what it hangs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uplink {
    /// As it runs now. An idle card runs at generation 1 to save power.
    #[serde(default)]
    pub current: PcieWidth,
    /// As it can run at best.
    #[serde(default)]
    pub maximum: PcieWidth,
}

/// Generation and lanes of a PCIe link, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PcieWidth {
    /// Generation, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u8>,
    /// Lanes, 1 to 32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lanes: Option<u8>,
}

/// A link in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Position of the node that sends.
    pub from: usize,
    /// Position of the node that receives; another one.
    pub to: usize,
    /// What it is, with the number of bonded links.
    pub kind: InterconnectType,
    /// GB/s of all bonded links together, in this direction.
    #[serde(default, skip_serializing_if = "Figure::is_unknown", with = "figure_entry")]
    pub bandwidth: Figure,
    /// Microseconds until the first byte arrives.
    #[serde(default, skip_serializing_if = "Figure::is_unknown", with = "figure_entry")]
    pub latency: Figure,
}

/// What a source says about an ordered pair of nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// Position of the node that sends.
    pub from: usize,
    /// Position of the node that receives; another one.
    pub to: usize,
    /// What is said.
    pub statement: Statement,
    /// Where in the source's text, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
}

/// What can be said about an ordered pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Statement {
    /// What joins the two. `NvLink` may stand for links through NVSwitches: not every source
    /// tells them apart.
    Class(InterconnectType),
    /// Whether the driver offers a way of access to the other's memory.
    Peer {
        /// Which.
        capability: PeerCapability,
        /// Whether.
        status: PeerStatus,
    },
    /// How many links the source counts between the two. Tools count in their own ways.
    Hops(u32),
    /// A cost in the source's own unit; less is better.
    Weight(u32),
    /// GB/s between the two, whatever lies between.
    #[serde(with = "figure_entry")]
    Bandwidth(Figure),
    /// Microseconds until the first byte arrives, whatever lies between.
    #[serde(with = "figure_entry")]
    Latency(Figure),
}

/// A set of channels that NCCL laid through a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelGraph {
    /// Its number in the dump.
    pub id: u32,
    /// NCCL's number of the pattern: 1 to 3 trees, 4 ring, 5 NVLS.
    pub pattern: u32,
    /// GB/s of a channel inside the machine, as NCCL counts.
    pub intra_gb_per_s: Option<f64>,
    /// GB/s of a channel between machines, as NCCL counts.
    pub inter_gb_per_s: Option<f64>,
    /// Class of the worst path inside the machine: `NVL`, `SYS`.
    pub intra_class: Option<String>,
    /// Class of the worst path between machines: `PIX`.
    pub inter_class: Option<String>,
    /// The channels, each the labels of what it passes in order (`NET5`, `GPU0`, ...).
    pub channels: Vec<Vec<String>>,
}

/// Something in a source that looks wrong, and was left out or taken with care.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceWarning {
    /// Where, from 1, if it has a place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// What, and what was done about it.
    pub text: String,
}

/// `line 3: ...`
impl std::fmt::Display for SourceWarning {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(line) = self.line {
            write!(formatter, "line {line}: ")?;
        }
        formatter.write_str(&self.text)
    }
}
