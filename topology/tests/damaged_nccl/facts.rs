//! What is said about devices, and whether it is still true.

use std::collections::{BTreeMap, BTreeSet};

use hopwise_topology::{NodeKind, Observations, PciAddress, Tool, Uplink};

/// What is said about a device, by addresses.
#[derive(Debug, PartialEq)]
pub(crate) struct Facts {
    kind: NodeKind,
    numbers: Vec<String>,
    numa_nodes: Vec<u32>,
    uplink: Option<Uplink>,
    nvlinks_up: Option<u16>,
    architecture: Option<String>,
    parent: Option<PciAddress>,
    /// Links from it, with the address, number or kind of where they lead.
    links: BTreeSet<String>,
}

pub(crate) fn facts(observed: &Observations) -> BTreeMap<PciAddress, Facts> {
    let mut all = BTreeMap::new();
    for (index, node) in observed.nodes.iter().enumerate() {
        let links = observed.links.iter().filter(|link| link.from == index).map(|link| {
            let to = &observed.nodes[link.to];
            let place = to.pci.map_or_else(|| format!("{:?}", to.kind), |pci| pci.to_string());
            format!("{place} {:?} {}", link.kind, link.bandwidth)
        });
        let Some(address) = node.pci else { continue };
        let facts = Facts {
            kind: node.kind,
            numbers: node.label(Tool::Nccl).map(str::to_owned).into_iter().collect(),
            numa_nodes: node.numa_nodes.clone(),
            uplink: node.uplink,
            nvlinks_up: node.nvlinks_up,
            architecture: node.architecture.clone(),
            parent: node.parent.and_then(|parent| observed.nodes[parent].pci),
            links: links.collect(),
        };
        // Of the ports of a card, the first.
        all.entry(address).or_insert(facts);
    }
    all
}

/// What is said of a device after the damage that is not the truth.
pub(crate) fn lies(
    truth: &Facts,
    said: &Facts,
    place_is_intact: bool,
    is_moved: bool,
) -> Vec<&'static str> {
    let mut lies = Vec::new();
    let mut check = |what, is_true: bool| {
        if !is_true {
            lies.push(what);
        }
    };
    check("kind", said.kind == truth.kind || said.kind == NodeKind::PciDevice);
    check("number", said.numbers.is_empty() || said.numbers == truth.numbers);
    check("uplink", said.uplink.is_none() || said.uplink == truth.uplink);
    check("nvlinks_up", said.nvlinks_up.is_none() || said.nvlinks_up == truth.nvlinks_up);
    let architecture = &said.architecture;
    check("architecture", architecture.is_none() || *architecture == truth.architecture);
    check("links", said.links.is_subset(&truth.links));
    if place_is_intact {
        let numa_nodes = &said.numa_nodes;
        // Both are told by what encloses the element, whose end may be the line that was moved.
        check("numa_nodes", is_moved || numa_nodes.is_empty() || *numa_nodes == truth.numa_nodes);
        check("parent", is_moved || said.parent.is_none() || said.parent == truth.parent);
    }
    lies
}
