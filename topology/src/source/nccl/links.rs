//! From what GPUs and switches say about their links, the links.

use std::collections::{BTreeMap, BTreeSet};

use super::card::SOURCE;
use super::claims::{Claim, Claims};
use super::machine::Machine;
use super::nvlink::{NvLinks, generation};
use crate::{Figure, InterconnectType, Link, Node, NodeKind, PciAddress};

/// The links of a machine, by the positions of its devices.
#[derive(Default)]
pub(super) struct Links {
    pub(super) links: Vec<Link>,
    /// The node of all NVSwitches that the file does not list as devices.
    switch: Option<usize>,
}

impl Links {
    /// The links that the devices state; devices may be added, and lines of warnings follow their
    /// order.
    pub(super) fn of(machine: &mut Machine<'_>) -> Self {
        let mut links = Self::default();
        let mut to_switch = Vec::new();
        for device in 0..machine.devices.len() {
            let Some(claims) = machine.devices[device].claims.take() else { continue };
            if claims.is_amd {
                links.add_xgmi(device, &claims, machine);
            } else if let Some(count) = links.add_nvlinks(device, &claims, machine) {
                to_switch.push((device, count));
            }
            links.add_to_cpu(device, &claims, machine);
            links.add_same_chip(device, &claims, machine);
        }
        warn_of_differences(&to_switch, machine);
        links
    }

    fn add(&mut self, from: usize, to: usize, kind: InterconnectType) {
        let (bandwidth, latency) = (Figure::unknown(), Figure::unknown());
        self.links.push(Link { from, to, kind, bandwidth, latency });
    }

    fn add_both(&mut self, one: usize, another: usize, kind: InterconnectType) {
        self.add(one, another, kind);
        self.add(another, one, kind);
    }

    /// Each direction is stated by the GPU that sends.
    fn add_xgmi(&mut self, gpu: usize, claims: &Claims, machine: &mut Machine<'_>) {
        let (stated, _) = distinct(&claims.links, machine);
        for claim in stated {
            match machine.find(&claim.target, gpu) {
                Some(target) if target == gpu => machine.warn_of_self(claim),
                Some(target) if machine.devices[target].node.kind == NodeKind::Gpu => {
                    self.add(gpu, target, InterconnectType::InfinityFabric { links: claim.count });
                }
                _ => machine.warn_of_unknown(claim),
            }
        }
    }

    /// The number of links to NVSwitches if the GPU is one of a kind that has NVLink, and its list
    /// is whole.
    fn add_nvlinks(
        &mut self,
        gpu: usize,
        claims: &Claims,
        machine: &mut Machine<'_>,
    ) -> Option<u32> {
        let nvlinks = NvLinks::of(gpu, claims, machine);
        let generation = claims.compute_capability.and_then(generation);
        for &(target, links) in &nvlinks.direct {
            let kind = InterconnectType::NvLink { generation, links };
            if machine.devices[target].node.kind == NodeKind::NvSwitch {
                self.add_both(gpu, target, kind);
            } else {
                self.add(gpu, target, kind);
            }
        }
        if let Some(links) = nvlinks.to_switches {
            let switch = self.switch(machine);
            self.add_both(gpu, switch, InterconnectType::NvLink { generation, links });
        }
        let cpu = machine.devices[gpu].cpu;
        if let (Some(links), Some(cpu)) = (nvlinks.to_cpu, cpu) {
            self.add_both(gpu, cpu, InterconnectType::NvLink { generation, links });
        }
        machine.devices[gpu].node.nvlinks_up =
            nvlinks.total.filter(|_| !claims.links.is_empty()).and_then(|up| up.try_into().ok());
        let is_gpu = machine.devices[gpu].node.kind == NodeKind::Gpu;
        let to_switches = nvlinks.to_switches.map_or(0, u32::from);
        (is_gpu && nvlinks.total.is_some()).then_some(to_switches)
    }

    fn switch(&mut self, machine: &mut Machine<'_>) -> usize {
        *self.switch.get_or_insert_with(|| {
            let element = super::Element::default();
            let place = super::machine::Place::default();
            let device = machine.device(Node::new(NodeKind::NvSwitch), &element, place);
            machine.add(device)
        })
    }

    fn add_to_cpu(&mut self, gpu: usize, claims: &Claims, machine: &mut Machine<'_>) {
        let Some(gb_per_s) = claims.to_cpu else { return };
        let line = machine.devices[gpu].line;
        let Some(cpu) = machine.devices[gpu].cpu else {
            let text = "the <c2c> is left out, since the CPU that the GPU belongs to is unknown";
            machine.observed.warn(line, text);
            return;
        };
        let first = self.links.len();
        self.add_both(gpu, cpu, InterconnectType::NvLinkC2c);
        let bandwidth = gb_per_s.and_then(|gb_per_s| Figure::reported(gb_per_s, SOURCE).ok());
        for link in &mut self.links[first..] {
            link.bandwidth = bandwidth.clone().unwrap_or_default();
        }
    }

    /// Some chips show as several switches, with links between them that are no PCIe slots.
    fn add_same_chip(&mut self, switch: usize, claims: &Claims, machine: &Machine<'_>) {
        for target in &claims.same_chip {
            if let Some(target) = machine.find(target, switch).filter(|&target| target != switch) {
                self.add(switch, target, InterconnectType::Pcie { generation: None, lanes: None });
            }
        }
    }
}

/// The claims without those that stand there twice, and whether that is all of them: where two
/// differ, neither is taken.
pub(super) fn distinct<'c>(
    claims: &'c [Claim],
    machine: &mut Machine<'_>,
) -> (Vec<&'c Claim>, bool) {
    let mut first: BTreeMap<&str, &Claim> = BTreeMap::new();
    let mut contradicted = BTreeSet::new();
    for claim in claims {
        let known = *first.entry(&claim.target).or_insert(claim);
        if known.count != claim.count {
            let text = format!("two numbers of links to {}; neither is taken", claim.target);
            machine.observed.warn(claim.line, text);
            contradicted.insert(claim.target.as_str());
        } else if !std::ptr::eq(known, claim) {
            machine.observed.warn(claim.line, "the same link is listed twice; it is read once");
        }
    }
    let is_taken = |claim: &&Claim| {
        let target = claim.target.as_str();
        std::ptr::eq(first[target], *claim) && !contradicted.contains(target)
    };
    (claims.iter().filter(is_taken).collect(), contradicted.is_empty())
}

impl Machine<'_> {
    /// The device at an address, as `from` would name it: on its own host first.
    pub(super) fn find(&self, target: &str, from: usize) -> Option<usize> {
        let address: PciAddress = target.parse().ok()?;
        let host = self.devices[from].host;
        if let Some(&part) = self.partitions.get(&(address, host)) {
            return Some(part);
        }
        if let Some(known) = self.by_address.get(&(address, host)) {
            return known.first().copied();
        }
        let mut elsewhere = self.by_address.range((address, 0)..=(address, usize::MAX));
        let found = elsewhere.next().filter(|_| !self.has_several_hosts);
        found.and_then(|(_, known)| known.first().copied())
    }

    pub(super) fn warn_of_self(&mut self, claim: &Claim) {
        self.observed.warn(claim.line, "a link of a GPU to itself is left out");
    }

    pub(super) fn warn_of_unknown(&mut self, claim: &Claim) {
        let target: String = claim.target.chars().take(40).collect();
        let text = format!("a link to {target} is left out: no GPU or switch of this address");
        self.observed.warn(claim.line, text);
    }
}

/// All GPUs of a machine with NVSwitches have as many links to them. One with fewer has lost
/// some, or a line of the file is lost.
fn warn_of_differences(to_switch: &[(usize, u32)], machine: &mut Machine<'_>) {
    let most = to_switch.iter().map(|&(_, links)| links).max().unwrap_or(0);
    for &(gpu, links) in to_switch.iter().filter(|&&(_, links)| links < most) {
        let text = format!(
            "{} has {links} links to the NVSwitches, where another GPU has {most}; look for links \
             that are down",
            machine.name(gpu)
        );
        let line = machine.devices[gpu].line;
        machine.observed.warn(line, text);
    }
}
