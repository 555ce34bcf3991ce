//! AMD's kernel driver: the topology under `/sys/class/kfd/kfd/topology`, as a directory or printed
//! by `grep -r`.

use std::collections::BTreeMap;

use super::{FileTree, Format, SourceError};
use crate::{
    Figure, InterconnectType, Link, Node, NodeKind, Observations, Pair, PciAddress, PeerCapability,
    PeerStatus, Statement, Tool,
};
use properties::Properties;

mod properties;
#[cfg(test)]
mod tests;

/// Types of links, of Linux's `kfd_crat.h`.
const PCIE: u64 = 2;
const XGMI: u64 = 11;

/// Nodes that a tree may have; one of more is none.
const MOST_NODES: usize = 4096;

/// Whether the tree has nodes with properties.
pub(super) fn is_in(tree: &FileTree) -> bool {
    root(tree).is_some()
}

/// Whether a file, by its path below a root, is one that is read here.
pub(super) fn is_wanted(path: &str) -> bool {
    let parts: Vec<&str> = path.rsplit('/').collect();
    match parts[..] {
        ["properties" | "name" | "gpu_id", node, "nodes", ..] => is_number(node),
        ["properties", link, "io_links" | "p2p_links", node, "nodes", ..] => {
            is_number(link) && is_number(node)
        }
        _ => false,
    }
}

/// Whether the text is what `grep -r` prints of it.
pub(super) fn recognizes(text: &str) -> bool {
    text.lines().any(|line| line.split_once(':').is_some_and(|(path, _)| is_wanted(path.trim())))
}

/// Reads it from what `grep -r` prints.
pub(super) fn read_text(text: &str) -> Result<Observations, SourceError> {
    read_tree(&FileTree::from_grep(text))
}

/// Reads it from a tree of files, at whatever depth the nodes are.
pub(super) fn read_tree(tree: &FileTree) -> Result<Observations, SourceError> {
    let root = root(tree).ok_or_else(|| {
        let reason = "there are no nodes with properties; give /sys/class/kfd/kfd/topology, or \
                      what `grep -r . nodes` prints there";
        SourceError::new(Format::Kfd, None, reason)
    })?;
    let nodes = tree.below(&root);
    let mut reader =
        Reader { tree: &nodes, all: Observations::default(), position_of: BTreeMap::new() };
    let mut numbers: Vec<usize> = nodes.children("").filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    for &number in numbers.iter().take(MOST_NODES) {
        reader.add_node(number);
    }
    reader.add_cards();
    for &number in numbers.iter().take(MOST_NODES) {
        reader.add_links(number);
    }
    let mut all = reader.all;
    if all.nodes.is_empty() {
        let reason = "no node has whole properties; record the directory again";
        return Err(SourceError::new(Format::Kfd, None, reason));
    }
    // GPUs first; a stable order keeps the numbers of the driver.
    all.links.dedup();
    Ok(all)
}

/// The directory of the nodes.
fn root(tree: &FileTree) -> Option<String> {
    tree.files().find(|(path, _)| is_wanted(path)).map(|(path, _)| {
        let at = path.rfind("nodes/").unwrap_or(0);
        path[..at + "nodes".len()].to_owned()
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 6 && text.bytes().all(|byte| byte.is_ascii_digit())
}

struct Reader<'t> {
    tree: &'t FileTree,
    all: Observations,
    /// Position of each node of the driver.
    position_of: BTreeMap<usize, usize>,
}

impl Reader<'_> {
    fn properties(&mut self, path: &str) -> Option<Properties> {
        let (properties, contradicted) = Properties::read(self.tree.file(path)?);
        for key in contradicted {
            self.all.warn(None, format!("{path} states {key} twice; neither is taken"));
        }
        Some(properties)
    }

    /// A node with CPUs is a NUMA node of that number; one with compute units a GPU.
    fn add_node(&mut self, number: usize) {
        let Some(properties) = self.properties(&format!("{number}/properties")) else {
            self.all.warn(None, format!("node {number} has no properties; it is left out"));
            return;
        };
        let is_gpu = properties.get("simd_count").is_some_and(|count| count > 0);
        let is_cpu = properties.get("cpu_cores_count").is_some_and(|count| count > 0);
        let label = format!("node {number}");
        let node = if is_gpu {
            self.gpu(number, &properties).labelled(Tool::Kfd, label)
        } else if is_cpu {
            let mut node = Node::new(NodeKind::NumaNode).labelled(Tool::Kfd, label);
            node.numa_nodes.extend(u32::try_from(number).ok());
            node.labelled(Tool::Numa, number.to_string())
        } else {
            self.all.warn(None, format!("node {number} has neither CPUs nor compute units"));
            return;
        };
        let position = self.all.add_node(node);
        self.position_of.insert(number, position);
    }

    fn gpu(&mut self, number: usize, properties: &Properties) -> Node {
        let mut node = Node::new(NodeKind::Gpu);
        node.architecture = properties.get("gfx_target_version").and_then(architecture);
        node.pci = address(properties);
        let ids = properties.get("vendor_id").zip(properties.get("device_id"));
        node.model = ids.map(|(vendor, device)| format!("{vendor:04x}:{device:04x}"));
        let unique = properties.get("unique_id").filter(|&id| id > 0);
        node.uuid = unique.map(|id| format!("GPU-{id:016x}"));
        let is_known = |other: &Node| node.pci.is_some() && other.pci == node.pci;
        if self.all.nodes.iter().any(is_known) {
            let text = format!("node {number} is at the address of another node");
            self.all.warn(None, text);
        }
        // All partitions of a card state the card's.
        if let Some(other) =
            self.all.nodes.iter_mut().find(|other| other.uuid.is_some() && other.uuid == node.uuid)
        {
            other.uuid = None;
            node.uuid = None;
        }
        node
    }

    /// GPUs that are functions of one device are partitions of one card.
    fn add_cards(&mut self) {
        let mut cards: BTreeMap<(u32, u8, u8), Vec<usize>> = BTreeMap::new();
        for (position, node) in self.all.nodes.iter().enumerate() {
            if let (NodeKind::Gpu, Some(pci)) = (node.kind, node.pci) {
                cards.entry((pci.domain, pci.bus, pci.device)).or_default().push(position);
            }
        }
        for (_, parts) in cards {
            let functions = parts.iter().filter_map(|&at| self.all.nodes[at].pci);
            let is_divided = functions.clone().any(|pci| {
                Some(pci.function) != functions.clone().next().map(|first| first.function)
            });
            if !is_divided {
                continue;
            }
            let mut card = Node::new(NodeKind::Card);
            card.pci = functions.min();
            let card = self.all.add_node(card);
            for part in parts {
                self.all.nodes[part].card = Some(card);
            }
        }
    }

    fn add_links(&mut self, number: usize) {
        for kind in ["io_links", "p2p_links"] {
            let links: Vec<String> =
                self.tree.children(&format!("{number}/{kind}")).map(str::to_owned).collect();
            for link in links {
                let path = format!("{number}/{kind}/{link}/properties");
                if let Some(properties) = self.properties(&path) {
                    self.add_link(number, &path, &properties);
                }
            }
        }
    }

    fn add_link(&mut self, number: usize, path: &str, properties: &Properties) {
        let end = |key| {
            let node = usize::try_from(properties.get(key)?).ok()?;
            Some((node, *self.position_of.get(&node)?))
        };
        let (Some((from_number, from)), Some((_, to))) = (end("node_from"), end("node_to")) else {
            self.all.warn(None, format!("{path} names a node that is not there; it is left out"));
            return;
        };
        let Some(sort) = properties.get("type").filter(|_| from_number == number && from != to)
        else {
            self.all.warn(None, format!("{path} is not whole, or of another node; it is left out"));
            return;
        };
        let ends = [from, to].map(|at| self.all.nodes[at].kind);
        let reported = properties.get("max_bandwidth").filter(|&mb_per_s| mb_per_s > 0);
        let bandwidth = reported.and_then(|mb_per_s| {
            let mb_per_s = f64::from(u32::try_from(mb_per_s).ok()?);
            Figure::reported(mb_per_s / 1000.0, "AMD's kernel driver").ok()
        });
        let bandwidth = bandwidth.unwrap_or_default();
        let pcie = InterconnectType::Pcie { generation: None, lanes: None };
        let mut link = |kind| {
            let (bandwidth, latency) = (bandwidth.clone(), Figure::unknown());
            self.all.links.push(Link { from, to, kind, bandwidth, latency });
        };
        let mut statements = Vec::new();
        match (sort, ends) {
            (XGMI, [NodeKind::Gpu, NodeKind::Gpu]) => {
                link(InterconnectType::InfinityFabric { links: 1 });
            }
            (PCIE, [NodeKind::Gpu, NodeKind::Gpu]) => {
                // The driver lists a link over PCIe only where it offers access over it.
                let (capability, status) = (PeerCapability::Pcie, PeerStatus::Supported);
                statements.push(Statement::Class(pcie));
                statements.push(Statement::Peer { capability, status });
            }
            (PCIE, _) if !path.contains("p2p_links") => {
                link(pcie);
                self.hang(from, to);
            }
            (_, [NodeKind::NumaNode, NodeKind::NumaNode]) => link(InterconnectType::System),
            _ => {}
        }
        let weight = properties.get("weight").and_then(|weight| u32::try_from(weight).ok());
        statements.extend(weight.filter(|&weight| weight > 0).map(Statement::Weight));
        let pair = |statement| Pair { from, to, statement, line: None };
        self.all.pairs.extend(statements.into_iter().map(pair));
    }

    /// A GPU with a link to a NUMA node hangs on it.
    fn hang(&mut self, from: usize, to: usize) {
        let kinds = [from, to].map(|at| self.all.nodes[at].kind);
        if kinds == [NodeKind::Gpu, NodeKind::NumaNode] && self.all.nodes[from].parent.is_none() {
            self.all.nodes[from].parent = Some(to);
            self.all.nodes[from].numa_nodes = self.all.nodes[to].numa_nodes.clone();
        }
    }
}

/// The PCI address, of `domain` and a `location_id` of bus, device and function.
fn address(properties: &Properties) -> Option<PciAddress> {
    let location = u16::try_from(properties.get("location_id")?).ok().filter(|&id| id > 0)?;
    let [bus, rest] = location.to_be_bytes();
    let domain = u32::try_from(properties.get("domain").unwrap_or(0)).ok()?;
    Some(PciAddress { domain, bus, device: rest >> 3, function: rest & 7 })
}

/// `gfx90a` of 90010: major, minor and stepping, two decimal digits each; written in hexadecimal.
fn architecture(version: u64) -> Option<String> {
    let (major, minor, stepping) = (version / 10_000, version / 100 % 100, version % 100);
    (major > 0 && minor < 16 && stepping < 16).then(|| format!("gfx{major}{minor:x}{stepping:x}"))
}
