//! Bandwidths by position, and what a cut of them carries.

use super::contract::contract;
use super::switches::SwitchNetwork;
use crate::{End, Figure, GpuTopology};

/// The links of a topology between positions: first the devices, then as many
/// [contracted](super::contract) switches as matter.
pub(super) struct Crossing {
    pub(super) devices: usize,
    /// By position: what joins it to others, by rising position of these.
    pub(super) wires: Vec<Vec<Wire>>,
    pub(super) unknown_links: usize,
}

/// What joins a position to another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wire {
    pub(super) other: usize,
    /// GB/s to the other position, and back from it; 0 where there is no link or no figure.
    pub(super) out: f64,
    pub(super) back: f64,
}

impl Crossing {
    pub(super) fn new(topology: &GpuTopology, devices: &[usize]) -> Self {
        let mut crossing = Self {
            devices: devices.len(),
            wires: vec![Vec::new(); devices.len() + topology.switch_count()],
            unknown_links: 0,
        };
        let position = |end| match end {
            End::Device(index) => devices.binary_search(&index).expect("links join known devices"),
            End::Switch(switch) => devices.len() + switch.number(),
        };
        for link in topology.unsorted_connections() {
            let (from, to) = (position(link.from.into()), position(link.to.into()));
            crossing.add(from, to, &link.bandwidth);
        }
        for link in topology.unsorted_switch_links() {
            crossing.add(position(link.from), position(link.to), &link.bandwidth);
        }
        crossing.merge_wires();
        contract(&mut crossing);
        crossing
    }

    /// Makes one wire of all between the same ends, and sorts them.
    pub(super) fn merge_wires(&mut self) {
        for wires in &mut self.wires {
            wires.sort_by_key(|wire| wire.other);
            wires.dedup_by(|later, kept| {
                let is_same = later.other == kept.other;
                if is_same {
                    kept.out += later.out;
                    kept.back += later.back;
                }
                is_same
            });
        }
    }

    fn add(&mut self, from: usize, to: usize, bandwidth: &Figure) {
        let Some(gb_per_s) = bandwidth.value() else {
            self.unknown_links += 1;
            return;
        };
        self.wires[from].push(Wire { other: to, out: gb_per_s, back: 0.0 });
        self.wires[to].push(Wire { other: from, out: 0.0, back: gb_per_s });
    }

    pub(super) fn switches(&self) -> usize {
        self.wires.len() - self.devices
    }

    /// How many switches are linked to others.
    pub(super) fn linked_switches(&self) -> usize {
        let is_linked = |wires: &&Vec<Wire>| wires.iter().any(|wire| wire.other >= self.devices);
        self.wires[self.devices..].iter().filter(is_linked).count()
    }

    /// What goes from one position to another and back, together.
    pub(super) fn between(&self, one: usize, other: usize) -> f64 {
        let wires = &self.wires[one];
        let found = wires.binary_search_by_key(&other, |wire| wire.other);
        found.map_or(0.0, |at| wires[at].out + wires[at].back)
    }

    /// What a cut of devices and switches carries out of this side, and back into it.
    pub(super) fn both_ways(&self, cut: &[bool]) -> (f64, f64) {
        let (mut out, mut back) = (0.0, 0.0);
        let here = (0..cut.len()).filter(|&position| cut[position]);
        for wire in here.flat_map(|position| &self.wires[position]) {
            if !cut[wire.other] {
                out += wire.out;
                back += wire.back;
            }
        }
        (out, back)
    }

    /// What a cut of the devices carries in its weaker direction, with every switch on the side
    /// where it lets the least through.
    pub(super) fn least(&self, cut: &[bool]) -> f64 {
        let cut = self.with_switches(&cut[..self.devices]);
        let (out, back) = self.both_ways(&cut);
        out.min(back)
    }

    /// A cut of the devices, and every switch on the side where it lets the least through in the
    /// weaker direction.
    pub(super) fn with_switches(&self, cut: &[bool]) -> Vec<bool> {
        if self.switches() == 0 {
            return cut.to_vec();
        }
        let mut network = SwitchNetwork::new(self);
        let mut sided = |from_here: bool| {
            let sums = |side: bool, way: fn(&Wire) -> f64| -> Vec<f64> {
                let ends = |wire: &&Wire| wire.other < cut.len() && cut[wire.other] == side;
                let of_switch = |wires: &Vec<Wire>| wires.iter().filter(ends).map(way).sum();
                self.wires[self.devices..].iter().map(of_switch).collect()
            };
            let into = sums(from_here, |wire| wire.back);
            network.least(&into, &sums(!from_here, |wire| wire.out));
            let switches = network.at_start().iter().map(|&at_start| at_start == from_here);
            cut.iter().copied().chain(switches).collect::<Vec<_>>()
        };
        let (for_out, for_back) = (sided(true), sided(false));
        let is_out_weaker = self.both_ways(&for_out).0 <= self.both_ways(&for_back).1;
        if is_out_weaker { for_out } else { for_back }
    }
}
