//! The PCI tree under a sysfs root, live or recorded.
//!
//! ```text
//!   devices/pci0000:00/0000:00:01.0/0000:01:00.0/{class,vendor,device,current_link_speed,...}
//! ```
//!
//! A bridge directly below a host bridge is a root port, and belongs to the host bridge. Below it a
//! switch shows as a bridge, its upstream port, with further bridges, its downstream ports: it is
//! one node.

use std::collections::BTreeMap;

use super::{FileTree, Format, SourceError};
use crate::{Node, NodeKind, Observations, PciAddress, PcieWidth, Tool, Uplink};

#[cfg(test)]
mod tests;

/// Files of a PCI device that are read.
const FILES: [&str; 9] = [
    "class",
    "vendor",
    "device",
    "numa_node",
    "local_cpulist",
    "current_link_speed",
    "current_link_width",
    "max_link_speed",
    "max_link_width",
];

/// PCI vendors of GPUs. Other display controllers are there for management, or are emulated.
const GPU_VENDORS: [u32; 3] = [0x10de, 0x1002, 0x8086];

/// The vendor whose bridges of class 0680 are NVSwitches.
const NVIDIA: u32 = 0x10de;

/// Whether the tree has PCI devices.
pub(super) fn is_in(tree: &FileTree) -> bool {
    tree.files().any(|(path, _)| device_path(path).is_some())
}

/// Whether a file, by its path below a root, is one that is read here.
pub(super) fn is_wanted(path: &str) -> bool {
    device_path(path).is_some_and(|(_, rest)| {
        FILES.contains(&rest)
            || rest.starts_with("net/") && rest.ends_with("/address")
            || rest.starts_with("infiniband/") && rest.ends_with("/node_guid")
    })
}

/// Whether a directory, by its path below a root, can hold such files, or those of AMD's driver.
pub(super) fn is_wanted_directory(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let Some(devices) = parts.iter().position(|part| *part == "devices") else {
        // Elsewhere only the places of AMD's driver are of interest.
        let name = parts[parts.len() - 1];
        let is_in_class = parts.iter().rev().nth(1) == Some(&"class");
        return !matches!(name, "block" | "bus" | "dev" | "firmware" | "fs" | "kernel" | "module")
            && (!is_in_class || name == "kfd");
    };
    match parts[devices + 1..] {
        [] | ["virtual"] => true,
        ["virtual", driver, ..] => driver == "kfd",
        [root, .., "net" | "infiniband", _] | [root, .., "net" | "infiniband"] => {
            root.starts_with("pci")
        }
        [root, ref below @ ..] => {
            root.starts_with("pci") && below.iter().all(|part| part.parse::<PciAddress>().is_ok())
        }
    }
}

/// Reads the tree.
pub(super) fn read_tree(tree: &FileTree) -> Result<Observations, SourceError> {
    let devices = devices(tree);
    if devices.is_empty() {
        let reason = "there are no PCI devices; give the root of a sysfs, as /sys";
        return Err(SourceError::new(Format::Sysfs, None, reason));
    }
    let mut reader = Reader {
        all: Observations::default(),
        switches: BTreeMap::new(),
        bridges: BTreeMap::new(),
        numa: BTreeMap::new(),
    };
    for device in devices.values() {
        reader.add(device, &devices);
    }
    reader.hang_bridges();
    Ok(reader.all)
}

/// A PCI device with the addresses of the bridges that it is behind, from the root down.
struct Device<'t> {
    address: PciAddress,
    /// The root bus, `pci0000:00`; empty where only a flat list was recorded.
    root: &'t str,
    above: Vec<PciAddress>,
    files: BTreeMap<&'t str, &'t str>,
}

impl Device<'_> {
    fn hexadecimal(&self, file: &str) -> Option<u32> {
        let text = self.files.get(file)?.trim();
        u32::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
    }

    fn width(&self, speed: &str, width: &str) -> PcieWidth {
        PcieWidth {
            generation: self.files.get(speed).and_then(|text| generation(text)),
            lanes: self
                .files
                .get(width)
                .and_then(|text| text.trim().parse().ok().filter(|lanes| (1..=32).contains(lanes))),
        }
    }

    fn kind(&self) -> Option<NodeKind> {
        let class = self.hexadecimal("class")?;
        let vendor = self.hexadecimal("vendor").unwrap_or(0);
        let is_gpu_vendor = GPU_VENDORS.contains(&vendor);
        match class >> 8 {
            0x0604 => Some(NodeKind::PcieSwitch),
            0x0300 | 0x0302 | 0x0380 if is_gpu_vendor => Some(NodeKind::Gpu),
            0x1200 if is_gpu_vendor && vendor != 0x8086 => Some(NodeKind::Gpu),
            0x0680 if vendor == NVIDIA => Some(NodeKind::NvSwitch),
            0x0200..=0x02ff => Some(NodeKind::Nic),
            _ => None,
        }
    }
}

/// `16.0 GT/s PCIe` is generation 4.
fn generation(text: &str) -> Option<u8> {
    const SPEEDS: [&str; 6] = ["2.5", "5", "8", "16", "32", "64"];
    let speed = text.split_whitespace().next()?.trim_end_matches(".0");
    let at = SPEEDS.iter().position(|known| *known == speed)?;
    u8::try_from(at + 1).ok()
}

/// The path of the device that a file belongs to, and the path of the file below it.
fn device_path(path: &str) -> Option<(&str, &str)> {
    let is_address = |part: &str| part.len() >= 10 && part.parse::<PciAddress>().is_ok();
    let mut end = None;
    let mut at = 0;
    for part in path.split('/') {
        if is_address(part) {
            end = Some(at + part.len());
        }
        at += part.len() + 1;
    }
    let end = end?;
    Some((&path[..end], path.get(end + 1..)?))
}

/// All devices by address.
fn devices(tree: &FileTree) -> BTreeMap<PciAddress, Device<'_>> {
    let mut devices: BTreeMap<PciAddress, Device<'_>> = BTreeMap::new();
    for (path, text) in tree.files() {
        let Some((device, file)) = device_path(path) else { continue };
        let parts: Vec<&str> = device.split('/').collect();
        let mut above: Vec<PciAddress> = parts
            .iter()
            .filter_map(|part| (part.len() >= 10).then(|| part.parse().ok())?)
            .collect();
        let Some(address) = above.pop() else { continue };
        let root = parts.iter().find(|part| part.starts_with("pci") && part.contains(':'));
        let entry = devices.entry(address).or_insert_with(|| Device {
            address,
            root: root.copied().unwrap_or(""),
            above: Vec::new(),
            files: BTreeMap::new(),
        });
        // A recorded tree may hold a device twice, in the tree and in a flat list.
        if above.len() > entry.above.len() {
            entry.above = above;
        }
        if entry.root.is_empty() {
            entry.root = root.copied().unwrap_or("");
        }
        entry.files.insert(file, text);
    }
    devices
}

struct Reader<'t> {
    all: Observations,
    /// Positions of switches by the address of their upstream port.
    switches: BTreeMap<PciAddress, usize>,
    /// Positions of host bridges by root bus.
    bridges: BTreeMap<&'t str, usize>,
    numa: BTreeMap<u32, usize>,
}

impl<'t> Reader<'t> {
    fn add(&mut self, device: &Device<'t>, devices: &BTreeMap<PciAddress, Device<'t>>) {
        let Some(kind) = device.kind().filter(|&kind| kind != NodeKind::PcieSwitch) else { return };
        let parent = self.parent(device, devices);
        let mut node = self.node(kind, device);
        node.parent = parent;
        node.cpu_affinity = device
            .files
            .get("local_cpulist")
            .filter(|text| !text.is_empty())
            .map(|text| (*text).to_owned());
        let names = device.files.keys().filter_map(|file| {
            let mut parts = file.split('/');
            match (parts.next()?, parts.next()?) {
                ("infiniband" | "net", name) if parts.next().is_some() => Some(name),
                _ => None,
            }
        });
        for name in names {
            node = node.labelled(Tool::Os, name);
        }
        self.all.add_node(node);
    }

    fn node(&mut self, kind: NodeKind, device: &Device<'t>) -> Node {
        let mut node = Node::new(kind);
        node.pci = Some(device.address);
        let ids = device.hexadecimal("vendor").zip(device.hexadecimal("device"));
        node.model = ids.map(|(vendor, device)| format!("{vendor:04x}:{device:04x}"));
        let current = device.width("current_link_speed", "current_link_width");
        let maximum = device.width("max_link_speed", "max_link_width");
        let uplink = Uplink { current, maximum };
        node.uplink = (uplink != Uplink::default()).then_some(uplink);
        let numa: Option<u32> =
            device.files.get("numa_node").and_then(|text| text.trim().parse().ok());
        node.numa_nodes.extend(numa);
        node
    }

    /// What a device hangs on: the switch of the innermost upstream port above it, or the host
    /// bridge.
    fn parent(
        &mut self,
        device: &Device<'t>,
        devices: &BTreeMap<PciAddress, Device<'t>>,
    ) -> Option<usize> {
        // Above it are a root port, and then an upstream and a downstream port for each switch.
        let upstream = device.above.iter().skip(1).step_by(2);
        let mut parent = self.bridge(device)?;
        for address in upstream {
            parent = match self.switches.get(address) {
                Some(&position) => position,
                None => {
                    let mut node = match devices.get(address) {
                        Some(port) => self.node(NodeKind::PcieSwitch, port),
                        None => Node { pci: Some(*address), ..Node::new(NodeKind::PcieSwitch) },
                    };
                    node.parent = Some(parent);
                    let position = self.all.add_node(node);
                    self.switches.insert(*address, position);
                    position
                }
            };
        }
        Some(parent)
    }

    fn bridge(&mut self, device: &Device<'t>) -> Option<usize> {
        if device.root.is_empty() {
            return None;
        }
        let all = &mut self.all;
        let position = *self.bridges.entry(device.root).or_insert_with(|| {
            let mut node = Node::new(NodeKind::HostBridge).labelled(Tool::Os, device.root);
            // Its bus stands for it.
            let bus = device.root.strip_prefix("pci").map(|bus| format!("{bus}:00.0"));
            node.pci = bus.and_then(|address| address.parse().ok());
            all.add_node(node)
        });
        Some(position)
    }

    /// A host bridge is on the NUMA node of the devices below it, where they agree.
    fn hang_bridges(&mut self) {
        let bridges: Vec<usize> = self.bridges.values().copied().collect();
        for bridge in bridges {
            let is_below = |node: &&Node| {
                let mut at = node.parent;
                while let Some(parent) = at.filter(|&parent| parent != bridge) {
                    at = self.all.nodes[parent].parent;
                }
                at == Some(bridge)
            };
            let mut below = self.all.nodes.iter().filter(is_below).filter_map(Node::numa_node);
            let Some(number) = below.next() else { continue };
            if below.any(|other| other != number) {
                self.all.warn(None, "the devices below a host bridge are on several NUMA nodes");
                continue;
            }
            let all = &mut self.all;
            let numa = *self.numa.entry(number).or_insert_with(|| {
                let mut node =
                    Node::new(NodeKind::NumaNode).labelled(Tool::Numa, number.to_string());
                node.numa_nodes.push(number);
                all.add_node(node)
            });
            self.all.nodes[bridge].parent = Some(numa);
            self.all.nodes[bridge].numa_nodes = vec![number];
        }
    }
}
