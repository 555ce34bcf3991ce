//! NUMA nodes, and what is near to them.

use std::collections::BTreeMap;

use super::super::xml::Element;
use super::bitmap::Bitmap;
use super::object::{children, decimal, kind, set};
use super::processor;
use crate::{Node, NodeKind, Observations, Tool};

/// NUMA nodes of a machine, at most. Linux knows 1024.
const MOST_NODES: usize = 1024;

/// NUMA nodes that a thing can be near to; near to more is near to none.
const MOST_NEAR: usize = 64;

/// The NUMA nodes of a machine.
pub(super) struct NumaNodes {
    nodes: BTreeMap<u32, NumaNode>,
    /// Those of the machine as a whole.
    all: Vec<u32>,
    /// The processor, as topologies of NCCL state it: `x86_64 GenuineIntel 6 85`.
    processor: Option<String>,
    /// Whether the objects stand where they belong, so that what encloses a device is near to it.
    are_placed: bool,
}

/// Where a thing is in the machine.
#[derive(Clone, Debug, Default)]
pub(super) struct Locality {
    /// The NUMA nodes that it is near to.
    pub(super) numa_nodes: Vec<u32>,
    /// The CPUs that it is near to.
    pub(super) cpu_affinity: Option<String>,
}

struct NumaNode {
    cpus: Option<Bitmap>,
    memory: Memory,
    /// Position among the nodes of the result.
    position: usize,
}

impl NumaNodes {
    /// Adds the NUMA nodes of a machine. `topology` encloses it, or is the same.
    pub(super) fn add(
        topology: &Element,
        objects: &[&Element],
        are_placed: bool,
        observed: &mut Observations,
    ) -> Self {
        let processor = processor::name(topology, objects);
        let mut this = Self { nodes: BTreeMap::new(), all: Vec::new(), processor, are_placed };
        for object in objects {
            this.collect(object, observed);
        }
        for (number, node) in &mut this.nodes {
            node.position = observed.add_node(node.as_node(*number, this.processor.as_ref()));
        }
        this.all = objects.first().map(|machine| this.of(machine)).unwrap_or_default();
        this
    }

    fn collect(&mut self, object: &Element, observed: &mut Observations) {
        if kind(object) == "NUMANode" {
            self.insert(object, observed);
        }
        for child in children(object) {
            self.collect(child, observed);
        }
    }

    fn insert(&mut self, element: &Element, observed: &mut Observations) {
        let number = element.attribute("os_index").and_then(decimal);
        let Some(number) = number.filter(|_| self.nodes.len() < MOST_NODES) else {
            let text = "this NUMA node has no readable os_index, or is one too many; \
                        it is left out";
            observed.warn(element.line, text);
            return;
        };
        if self.nodes.contains_key(&number) {
            let text = format!("NUMA node {number} is listed before; this one is left out");
            observed.warn(element.line, text);
            return;
        }
        let cpus = set(element, "cpuset");
        let memory = memory(element, cpus.as_ref());
        self.nodes.insert(number, NumaNode { cpus, memory, position: 0 });
    }

    /// Whether what encloses a thing is near to it.
    pub(super) const fn are_placed(&self) -> bool {
        self.are_placed
    }

    /// Position of the node of a NUMA node.
    pub(super) fn position(&self, number: u32) -> Option<usize> {
        self.nodes.get(&number).map(|node| node.position)
    }

    /// What is near to things in an object. Nothing is near to all NUMA nodes of a machine: that
    /// is where hwloc places things of which it knows no place.
    pub(super) fn locality(&self, object: &Element) -> Locality {
        if !self.are_placed {
            return Locality::default();
        }
        let near = self.of(object);
        if near.len() > MOST_NEAR || near.len() > 1 && near == self.all {
            return Locality::default();
        }
        let cpus = set(object, "cpuset").filter(|cpus| !near.is_empty() && !cpus.is_empty());
        Locality { numa_nodes: near, cpu_affinity: cpus.and_then(|cpus| cpus.list()) }
    }

    /// The one NUMA node that an object belongs to.
    pub(super) fn only_position(&self, object: &Element) -> Option<usize> {
        match self.of(object)[..] {
            [number] if self.are_placed => self.position(number),
            _ => None,
        }
    }

    /// The NUMA nodes of an object, ascending.
    fn of(&self, object: &Element) -> Vec<u32> {
        let stated = |attribute| {
            let set = set(object, attribute)?;
            (!set.is_empty()).then(|| set.numbers().take(MOST_NODES).collect::<Vec<_>>())
        };
        let is_node = kind(object) == "NUMANode";
        let own = object.attribute("os_index").filter(|_| is_node).and_then(decimal);
        let numbers = own
            .map(|number| vec![number])
            .or_else(|| stated("nodeset"))
            .or_else(|| stated("complete_nodeset"))
            .unwrap_or_else(|| self.by_cpus(object));
        self.with_cpus(numbers)
    }

    fn by_cpus(&self, object: &Element) -> Vec<u32> {
        let Some(cpus) = set(object, "cpuset") else { return Vec::new() };
        let meets = |node: &NumaNode| node.cpus.as_ref().is_some_and(|own| own.intersects(&cpus));
        self.nodes.iter().filter(|(_, node)| meets(node)).map(|(&number, _)| number).collect()
    }

    /// Without nodes that are memory of a device, and without memory of special kinds where there
    /// is ordinary memory.
    fn with_cpus(&self, mut numbers: Vec<u32>) -> Vec<u32> {
        let memory = |number: &u32| {
            let node = self.nodes.get(number);
            node.map_or(Memory::Ordinary, |node| node.memory)
        };
        numbers.retain(|number| memory(number) != Memory::OfDevice);
        if numbers.iter().any(|number| memory(number) == Memory::Ordinary) {
            numbers.retain(|number| memory(number) == Memory::Ordinary);
        }
        numbers
    }
}

impl NumaNode {
    fn as_node(&self, number: u32, processor: Option<&String>) -> Node {
        let mut node = Node::new(NodeKind::NumaNode).labelled(Tool::Numa, number.to_string());
        node.numa_nodes.push(number);
        if self.memory != Memory::OfDevice {
            node.cpu_affinity = self.cpus.as_ref().and_then(Bitmap::list);
            node.architecture = processor.cloned();
        }
        node
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Memory {
    Ordinary,
    /// High-bandwidth, non-volatile or CXL memory.
    Special,
    /// Memory of a GPU, which no CPU is near to.
    OfDevice,
}

fn memory(node: &Element, cpus: Option<&Bitmap>) -> Memory {
    match node.attribute("subtype") {
        Some("GPUMemory") => Memory::OfDevice,
        _ if cpus.is_some_and(Bitmap::is_empty) => Memory::OfDevice,
        None | Some("" | "DRAM") => Memory::Ordinary,
        Some(_) => Memory::Special,
    }
}
