//! What a `<pci>` is: a GPU, a NIC, a bridge or switch, or something unknown.

use super::super::xml::Element;
use super::attributes::{address, class, decimal, model, number, uplink};
use super::claims::{Claims, architecture};
use super::machine::{Device, Machine, Place};
use crate::{Figure, Label, Node, NodeKind, PciAddress, Tool};

/// The source that figures of these files name.
pub(super) const SOURCE: &str = "NCCL topology";

impl Machine<'_> {
    /// Reads a `<pci>` and all that is below it.
    pub(super) fn pci(&mut self, element: &Element, place: Place) {
        let pci = address(element, "busid", self.observed);
        if let Some(repeated) = element.children_named("pci").find(|child| is_at(child, pci)) {
            self.repeated_line(element, repeated, place);
            return;
        }
        let kind = self.kind(element);
        let mut node = Node::new(kind);
        node.model = model(element);
        node.uplink = uplink(element, self.observed);
        node.pci = pci;
        let known = pci.and_then(|pci| self.by_address.get(&(pci, place.host))).cloned();
        if !is_endpoint(kind) && known.as_ref().is_none_or(|known| self.is_inner(known)) {
            let device = self.device(node, element, place);
            self.inner(element, device, known.as_deref(), place);
            return;
        }
        let devices = match kind {
            NodeKind::Gpu => self.gpus(element, node, place),
            NodeKind::Nic => self.nics(element, node, place),
            _ => vec![self.device(node, element, place)],
        };
        match known {
            Some(known) => self.repeated_card(element, &known, &devices),
            None => self.add_card(devices),
        }
        self.below_endpoint(element, place);
    }

    /// What it is, by its class and by what is in it. Nothing else tells: a device number is in
    /// no table here, and a guess would be wrong for the next one.
    fn kind(&mut self, element: &Element) -> NodeKind {
        let class = class(element, "class", self.observed);
        let class = class.as_deref().unwrap_or("");
        let has = |name: &str| element.children_named(name).next().is_some();
        let has_net = has("nic") || has("net");
        if class.starts_with("0600") {
            NodeKind::HostBridge
        } else if class.starts_with("0604") {
            NodeKind::PcieSwitch
        } else if class.starts_with("0680") && class != "068001" {
            NodeKind::NvSwitch
        } else if class.starts_with("03") || has("gpu") && (!class.is_empty() || !has("pci")) {
            NodeKind::Gpu
        } else if class.starts_with("02") || has_net && !has("pci") {
            NodeKind::Nic
        } else if has("pci") {
            NodeKind::PcieSwitch
        } else {
            NodeKind::PciDevice
        }
    }

    /// The GPU on a card, or the card and its partitions.
    fn gpus(&mut self, element: &Element, node: Node, place: Place) -> Vec<Device> {
        let gpus: Vec<&Element> = element.children_named("gpu").collect();
        let parts: Vec<Option<u8>> =
            gpus.iter().map(|gpu| number(gpu, "mlopart", self.observed)).collect();
        let are_parts = gpus.len() > 1 && parts.iter().all(Option::is_some);
        if are_parts && (1..parts.len()).all(|index| !parts[..index].contains(&parts[index])) {
            return self.partitions(element, node, &gpus, &parts, place);
        }
        let mut device = self.device(node, element, place);
        let Some(first) = gpus.first() else {
            device.claims = Claims::of_card(element, self.observed);
            device.node.architecture = architecture(&device.claims);
            return vec![device];
        };
        if gpus.iter().any(|gpu| gpu.attribute("dev") != first.attribute("dev")) {
            let text = "several GPUs are said to be on this card, which one is unknown";
            self.observed.warn(element.line, text);
            return vec![device];
        }
        // Of several with one number each is a process that uses the GPU.
        self.fill_gpu(&mut device, element, first);
        vec![device]
    }

    fn partitions(
        &mut self,
        element: &Element,
        mut node: Node,
        gpus: &[&Element],
        parts: &[Option<u8>],
        place: Place,
    ) -> Vec<Device> {
        node.kind = NodeKind::Card;
        let mut devices = vec![self.device(node, element, place)];
        for (gpu, part) in gpus.iter().zip(parts) {
            let mut device = self.device(Node::new(NodeKind::Gpu), gpu, place);
            device.partition = *part;
            self.fill_gpu(&mut device, element, gpu);
            devices.push(device);
        }
        devices
    }

    /// A GPU by itself: the `<pci>` around it is another device, or is missing.
    pub(super) fn lone_gpu(&mut self, gpu: &Element, place: Place) {
        let text = "this <gpu> is not in the <pci> of a GPU, so its address is unknown";
        self.observed.warn(gpu.line, text);
        let mut device = self.device(Node::new(NodeKind::Gpu), gpu, place);
        self.fill_gpu(&mut device, gpu, gpu);
        self.add(device);
    }

    fn fill_gpu(&mut self, device: &mut Device, card: &Element, gpu: &Element) {
        device.line = gpu.line;
        device.claims = Some(Claims::of_gpu(card, gpu, self.is_rccl, self.observed));
        device.node.architecture = architecture(&device.claims);
        device.order = number(gpu, "dev", self.observed);
        if let Some(number) = device.order {
            let name = format!("GPU{number}");
            device.node.labels.push(Label { tool: Tool::Nccl, name });
        }
    }

    /// The ports of a card; where the file lists none, the card as one.
    fn nics(&mut self, element: &Element, node: Node, place: Place) -> Vec<Device> {
        let nets = element
            .children
            .iter()
            .flat_map(|child| match child.name.as_str() {
                "nic" => child.children.iter().filter(|net| net.name == "net").collect(),
                "net" => vec![child],
                _ => Vec::new(),
            })
            .collect::<Vec<_>>();
        if nets.is_empty() {
            return vec![self.device(node, element, place)];
        }
        nets.into_iter().map(|net| self.net(net, node.clone(), place)).collect()
    }

    /// A port of which no card is known: a virtual one, or one that hangs on a switch.
    pub(super) fn lone_net(&mut self, net: &Element, place: Place) {
        let device = self.net(net, Node::new(NodeKind::Nic), place);
        self.add(device);
    }

    fn net(&mut self, net: &Element, mut node: Node, place: Place) -> Device {
        if let Some(name) = net.attribute("name").filter(|name| !name.is_empty()) {
            node = node.labelled(Tool::Os, name);
        }
        let number: Option<u64> = number(net, "dev", self.observed);
        if let Some(number) = number {
            node = node.labelled(Tool::Nccl, format!("NET{number}"));
        }
        let megabits_per_s = decimal(net, "speed", self.observed);
        node.network_gb_per_s = megabits_per_s
            .and_then(|speed| Figure::reported(speed / 8000.0, SOURCE).ok())
            .unwrap_or_default();
        self.device(node, net, place)
    }

    /// Adds what [`gpus`](Self::gpus) or [`nics`](Self::nics) made of a card.
    fn add_card(&mut self, devices: Vec<Device>) {
        let first = self.devices.len();
        for mut device in devices {
            device.node.card = device.partition.map(|_| first);
            self.add(device);
        }
    }

    /// What stands in a GPU or NIC although nothing can hang on it.
    fn below_endpoint(&mut self, element: &Element, place: Place) {
        let is_nic = |child: &Element| matches!(child.name.as_str(), "nic" | "net");
        let has_gpu = element.children_named("gpu").next().is_some();
        for child in &element.children {
            if child.name == "pci" || has_gpu && is_nic(child) {
                let text = "this stands in a GPU or NIC; what it hangs on is unknown";
                self.observed.warn(child.line, text);
                self.child(child, place.detached());
            }
        }
    }

    /// Adds a bridge, switch or unknown device with what hangs on it.
    fn inner(
        &mut self,
        element: &Element,
        mut device: Device,
        known: Option<&[usize]>,
        place: Place,
    ) {
        if let Some(known) = known {
            self.repeated_switch(element, &mut device, known);
        }
        device.claims = Claims::of_switch(element);
        let index = self.add(device);
        for child in &element.children {
            self.child(child, place.below(element, Some(index)));
        }
    }

    fn is_inner(&self, devices: &[usize]) -> bool {
        devices.iter().all(|&device| !is_endpoint(self.devices[device].node.kind))
    }
}

const fn is_endpoint(kind: NodeKind) -> bool {
    matches!(kind, NodeKind::Gpu | NodeKind::Nic | NodeKind::Card)
}

fn is_at(pci: &Element, address: Option<PciAddress>) -> bool {
    let own = pci.attribute("busid").and_then(|text| text.parse().ok());
    address.is_some() && own == address
}
