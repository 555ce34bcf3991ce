//! Tests of the maximum flow against all cuts.

use proptest::prelude::*;

use super::*;
use crate::{GpuConnection, SwitchId, SwitchLink};

const FABRIC: InterconnectType = InterconnectType::NvLink { generation: None, links: 1 };

const DEVICES: usize = 5;

/// A link between two of five devices and some switches, numbered in this order.
#[derive(Clone, Debug)]
struct Wire {
    from: usize,
    to: usize,
    kind: InterconnectType,
    gb_per_s: Option<u32>,
    peer_access: bool,
}

impl Wire {
    fn is_at_switch(&self) -> bool {
        self.from.max(self.to) >= DEVICES
    }

    /// Whether flow between the two devices may use it.
    fn may_carry(&self, from: usize, to: usize) -> bool {
        let at = |end: usize, own: usize| end == own || end >= DEVICES || self.kind == FABRIC;
        at(self.from, from) && at(self.to, to) && (self.peer_access || self.is_at_switch())
    }
}

fn end(number: usize) -> End {
    match number.checked_sub(DEVICES) {
        None => End::Device(number),
        Some(switch) => End::Switch(SwitchId::new(switch)),
    }
}

fn wires(switches: usize) -> impl Strategy<Value = Vec<Wire>> {
    let ends = DEVICES + switches;
    let kind = prop_oneof![
        4 => Just(FABRIC),
        1 => Just(InterconnectType::PcieSwitch),
        1 => Just(InterconnectType::HostMemory),
    ];
    let bandwidth = prop::option::weighted(0.9, 1_u32..50);
    let wire = (0..ends, 0..ends, kind, bandwidth, prop::bool::weighted(0.9)).prop_map(
        |(from, to, kind, gb_per_s, peer_access)| Wire { from, to, kind, gb_per_s, peer_access },
    );
    prop::collection::vec(wire, 0..4 * ends).prop_map(|mut wires| {
        wires.retain(|wire| wire.from != wire.to);
        wires.sort_by_key(|wire| (wire.from, wire.to));
        wires.dedup_by_key(|wire| (wire.from, wire.to));
        wires
    })
}

fn topology(switches: usize, wires: &[Wire]) -> GpuTopology {
    let mut topology = GpuTopology::new(0..DEVICES);
    for _ in 0..switches {
        topology.add_switch();
    }
    for wire in wires {
        let bandwidth = wire
            .gb_per_s
            .map_or(Figure::unknown(), |value| Figure::measured(f64::from(value), 0).unwrap());
        if wire.is_at_switch() {
            let link = SwitchLink::new(end(wire.from), end(wire.to), wire.kind);
            topology.set_switch_link(link.with_bandwidth(bandwidth)).unwrap();
        } else {
            let link = GpuConnection::new(wire.from, wire.to, wire.kind)
                .with_peer_access(wire.peer_access)
                .with_bandwidth(bandwidth);
            topology.set_connection(link).unwrap();
        }
    }
    topology
}

/// The least that crosses a cut between the two devices.
fn least_cut(ends: usize, wires: &[Wire], from: usize, to: usize) -> u32 {
    let cuts = (0_u32..1 << ends).filter(|cut| cut >> from & 1 == 1 && cut >> to & 1 == 0);
    let crosses = |cut: u32, wire: &&Wire| cut >> wire.from & 1 == 1 && cut >> wire.to & 1 == 0;
    cuts.map(|cut| {
        let crossing = wires.iter().filter(|wire| crosses(cut, wire) && wire.may_carry(from, to));
        crossing.filter_map(|wire| wire.gb_per_s).sum()
    })
    .min()
    .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_flow_is_the_least_cut(
        (switches, wires) in (0_usize..=3).prop_flat_map(|n| (Just(n), wires(n))),
    ) {
        let topology = topology(switches, &wires);
        for from in 0..DEVICES {
            for to in (0..DEVICES).filter(|&to| to != from) {
                let flow = topology.max_flow_gb_per_s(from, to).unwrap();
                let cut = least_cut(DEVICES + switches, &wires, from, to);
                prop_assert_eq!(flow.gb_per_s, f64::from(cut), "{} to {}", from, to);
                let unknown = wires.iter().filter(|wire| {
                    wire.gb_per_s.is_none()
                        && wire.may_carry(from, to)
                        && wire.to != from
                        && wire.from != to
                });
                prop_assert_eq!(flow.unknown_links, unknown.count());
            }
        }
    }
}

#[test]
fn there_is_no_flow_to_oneself_or_to_nowhere() {
    let topology = topology(0, &[]);
    assert_eq!(topology.max_flow_gb_per_s(1, 1), None);
    assert_eq!(topology.max_flow_gb_per_s(1, 9), None);
    let nothing = MaxFlow { gb_per_s: 0.0, unknown_links: 0 };
    assert_eq!(topology.max_flow_gb_per_s(1, 2), Some(nothing));
}

#[test]
fn all_planes_of_switches_count_and_pcie_is_not_relayed() {
    let mut machine = topology(0, &[]);
    let gb_per_s = |value| Figure::measured(value, 0).unwrap();
    for _ in 0..6 {
        let plane = machine.add_switch();
        for device in 0..DEVICES {
            let link = SwitchLink::new(device, plane, FABRIC).with_bandwidth(gb_per_s(25.0));
            machine.set_switch_link_both(link).unwrap();
        }
    }
    assert_eq!(machine.max_flow_gb_per_s(0, 4).unwrap().gb_per_s, 150.0);

    let mut pcie = GpuTopology::new(0..3);
    for (from, to) in [(0, 1), (1, 2), (0, 2)] {
        let link = GpuConnection::new(from, to, InterconnectType::PcieSwitch)
            .with_peer_access(true)
            .with_bandwidth(gb_per_s(24.0));
        pcie.set_connection_both(link).unwrap();
    }
    assert_eq!(pcie.max_flow_gb_per_s(0, 2).unwrap().gb_per_s, 24.0);
}
