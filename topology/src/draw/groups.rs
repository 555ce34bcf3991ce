//! Which devices belong together: by NUMA node, and within it by what they hang on.

use std::collections::BTreeMap;

use crate::{InterconnectType, Machine, NodeKind};

/// The devices of a NUMA node.
pub(super) struct Group {
    pub(super) title: String,
    pub(super) parts: Vec<Part>,
}

/// Devices that hang on one thing. Without a title they hang on nothing that is known.
pub(super) struct Part {
    pub(super) title: String,
    pub(super) gpus: Vec<usize>,
    pub(super) nics: Vec<usize>,
}

/// The groups of a machine, by rising NUMA node; those without one last.
pub(super) fn groups(machine: &Machine) -> Vec<Group> {
    let classes = machine.classes();
    let devices: Vec<usize> = machine.gpus().iter().chain(machine.nics()).copied().collect();
    let homes: Vec<Home> = devices.iter().map(|&at| home(machine, at)).collect();
    let homes = settled(homes, &classes);
    let mut groups: BTreeMap<Option<u32>, BTreeMap<usize, Part>> = BTreeMap::new();
    // Those without a NUMA node come last, but sort first.
    let shared = shared_switches(machine, &devices, &classes);
    for (number, &device) in devices.iter().enumerate() {
        let (key, title) = match &homes[number].hangs_on {
            Some((position, title)) => (*position, title.clone()),
            None => shared[number].clone(),
        };
        let part = groups
            .entry(homes[number].numa)
            .or_default()
            .entry(key)
            .or_insert_with(|| Part { title, gpus: Vec::new(), nics: Vec::new() });
        let is_gpu = machine.nodes()[device].kind == NodeKind::Gpu;
        if is_gpu { part.gpus.push(device) } else { part.nics.push(device) }
    }
    let named = |numa: Option<u32>| {
        numa.map_or_else(|| "NUMA node not told".to_owned(), |numa| format!("NUMA node {numa}"))
    };
    let mut sorted: Vec<_> = groups.into_iter().collect();
    sorted.sort_by_key(|(numa, _)| (numa.is_none(), *numa));
    let group = |(numa, parts): (Option<u32>, BTreeMap<usize, Part>)| {
        let mut parts: Vec<Part> = parts.into_values().collect();
        parts.sort_by_key(|part| part.gpus.first().or(part.nics.first()).copied());
        Group { title: named(numa), parts }
    };
    sorted.into_iter().map(group).collect()
}

/// Where a device is.
struct Home {
    numa: Option<u32>,
    /// Position and name of the switch or host bridge.
    hangs_on: Option<(usize, String)>,
}

fn home(machine: &Machine, position: usize) -> Home {
    let node = &machine.nodes()[position];
    let domains = machine.failure_domains(position);
    let nodes = || domains.iter().map(|&at| (at, &machine.nodes()[at]));
    let is_shared =
        |kind| matches!(kind, NodeKind::PcieSwitch | NodeKind::HostBridge | NodeKind::Card);
    let hangs_on =
        nodes().find(|(_, node)| is_shared(node.kind)).map(|(at, _)| (at, machine.name(at)));
    let above = nodes()
        .find_map(|(_, node)| (node.kind == NodeKind::NumaNode).then(|| node.numa_node())?);
    Home { numa: node.numa_node().or(above), hangs_on }
}

/// A device of which the NUMA node is not told is where a near one is.
fn settled(mut homes: Vec<Home>, classes: &[Vec<String>]) -> Vec<Home> {
    let known: Vec<Option<u32>> = homes.iter().map(|home| home.numa).collect();
    for (at, home) in homes.iter_mut().enumerate().filter(|(_, home)| home.numa.is_none()) {
        let near = |names: &[&str]| {
            let is_near = |other: &usize| names.contains(&classes[at][*other].as_str());
            (0..known.len()).filter(is_near).find_map(|other| known[other])
        };
        home.numa = near(&["PIX"]).or_else(|| near(&["PXB"])).or_else(|| near(&["PHB", "NODE"]));
    }
    homes
}

/// For each device, which others it shares a switch or a host bridge with, as the classes say:
/// a key, and a title if it shares one.
fn shared_switches(
    machine: &Machine,
    devices: &[usize],
    classes: &[Vec<String>],
) -> Vec<(usize, String)> {
    let first_free = machine.nodes().len();
    let mut leader: Vec<usize> = (0..devices.len()).collect();
    let is_direct = |class: &str| class == InterconnectType::PcieSwitch.class_name();
    for a in 0..devices.len() {
        for b in 0..a {
            if is_direct(&classes[a][b]) {
                let (from, to) = (leader[a].max(leader[b]), leader[a].min(leader[b]));
                leader.iter_mut().filter(|leader| **leader == from).for_each(|leader| *leader = to);
            }
        }
    }
    let count = |of: usize| leader.iter().filter(|&&leader| leader == of).count();
    leader
        .iter()
        .map(|&of| match count(of) {
            // All that share nothing are together, without a title.
            1 => (first_free + devices.len(), String::new()),
            _ => (first_free + of, "PCIe switch".to_owned()),
        })
        .collect()
}
