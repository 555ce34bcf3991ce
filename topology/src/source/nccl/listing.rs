//! The devices and links as observations: in order, with what identifies them.

use std::collections::{BTreeMap, BTreeSet};

use super::links::Links;
use super::machine::Machine;
use crate::{Link, NodeKind, Tool};

impl Machine<'_> {
    /// Adds all that was read to the observations.
    pub(super) fn finish(mut self) {
        self.drop_repeated_numbers();
        self.find_partitions();
        self.has_several_hosts = self.is_address_on_two_hosts();
        let Links { links, .. } = Links::of(&mut self);
        if self.has_several_hosts {
            self.drop_identities();
        }
        self.list(links);
    }

    /// GPUs first, by number; those without one, and all else, as they stand in the file.
    fn list(self, links: Vec<Link>) {
        let mut order: Vec<usize> = (0..self.devices.len()).collect();
        order.sort_by_key(|&index| {
            let device = &self.devices[index];
            let is_gpu = device.node.kind == NodeKind::Gpu;
            let number = device.order.unwrap_or(u64::MAX);
            if is_gpu { (false, device.host, number) } else { (true, 0, 0) }
        });
        let mut position = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            position[old] = new;
        }
        let mut nodes: Vec<_> = self.devices.into_iter().map(|device| Some(device.node)).collect();
        for old in order {
            let Some(mut node) = nodes[old].take() else { continue };
            node.parent = node.parent.map(|parent| position[parent]);
            node.card = node.card.map(|card| position[card]);
            self.observed.add_node(node);
        }
        self.observed.links.extend(links.into_iter().map(|link| Link {
            from: position[link.from],
            to: position[link.to],
            ..link
        }));
    }

    /// A number that two devices of a host have tells nothing. Containers list each virtual
    /// interface below each CPU, so of networks that is no wonder.
    fn drop_repeated_numbers(&mut self) {
        let number = |label: &crate::Label| label.tool == Tool::Nccl;
        let mut holders: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (index, device) in self.devices.iter().enumerate() {
            for label in device.node.labels.iter().filter(|label| number(label)) {
                holders.entry((device.host, label.name.clone())).or_default().push(index);
            }
        }
        for ((_, name), holders) in holders.into_iter().filter(|(_, holders)| holders.len() > 1) {
            if name.starts_with("GPU") {
                let line = self.devices[holders[1]].line;
                let text = format!("{name} is listed for several GPUs; none is called so");
                self.observed.warn(line, text);
            }
            for holder in holders {
                self.devices[holder].node.labels.retain(|label| !number(label));
            }
        }
    }

    /// Links name a partition by the address of its card, with its number as the function.
    fn find_partitions(&mut self) {
        for (index, device) in self.devices.iter().enumerate() {
            let card = device.node.card.and_then(|card| self.devices[card].node.pci);
            if let (Some(mut address), Some(part)) = (card, device.partition) {
                address.function = part;
                self.partitions.insert((address, device.host), index);
            }
        }
    }

    /// The hashes of hosts tell less: one of them may be damaged.
    fn is_address_on_two_hosts(&self) -> bool {
        let mut addresses = BTreeSet::new();
        !self.by_address.keys().all(|(address, _)| addresses.insert(address))
    }

    /// Addresses and numbers identify within one host, but here are several.
    fn drop_identities(&mut self) {
        for device in &mut self.devices {
            device.node.pci = None;
            device.node.labels.clear();
            device.node.numa_nodes.clear();
        }
        let text = "several hosts are listed; PCI addresses, numbers and NUMA nodes are left out, \
                    since they are the same on each";
        self.observed.warn(None, text);
    }
}
