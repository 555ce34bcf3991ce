//! hwloc's XML, 1.x to 3.0.
//!
//! ```text
//! text -> Element -+-> NumaNodes --+
//!                  +-> Inventory --+-> nodes -> Fabric -> links and statements
//! ```
//!
//! The inventory is what the file shows: PCI devices with their bridges, and what drivers and
//! libraries call them. `role` says which of them are GPUs and network interfaces.

use std::collections::BTreeSet;

use super::xml::{self, Element};
use super::{Format, SourceError};
use crate::{Node, NodeKind, Observations};
use fabric::Fabric;
use inventory::{Device, Inventory, Object};
use numa::NumaNodes;
use os_device::OsKind;

mod ambiguity;
mod bitmap;
mod distances;
mod fabric;
mod gpu;
mod inventory;
mod nesting;
mod nic;
mod numa;
mod nvlink;
mod object;
mod os_device;
mod processor;
mod role;
#[cfg(test)]
mod tests;

/// Whether the text looks like it.
pub(super) fn recognizes(text: &str) -> bool {
    text.contains("<!DOCTYPE topology ")
        || text.contains("<object ")
            && ["<topology", " cpuset=", " pci_busid="].iter().any(|sign| text.contains(sign))
}

/// Reads it.
pub(super) fn read(text: &str) -> Result<Observations, SourceError> {
    let document = xml::parse(&document(text));
    let mut observed = Observations { warnings: document.warnings, ..Observations::default() };
    let topology = document.roots.iter().find(|root| root.name == "topology");
    let objects: Vec<&Element> = match topology {
        Some(topology) => object::children(topology).collect(),
        None => document.roots.iter().filter(|root| root.name == "object").collect(),
    };
    let Some(&machine) = objects.first() else {
        let first = observed.warnings.first();
        let reason = first.map(|warning| format!(" ({})", warning.text)).unwrap_or_default();
        return Err(SourceError::new(
            Format::HwlocXml,
            first.and_then(|warning| warning.line),
            format!(
                "there is no <topology> with an <object> in it{reason}; \
                 give what `lstopo --of xml` prints"
            ),
        ));
    };
    if document.roots.iter().filter(|root| root.name == "topology").count() > 1 {
        observed.warn(None, "there are several topologies; the first one is read");
    }
    let are_placed = nesting::is_sound(text, &objects);
    if !are_placed {
        let text = "objects do not stand in the objects that they belong to, so a tag is missing; \
                    which NUMA node is near to what is left out";
        observed.warn(None, text);
    }
    Reader::new(topology.unwrap_or(machine), &objects, are_placed, &mut observed)
        .read(&mut observed);
    Ok(observed)
}

/// What turns objects into nodes.
struct Reader<'a> {
    topology: &'a Element,
    numa: NumaNodes,
    inventory: Inventory<'a>,
    /// The node of each device of the inventory.
    positions: Vec<Option<usize>>,
}

impl<'a> Reader<'a> {
    fn new(
        topology: &'a Element,
        objects: &[&'a Element],
        are_placed: bool,
        observed: &mut Observations,
    ) -> Self {
        // Version 1 does not state itself.
        let version = topology.attribute("version").and_then(|version| version.split('.').next());
        let major = version.and_then(object::decimal).unwrap_or(1);
        let numa = NumaNodes::add(topology, objects, are_placed, observed);
        let inventory = Inventory::of(objects, major, &numa, observed);
        let positions = vec![None; inventory.devices.len()];
        Self { topology, numa, inventory, positions }
    }

    fn read(mut self, observed: &mut Observations) {
        self.add_devices(observed);
        for device in 0..self.positions.len() {
            self.hang(device, observed);
        }
        for node in observed.nodes.iter_mut().filter(|node| node.kind == NodeKind::HostBridge) {
            node.parent = node.numa_node().and_then(|number| self.numa.position(number));
        }
        ambiguity::remove(observed);
        self.add_links(observed);
    }

    fn add_devices(&mut self, observed: &mut Observations) {
        let devices = &self.inventory.devices;
        // A driver's device out of place may be the same thing as a PCI device elsewhere.
        let are_placed = self.numa.are_placed();
        let lone_gpus =
            if are_placed { role::gpus_without_pci(devices) } else { BTreeSet::default() };
        let role = |at: &usize| match devices[*at].pci {
            None if !are_placed => None,
            None if lone_gpus.contains(at) => Some(NodeKind::Gpu),
            _ => role::of(&devices[*at]),
        };
        let of_kind = |kind| (0..devices.len()).filter(move |at| role(at) == Some(kind));
        let mut gpus: Vec<usize> = of_kind(NodeKind::Gpu).collect();
        gpus.sort_by_key(|&at| gpu::order(&devices[at]));
        for at in gpus {
            self.positions[at] = Some(observed.add_node(gpu::node(&devices[at])));
        }
        for at in of_kind(NodeKind::Nic) {
            self.positions[at] = Some(observed.add_node(nic::node(&devices[at])));
        }
        for at in of_kind(NodeKind::NvSwitch) {
            self.positions[at] = Some(observed.add_node(Node::new(NodeKind::NvSwitch)));
        }
    }

    /// Says where the device is.
    fn hang(&mut self, device: usize, observed: &mut Observations) {
        let Some(position) = self.positions[device] else { return };
        let device = &self.inventory.devices[device];
        let node = &mut observed.nodes[position];
        node.pci = device.address;
        node.uplink = uplink(device);
        if let Some(at) = device.locality {
            let here = &self.inventory.localities[at];
            node.numa_nodes.clone_from(&here.numa_nodes);
            node.cpu_affinity.clone_from(&here.cpu_affinity);
        }
        if let Some(place) = device.place {
            observed.nodes[position].parent = Some(self.inventory.tree.node(place, observed));
        }
    }

    fn add_links(&self, observed: &mut Observations) {
        let position = |number: u64| match self.inventory.objects.get(&number).copied().flatten()? {
            Object::Device(device) => self.positions[device],
            Object::Place(place) => self.numa.only_position(place),
        };
        let mut fabric = Fabric::new(observed);
        for element in &self.topology.children {
            if matches!(element.name.as_str(), "distances2" | "distances2hetero") {
                fabric.matrix(element, position);
            }
        }
        for (device, &position) in self.inventory.devices.iter().zip(&self.positions) {
            let Some(position) = position else { continue };
            for os_device in &device.os_devices {
                if let Some(peers) = object::info(os_device.element, "XGMIPeers") {
                    fabric.xgmi_peers(position, peers, os_device.element.line);
                }
            }
        }
        fabric.finish();
    }
}

/// hwloc writes the speed that NVML gives, if that is linked in, and takes all generations from 3
/// on for the third.
fn uplink(device: &Device<'_>) -> Option<crate::Uplink> {
    const GENERATION_3_X16_GB_PER_S: f64 = 15.76;
    let pci = device.pci?;
    let has_nvml = device.os_devices.iter().any(|os| matches!(os.kind, OsKind::Nvml(_)));
    let speed: f64 = pci.attribute("pci_link_speed")?.parse().ok()?;
    let is_vague = has_nvml && speed < GENERATION_3_X16_GB_PER_S;
    (!is_vague).then(|| object::uplink(pci))?
}

/// The document in a text that may have something before and after it, in the same lines.
fn document(text: &str) -> String {
    let starts = ["<?xml", "<!DOCTYPE topology", "<topology", "<object type="];
    let start = starts.iter().filter_map(|start| text.find(start)).min().unwrap_or(0);
    let end_tag = "</topology>";
    let end = text.rfind(end_tag).map_or(text.len(), |at| at + end_tag.len());
    let lines = text[..start].matches('\n').count();
    "\n".repeat(lines) + text.get(start..end).unwrap_or(&text[start..])
}
