//! What the wires of a machine carry, whatever drivers permit: flow and bisection.

use std::collections::BTreeMap;

use super::Machine;
use super::effective::pcie_bandwidth;
use crate::{Bisection, End, GpuTopology, InterconnectType, MaxFlow, NodeKind, SwitchLink};

const VALID: &str = "the ends are of this topology, differ, and one is a switch";

impl Machine {
    /// The bisection bandwidth between the GPUs, over all wires that are known: fabric links, and
    /// PCIe links, which several GPUs share on the way to their switch or socket. `None` for fewer
    /// than two GPUs. See [`GpuTopology::bisection_bandwidth_gb_per_s`].
    pub fn bisection_bandwidth_gb_per_s(&self) -> Option<Bisection> {
        self.wires().bisection_bandwidth_gb_per_s()
    }

    /// The most that two GPUs, by their numbers, can exchange over all wires that are known, with
    /// other GPUs relaying over the fabric; `None` if there is no such GPU. See
    /// [`GpuTopology::max_flow_gb_per_s`].
    pub fn max_flow_gb_per_s(&self, from: usize, to: usize) -> Option<MaxFlow> {
        self.wires().max_flow_gb_per_s(from, to)
    }

    /// The wires: everything that is no GPU is a switch, and PCIe links lead to what GPUs hang on.
    fn wires(&self) -> GpuTopology {
        let mut wires = GpuTopology::new(0..self.gpus.len());
        let mut ends: BTreeMap<usize, End> =
            self.gpus.iter().enumerate().map(|(device, &gpu)| (gpu, End::Device(device))).collect();
        for (position, node) in self.all.nodes.iter().enumerate() {
            let is_passed =
                matches!(node.kind, NodeKind::PcieSwitch | NodeKind::NumaNode | NodeKind::NvSwitch);
            if is_passed {
                ends.insert(position, End::Switch(wires.add_switch()));
            }
        }
        self.add_fabric(&ends, &mut wires);
        for (&position, &end) in &ends {
            let Some(&above) = self.passed_above(position).and_then(|above| ends.get(&above))
            else {
                continue;
            };
            let node = &self.all.nodes[position];
            let link = SwitchLink::new(end, above, InterconnectType::Unknown)
                .with_bandwidth(pcie_bandwidth(node));
            wires.set_switch_link_both(link).expect(VALID);
        }
        self.add_sockets(&ends, &mut wires);
        wires
    }

    fn add_fabric(&self, ends: &BTreeMap<usize, End>, wires: &mut GpuTopology) {
        let topology = self.topology();
        let direct = topology.connections().into_iter().filter(|link| link.kind.carries_relays());
        for link in direct {
            wires.set_connection(link.clone()).expect("both devices are there");
        }
        for link in &self.all.links {
            let (Some(&from), Some(&to)) = (ends.get(&link.from), ends.get(&link.to)) else {
                continue;
            };
            let is_to_switch = matches!(from, End::Switch(_)) || matches!(to, End::Switch(_));
            if is_to_switch && link.kind.implies_peer_access() {
                let link =
                    SwitchLink::new(from, to, link.kind).with_bandwidth(link.bandwidth.clone());
                wires.set_switch_link(link).expect(VALID);
            }
        }
    }

    /// What a node hangs on, host bridges left out: they limit nothing.
    fn passed_above(&self, position: usize) -> Option<usize> {
        let is_passed = |&at: &usize| self.all.nodes[at].kind != NodeKind::HostBridge;
        super::tree::ancestors(&self.all, position).into_iter().find(is_passed)
    }

    fn add_sockets(&self, ends: &BTreeMap<usize, End>, wires: &mut GpuTopology) {
        let is_numa = |&position: &usize| self.all.nodes[position].kind == NodeKind::NumaNode;
        let nodes: Vec<usize> = ends.keys().copied().filter(is_numa).collect();
        for &here in &nodes {
            for &there in nodes.iter().filter(|&&there| there != here) {
                let bandwidth = self.between_sockets(here, there).unwrap_or_default();
                let link = SwitchLink::new(ends[&here], ends[&there], InterconnectType::System)
                    .with_bandwidth(bandwidth);
                wires.set_switch_link(link).expect(VALID);
            }
        }
    }
}
