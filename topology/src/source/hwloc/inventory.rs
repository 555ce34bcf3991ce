//! The PCI devices of a machine, with where they hang and what drivers call them.

use std::collections::BTreeMap;

use super::super::pci_tree::{Bridge, PciTree, Root};
use super::super::xml::Element;
use super::numa::{Locality, NumaNodes};
use super::object::{PciType, buses, children, is_io, kind, uplink};
use super::os_device::OsDevice;
use crate::{Observations, PciAddress};

/// What is attached to a machine.
pub(super) struct Inventory<'a> {
    pub(super) tree: PciTree,
    pub(super) devices: Vec<Device<'a>>,
    pub(super) localities: Vec<Locality>,
    /// Objects by the number that is unique in a file; `None` for a number that is not.
    pub(super) objects: BTreeMap<u64, Option<Object<'a>>>,
    /// Version of the file.
    major: u32,
    by_address: BTreeMap<PciAddress, usize>,
}

/// A PCI device, or a device without one, with all names that it has.
pub(super) struct Device<'a> {
    pub(super) address: Option<PciAddress>,
    pub(super) pci_type: Option<PciType>,
    pub(super) os_devices: Vec<OsDevice<'a>>,
    /// `None` if drivers name a device of which the file shows no PCI device.
    pub(super) pci: Option<&'a Element>,
    /// Its place in the tree of bridges, if that is certain.
    pub(super) place: Option<usize>,
    pub(super) locality: Option<usize>,
}

/// What distances are between.
#[derive(Clone, Copy)]
pub(super) enum Object<'a> {
    /// Position of the device.
    Device(usize),
    /// A part of the machine that has CPUs or memory.
    Place(&'a Element),
}

/// What encloses an object.
#[derive(Clone, Copy, Default)]
struct Around {
    place: Option<usize>,
    locality: Option<usize>,
    device: Option<usize>,
}

impl<'a> Inventory<'a> {
    pub(super) fn of(
        objects: &[&'a Element],
        major: u32,
        numa: &NumaNodes,
        observed: &mut Observations,
    ) -> Self {
        let mut this = Self {
            tree: PciTree::default(),
            devices: Vec::new(),
            localities: Vec::new(),
            objects: BTreeMap::new(),
            major,
            by_address: BTreeMap::new(),
        };
        for object in objects {
            this.take(object, Around::default(), numa, observed);
        }
        this
    }

    fn take(
        &mut self,
        object: &'a Element,
        mut around: Around,
        numa: &NumaNodes,
        observed: &mut Observations,
    ) {
        match kind(object) {
            "Bridge" => around.place = self.bridge(object, around, observed),
            "PCIDev" => around.device = Some(self.pci_device(object, around, observed)),
            "OSDev" => around.device = Some(self.os_device(object, around)),
            _ => {
                if children(object).any(is_io) {
                    self.localities.push(numa.locality(object));
                    around = Around { locality: Some(self.localities.len() - 1), ..around };
                }
            }
        }
        self.number(object, around.device);
        for child in children(object) {
            self.take(child, around, numa, observed);
        }
    }

    /// Notes the object by its number.
    fn number(&mut self, object: &'a Element, device: Option<usize>) {
        let number = object.attribute("gp_index").and_then(super::object::decimal);
        let Some(number) = number else { return };
        let this = match (kind(object), device) {
            ("PCIDev" | "OSDev", Some(device)) => Object::Device(device),
            _ => Object::Place(object),
        };
        self.objects.entry(number).and_modify(|known| *known = None).or_insert(Some(this));
    }

    /// Adds a bridge; returns its place, if that is certain.
    fn bridge(
        &mut self,
        object: &Element,
        around: Around,
        observed: &mut Observations,
    ) -> Option<usize> {
        let Some(buses) = buses(object) else {
            let text =
                "this bridge has no readable bridge_pci; what hangs on what below is unknown";
            observed.warn(object.line, text);
            return None;
        };
        // Only a bridge on a PCI bus has an address.
        let Some(busid) = object.attribute("pci_busid") else {
            let here = around.locality.map(|at| self.localities[at].clone()).unwrap_or_default();
            let Locality { numa_nodes, cpu_affinity } = here;
            return Some(self.tree.add_root(Root { buses, numa_nodes, cpu_affinity }));
        };
        let above = around.place?;
        let address: Option<PciAddress> = busid.parse().ok();
        let fits = |address: &PciAddress| {
            self.tree.buses(above).has_directly(*address) && self.tree.buses(above).has_below(buses)
        };
        let Some(address) = address.filter(fits) else {
            let text = format!(
                "bridge {busid} is not on the bus of the bridge that it stands in; what hangs on \
                 what below is unknown"
            );
            observed.warn(object.line, text);
            return None;
        };
        let bridge = Bridge { address, buses, uplink: uplink(object) };
        Some(self.tree.add_bridge(above, bridge))
    }

    /// Adds a PCI device; returns its position.
    fn pci_device(
        &mut self,
        object: &'a Element,
        around: Around,
        observed: &mut Observations,
    ) -> usize {
        let busid = object.attribute("pci_busid").unwrap_or("");
        let address: Option<PciAddress> = busid.parse().ok();
        if address.is_none() {
            observed.warn(object.line, "this PCI device has no readable pci_busid");
        }
        if let Some(&known) = address.and_then(|address| self.by_address.get(&address)) {
            let text = format!("PCI device {busid} is listed before; the two are taken as one");
            observed.warn(object.line, text);
            return known;
        }
        let is_there = |place: &usize| {
            address.is_some_and(|address| self.tree.buses(*place).has_directly(address))
        };
        let place = around.place.filter(is_there);
        if place.is_none() && around.place.is_some() {
            let text = format!(
                "PCI device {busid} is not on the bus of the bridge that it stands in; what it \
                 hangs on is unknown"
            );
            observed.warn(object.line, text);
        }
        let device = Device {
            address,
            pci_type: PciType::of(object),
            os_devices: Vec::new(),
            pci: Some(object),
            place,
            locality: around.locality,
        };
        let at = self.add(device);
        if let Some(address) = address {
            self.by_address.insert(address, at);
        }
        at
    }

    /// Adds a driver's or library's device to the PCI device that it stands in, or by itself.
    fn os_device(&mut self, object: &'a Element, around: Around) -> usize {
        let os_device = OsDevice::of(object, self.major);
        let at = around.device.unwrap_or_else(|| {
            self.add(Device {
                address: None,
                pci_type: None,
                os_devices: Vec::new(),
                pci: None,
                place: None,
                locality: around.locality,
            })
        });
        self.devices[at].os_devices.push(os_device);
        at
    }

    fn add(&mut self, device: Device<'a>) -> usize {
        self.devices.push(device);
        self.devices.len() - 1
    }
}
