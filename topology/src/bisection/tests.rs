//! Tests of the bisection bandwidth against all cuts.

use proptest::prelude::*;

use super::*;
use crate::flow::Network;
use crate::{End, Figure, GpuConnection, InterconnectType, SwitchId, SwitchLink};

/// A link between two of some devices and switches, numbered in this order, with its bandwidth.
pub(super) type Link = (usize, usize, Option<u32>);

pub(super) fn topology(devices: usize, switches: usize, links: &[Link]) -> GpuTopology {
    let mut topology = GpuTopology::new(0..devices);
    for _ in 0..switches {
        topology.add_switch();
    }
    let end = |number: usize| match number.checked_sub(devices) {
        None => End::Device(number),
        Some(switch) => End::Switch(SwitchId::new(switch)),
    };
    for &(from, to, bandwidth) in links {
        let figure = bandwidth
            .map_or(Figure::unknown(), |value| Figure::measured(f64::from(value), 0).unwrap());
        let kind = InterconnectType::PcieSwitch;
        let _ = if from.max(to) < devices {
            topology.set_connection(GpuConnection::new(from, to, kind).with_bandwidth(figure))
        } else {
            topology
                .set_switch_link(SwitchLink::new(end(from), end(to), kind).with_bandwidth(figure))
        };
    }
    topology
}

/// All links with their bandwidths, by the numbers of their ends.
fn wires(topology: &GpuTopology) -> Vec<(usize, usize, Option<f64>)> {
    let number = |end| match end {
        End::Device(index) => index,
        End::Switch(switch) => topology.device_count() + switch.number(),
    };
    let connections = topology.unsorted_connections();
    let direct = connections.map(|link| (link.from, link.to, link.bandwidth.value()));
    let at_switches = topology
        .unsorted_switch_links()
        .map(|link| (number(link.from), number(link.to), link.bandwidth.value()));
    direct.chain(at_switches).collect()
}

/// The minimum over all balanced cuts of the devices and all sides of the switches, each summed
/// from scratch.
fn brute_force(topology: &GpuTopology) -> f64 {
    let (devices, switches) = (topology.device_count(), topology.switch_count());
    let wires = wires(topology);
    (0_u32..1 << (devices + switches))
        .filter(|mask| (mask & ((1 << devices) - 1)).count_ones() as usize == devices / 2)
        .map(|mask| {
            let here = |end: usize| mask >> end & 1 == 1;
            let one_way = |from_here: bool| -> f64 {
                let crosses = |&&(from, to, _): &&(usize, usize, Option<f64>)| {
                    here(from) == from_here && here(to) != from_here
                };
                wires.iter().filter(crosses).filter_map(|wire| wire.2).sum()
            };
            one_way(true).min(one_way(false))
        })
        .fold(f64::INFINITY, f64::min)
}

/// The maximum flow from the devices of one side to those of the other, or back if that is less.
fn flow_across(topology: &GpuTopology, side: &[usize]) -> f64 {
    let (devices, switches) = (topology.device_count(), topology.switch_count());
    let ways = [true, false].map(|from_here| {
        let mut network = Network::new(devices + switches + 2);
        for (from, to, gb_per_s) in wires(topology) {
            network.add_arc(from, to, gb_per_s.unwrap_or(0.0));
        }
        let (start, end) = (devices + switches, devices + switches + 1);
        for device in 0..devices {
            if side.contains(&device) == from_here {
                network.add_arc(start, device, f64::INFINITY);
            } else {
                network.add_arc(device, end, f64::INFINITY);
            }
        }
        network.max_flow(start, end)
    });
    ways[0].min(ways[1])
}

pub(super) fn links(devices: usize, switches: usize) -> impl Strategy<Value = Vec<Link>> {
    let ends = devices + switches;
    prop::collection::vec(
        (0..ends, 0..ends, prop::option::weighted(0.9, 1_u32..50)),
        0..ends * ends,
    )
}

fn machine() -> impl Strategy<Value = (usize, usize, Vec<Link>)> {
    (2_usize..9, 0_usize..4).prop_flat_map(|(devices, switches)| {
        (Just(devices), Just(switches), links(devices, switches))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_cut_is_the_narrowest_of_all((devices, switches, links) in machine()) {
        let topology = topology(devices, switches, &links);
        let bisection = topology.bisection_bandwidth_gb_per_s().unwrap();
        prop_assert_eq!(bisection.gb_per_s, brute_force(&topology));
        prop_assert_eq!(bisection.gb_per_s, flow_across(&topology, &bisection.side));
        prop_assert!(bisection.side.len().abs_diff(devices - bisection.side.len()) <= 1);
        let unknown = wires(&topology).iter().filter(|wire| wire.2.is_none()).count();
        prop_assert_eq!(bisection.unknown_links, unknown);
        let bound = if unknown == 0 { BisectionBound::Exact } else { BisectionBound::AtLeast };
        prop_assert_eq!(bisection.bound, bound);
    }

    #[test]
    fn swaps_end_in_a_balanced_cut_that_is_no_narrower_than_the_narrowest(
        (devices, switches, links) in machine(),
    ) {
        let topology = topology(devices, switches, &links);
        let crossing = Crossing::new(&topology, &(0..devices).collect::<Vec<_>>());
        let cut = swap::narrow(&crossing);
        let here = cut.iter().filter(|&&side| side).count();
        prop_assert_eq!((cut.len(), here), (devices, devices / 2));
        prop_assert!(crossing.least(&cut) >= brute_force(&topology));
        // The search does without a good start.
        let poor = (0..devices).map(|device| device < devices / 2).collect();
        prop_assert_eq!(crossing.least(&exact::narrowest(&crossing, poor)), brute_force(&topology));
    }
}

/// `groups` full meshes of `size` devices, joined in a ring by one thin link.
fn islands(groups: usize, size: usize) -> GpuTopology {
    let mut links = Vec::new();
    for group in 0..groups {
        let first = group * size;
        for from in first..first + size {
            links.extend((first..first + size).map(|to| (from, to, Some(300))));
        }
        let next = (first + size) % (groups * size);
        links.extend([(first, next, Some(10)), (next, first, Some(10))]);
    }
    topology(groups * size, 0, &links)
}

#[test]
fn a_large_machine_gets_a_bound_that_says_so() {
    let bisection = islands(4, 8).bisection_bandwidth_gb_per_s().unwrap();
    assert_eq!(bisection.bound, BisectionBound::AtMost);
    assert_eq!(bisection.gb_per_s, 20.0);
    assert_eq!(bisection.side.len(), 16);
}

#[test]
fn swaps_find_islands_whose_devices_are_numbered_alternately() {
    let mut links = Vec::new();
    for from in 0..24 {
        links.extend((0..24).map(|to| (from, to, Some(if from % 3 == to % 3 { 90 } else { 1 }))));
    }
    let bisection = topology(24, 0, &links).bisection_bandwidth_gb_per_s().unwrap();
    // One island whole on each side, the third cut in half: 4 x 4 links of 90, and 144 - 16 of 1.
    assert_eq!(bisection.gb_per_s, 16.0 * 90.0 + 128.0);
}

#[test]
fn the_largest_exact_machine_is_still_quick() {
    let bisection = islands(2, 10).bisection_bandwidth_gb_per_s().unwrap();
    assert_eq!((bisection.bound, bisection.gb_per_s), (BisectionBound::Exact, 10.0));
    assert_eq!(bisection.side, (0..10).collect::<Vec<_>>());
}

#[test]
fn one_device_has_no_halves() {
    assert_eq!(topology(1, 0, &[]).bisection_bandwidth_gb_per_s(), None);
    assert_eq!(topology(0, 0, &[]).bisection_bandwidth_gb_per_s(), None);
}

#[test]
fn halves_without_a_link_carry_nothing() {
    let bisection = topology(4, 0, &[]).bisection_bandwidth_gb_per_s().unwrap();
    assert_eq!((bisection.gb_per_s, bisection.bound), (0.0, BisectionBound::Exact));
}

/// Devices on one switch each island, these on two spines.
fn tree(islands: usize, size: usize, port: u32, trunk: u32) -> GpuTopology {
    let devices = islands * size;
    let mut links = Vec::new();
    let mut both = |a, b, gb_per_s| links.extend([(a, b, Some(gb_per_s)), (b, a, Some(gb_per_s))]);
    for device in 0..devices {
        both(device, devices + device % islands, port);
    }
    for island in 0..islands {
        for spine in 0..2 {
            both(devices + island, devices + islands + spine, trunk);
        }
    }
    topology(devices, islands + 2, &links)
}

#[test]
fn devices_on_one_switch_are_cut_by_their_ports() {
    let bisection = tree(1, 20, 450, 1).bisection_bandwidth_gb_per_s().unwrap();
    assert_eq!((bisection.gb_per_s, bisection.bound), (10.0 * 450.0, BisectionBound::Exact));
    // Of an odd number the smaller side limits.
    let odd = tree(1, 7, 450, 1).bisection_bandwidth_gb_per_s().unwrap();
    assert_eq!(odd.gb_per_s, 3.0 * 450.0);
}

#[test]
fn islands_on_switches_are_cut_between_them() {
    for (islands, size) in [(2, 10), (4, 5), (2, 16), (8, 8)] {
        let bisection = tree(islands, size, 450, 20).bisection_bandwidth_gb_per_s().unwrap();
        let is_exact = bisection.bound == BisectionBound::Exact;
        assert_eq!(is_exact, islands * size <= EXACT_BISECTION_DEVICES);
        // Half of the islands with all that leads from them to the spines.
        assert_eq!(bisection.gb_per_s, (islands / 2 * 2 * 20) as f64, "{islands} x {size}");
    }
}

#[test]
fn many_switches_that_are_no_tree_give_a_bound() {
    const DEVICES: usize = 20;
    // A torus of switches whose links all differ in width, with a device on every second one.
    let (rows, columns) = (5, 8);
    let mut links = Vec::new();
    let mut both = |a, b, gb_per_s: usize| {
        let gb_per_s = u32::try_from(gb_per_s).ok();
        links.extend([(a, b, gb_per_s), (b, a, gb_per_s)]);
    };
    let switch = |row: usize, column: usize| DEVICES + row % rows * columns + column % columns;
    for row in 0..rows {
        for column in 0..columns {
            let here = switch(row, column);
            both(here, switch(row + 1, column), 30 + here * 7 % 11);
            both(here, switch(row, column + 1), 30 + here * 5 % 13);
        }
    }
    for device in 0..DEVICES {
        both(device, DEVICES + 2 * device, 40);
    }
    let machine = topology(DEVICES, rows * columns, &links);
    let bisection = machine.bisection_bandwidth_gb_per_s().unwrap();
    assert_eq!((bisection.bound, bisection.side.len()), (BisectionBound::AtMost, 10));
    assert_eq!(bisection.gb_per_s, flow_across(&machine, &bisection.side));
}
