//! What switches carry between the devices of one side and those of the other.

use super::crossing::Crossing;
use crate::flow::Network;

/// The node that stands for the devices from which the bytes come, and that for those to which they
/// go. The switches follow.
const START: usize = 0;
const END: usize = 1;

/// The switches of a topology, with the links between them.
pub(super) struct SwitchNetwork {
    network: Network,
    /// By switch: the arcs to it from the start, and from it to the end.
    ports: Vec<[usize; 2]>,
    /// Arcs between switches, with their bandwidths.
    trunks: Vec<(usize, f64)>,
    at_start: Vec<bool>,
}

impl SwitchNetwork {
    pub(super) fn new(crossing: &Crossing) -> Self {
        let node_of = |position: usize| position - crossing.devices + END + 1;
        let mut network = Network::new(node_of(crossing.wires.len()));
        let (mut ports, mut trunks) = (Vec::new(), Vec::new());
        for (switch, wires) in crossing.wires.iter().enumerate().skip(crossing.devices) {
            let node = node_of(switch);
            ports.push([network.add_arc(START, node, 0.0), network.add_arc(node, END, 0.0)]);
            let to_switches = wires.iter().filter(|wire| wire.other >= crossing.devices);
            for wire in to_switches.filter(|wire| wire.out > 0.0) {
                let arc = network.add_arc(node, node_of(wire.other), wire.out);
                trunks.push((arc, wire.out));
            }
        }
        Self { network, at_start: vec![false; ports.len()], ports, trunks }
    }

    /// The most that goes through the switches, if each takes `into` from the devices at the start
    /// and gives `out_of` to those at the end. That is also the least that crosses a cut of them.
    pub(super) fn least(&mut self, into: &[f64], out_of: &[f64]) -> f64 {
        if self.trunks.is_empty() {
            // No switch depends on another.
            let ports = into.iter().zip(out_of);
            for (at_start, (into, out_of)) in self.at_start.iter_mut().zip(ports.clone()) {
                *at_start = out_of < into;
            }
            return ports.map(|(into, out_of)| into.min(*out_of)).sum();
        }
        for &(arc, gb_per_s) in &self.trunks {
            self.network.set_capacity(arc, gb_per_s);
        }
        for (&[from_start, to_end], (&into, &out_of)) in
            self.ports.iter().zip(into.iter().zip(out_of))
        {
            self.network.set_capacity(from_start, into);
            self.network.set_capacity(to_end, out_of);
        }
        let flow = self.network.max_flow(START, END);
        for (node, at_start) in (END + 1..).zip(&mut self.at_start) {
            *at_start = self.network.is_on_source_side(node);
        }
        flow
    }

    /// By switch: whether it stood on the side of the start in the least cut that was found last.
    pub(super) fn at_start(&self) -> &[bool] {
        &self.at_start
    }
}
