//! The devices below `<system>`, and what they hang on.

use std::collections::{BTreeMap, BTreeSet};

use super::super::xml::Element;
use super::attributes::number;
use super::claims::Claims;
use crate::{Node, NodeKind, Observations, PciAddress, Tool};

/// A device of the file. Its node names its parent by its position among the devices.
pub(super) struct Device {
    pub(super) node: Node,
    /// Position of the host that it is in; files of NVLink domains list several.
    pub(super) host: usize,
    /// By what GPUs are sorted: the number that NCCL gives it.
    pub(super) order: Option<u64>,
    /// Position of the NUMA node that it is below.
    pub(super) cpu: Option<usize>,
    /// Which part of its card it is.
    pub(super) partition: Option<u8>,
    /// What the file says about its links.
    pub(super) claims: Option<Claims>,
    /// Whether two listings of it cannot both be right.
    pub(super) is_contradicted: bool,
    pub(super) line: usize,
}

/// Where in the tree an element stands.
#[derive(Clone, Copy, Default)]
pub(super) struct Place {
    /// Position of what it hangs on, if that is certain.
    pub(super) parent: Option<usize>,
    /// Position of the NUMA node, if that is certain.
    pub(super) cpu: Option<usize>,
    pub(super) host: usize,
    /// Whether an end tag around it is missing or too many.
    pub(super) is_doubtful: bool,
}

impl Place {
    /// The same NUMA node, but nothing that it is known to hang on.
    pub(super) const fn detached(self) -> Self {
        Self { parent: None, is_doubtful: true, ..self }
    }

    /// The place of what stands directly in `element`, which is read as the device `parent`.
    pub(super) fn below(self, element: &Element, parent: Option<usize>) -> Self {
        let is_doubtful = self.is_doubtful || element.doubtful;
        Self { parent: parent.filter(|_| !is_doubtful), is_doubtful, ..self }
    }
}

/// What has been read so far.
pub(super) struct Machine<'a> {
    pub(super) observed: &'a mut Observations,
    pub(super) devices: Vec<Device>,
    /// The devices of each address: one, or the ports of one card.
    pub(super) by_address: BTreeMap<(PciAddress, usize), Vec<usize>>,
    /// Addresses of several switches, warned of.
    pub(super) repeated: BTreeSet<(PciAddress, usize)>,
    /// The partitions of cards, by the address that links name them by.
    pub(super) partitions: BTreeMap<(PciAddress, usize), usize>,
    /// Whether the file lists more than one; known when all is read.
    pub(super) has_several_hosts: bool,
    /// Positions of hosts by their hashes.
    hosts: BTreeMap<String, usize>,
    cpus: BTreeMap<(usize, u32), usize>,
    /// Whether RCCL wrote the file, so that all GPUs are AMD's.
    pub(super) is_rccl: bool,
}

impl<'a> Machine<'a> {
    /// Reads a `<system>`.
    pub(super) fn read(system: &Element, observed: &'a mut Observations) {
        let mut machine = Self {
            observed,
            devices: Vec::new(),
            by_address: BTreeMap::new(),
            partitions: BTreeMap::new(),
            repeated: BTreeSet::new(),
            has_several_hosts: false,
            hosts: BTreeMap::new(),
            cpus: BTreeMap::new(),
            is_rccl: system.attribute("version") == Some("2"),
        };
        for child in &system.children {
            if child.name == "cpu" {
                machine.cpu(child);
            } else {
                machine.child(child, Place::default().detached());
            }
        }
        machine.finish();
    }

    fn cpu(&mut self, element: &Element) {
        let host = self.host(element);
        let cpu = self.numa_node(element, host);
        let place = Place { cpu: Some(cpu), host, ..Place::default() }.below(element, Some(cpu));
        self.below_cpu(element, place);
    }

    fn below_cpu(&mut self, element: &Element, mut place: Place) {
        for child in &element.children {
            let is_cpu = child.name == "cpu";
            if is_cpu && self.is_same_cpu(child, place) {
                self.below_cpu(child, place.below(child, place.parent));
                continue;
            }
            if is_cpu || holds_cpu(child) {
                // One of the two ends too late or starts too early; nothing tells which one.
                let text =
                    "a <cpu> stands within another; the NUMA nodes of what follows are unknown";
                self.observed.warn(child.line, text);
                place = Place { host: place.host, ..Place::default() }.detached();
            }
            self.child(child, place);
        }
    }

    /// Whether it starts the NUMA node again that is being read.
    fn is_same_cpu(&mut self, element: &Element, place: Place) -> bool {
        let number = element.attribute("numaid").and_then(|number| number.parse().ok());
        let host = self.host(element);
        let known = number.and_then(|number: u32| self.cpus.get(&(host, number)));
        known.is_some() && known.copied() == place.cpu
    }

    /// Reads what stands in a `<cpu>` or `<pci>`. Elements of other names are for other versions.
    pub(super) fn child(&mut self, element: &Element, place: Place) {
        match element.name.as_str() {
            "pci" => self.pci(element, place),
            "cpu" => {
                let host = self.host(element);
                self.numa_node(element, host);
                self.below_cpu(element, Place { host, ..place.detached() });
            }
            "nic" => {
                for net in element.children_named("net") {
                    self.lone_net(net, place);
                }
            }
            "net" => self.lone_net(element, place),
            "gpu" => self.lone_gpu(element, place),
            _ => {}
        }
    }

    /// The host by its hash. Old files have none, and describe one host.
    fn host(&mut self, cpu: &Element) -> usize {
        let hash = cpu.attribute("host_hash").unwrap_or("");
        let next = self.hosts.len();
        *self.hosts.entry(hash.to_owned()).or_insert(next)
    }

    fn numa_node(&mut self, element: &Element, host: usize) -> usize {
        let number: Option<u32> = number(element, "numaid", self.observed);
        if let Some(&known) = number.and_then(|number| self.cpus.get(&(host, number))) {
            let text = "the <cpu> of this numaid is listed before; the two are read as one";
            self.observed.warn(element.line, text);
            return known;
        }
        let mut node = Node::new(NodeKind::NumaNode);
        if let Some(number) = number {
            node = node.labelled(Tool::Numa, number.to_string());
            node.numa_nodes.push(number);
        }
        node.architecture = processor(element);
        node.cpu_affinity =
            element.attribute("affinity").filter(|mask| !mask.is_empty()).map(str::to_owned);
        let place = Place { host, ..Place::default() };
        let index = self.add(self.device(node, element, place));
        self.devices[index].cpu = None;
        if let Some(number) = number {
            self.cpus.insert((host, number), index);
        }
        index
    }

    /// A device at this place.
    pub(super) fn device(&self, mut node: Node, element: &Element, place: Place) -> Device {
        if let Some(cpu) = place.cpu {
            node.numa_nodes.clone_from(&self.devices[cpu].node.numa_nodes);
        }
        node.parent = place.parent;
        Device {
            node,
            host: place.host,
            order: None,
            cpu: place.cpu,
            partition: None,
            claims: None,
            is_contradicted: false,
            line: element.line,
        }
    }

    pub(super) fn add(&mut self, device: Device) -> usize {
        let index = self.devices.len();
        if let Some(address) = device.node.pci {
            self.by_address.entry((address, device.host)).or_default().push(index);
        }
        self.devices.push(device);
        index
    }

    /// What a person may know the device by.
    pub(super) fn name(&self, device: usize) -> String {
        let node = &self.devices[device].node;
        let label = node.labels.first().map(|label| label.name.clone());
        let address = || node.pci.map(|address| address.to_string());
        label.or_else(address).unwrap_or_else(|| "a device".to_owned())
    }
}

/// Whether a `<cpu>` stands somewhere in it.
fn holds_cpu(element: &Element) -> bool {
    element.children.iter().any(|child| child.name == "cpu" || holds_cpu(child))
}

/// What tells the family of a processor: architecture, vendor, family and model, as far as they
/// are stated.
fn processor(cpu: &Element) -> Option<String> {
    let stated: Vec<&str> = ["arch", "vendor", "familyid", "modelid"]
        .into_iter()
        .map_while(|attribute| cpu.attribute(attribute).filter(|value| !value.trim().is_empty()))
        .collect();
    (!stated.is_empty()).then(|| stated.join(" "))
}
