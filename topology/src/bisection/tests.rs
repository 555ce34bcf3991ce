//! Tests of the bisection bandwidth against all cuts.

use proptest::prelude::*;

use super::*;
use crate::{Figure, GpuConnection, InterconnectType};

fn topology(devices: usize, links: &[(usize, usize, Option<u32>)]) -> GpuTopology {
    let mut topology = GpuTopology::new(0..devices);
    for &(from, to, bandwidth) in links {
        let figure = bandwidth
            .map_or(Figure::unknown(), |value| Figure::measured(f64::from(value), 0).unwrap());
        let kind = InterconnectType::PcieSwitch;
        let _ = topology.set_connection(GpuConnection::new(from, to, kind).with_bandwidth(figure));
    }
    topology
}

/// The minimum over all balanced cuts, each summed from scratch.
fn brute_force(topology: &GpuTopology) -> f64 {
    let devices: Vec<usize> = topology.devices().collect();
    let half = devices.len() / 2;
    (0_u32..1 << devices.len())
        .filter(|mask| mask.count_ones() as usize == half)
        .map(|mask| {
            let here = |device: usize| mask >> device & 1 == 1;
            let one_way = |from_here: bool| -> f64 {
                topology
                    .connections()
                    .iter()
                    .filter(|link| here(link.from) == from_here && here(link.to) != from_here)
                    .filter_map(|link| link.bandwidth.value())
                    .sum()
            };
            one_way(true).min(one_way(false))
        })
        .fold(f64::INFINITY, f64::min)
}

fn links(devices: usize) -> impl Strategy<Value = Vec<(usize, usize, Option<u32>)>> {
    prop::collection::vec(
        (0..devices, 0..devices, prop::option::weighted(0.9, 1_u32..50)),
        0..devices * devices,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_cut_is_the_narrowest_of_all(
        (devices, links) in (2_usize..9).prop_flat_map(|n| (Just(n), links(n))),
    ) {
        let topology = topology(devices, &links);
        let bisection = topology.bisection_bandwidth_gb_per_s().unwrap();
        prop_assert_eq!(bisection.gb_per_s, brute_force(&topology));
        prop_assert!(bisection.side.len().abs_diff(devices - bisection.side.len()) <= 1);
        let unknown = topology.connections().iter().filter(|link| link.bandwidth.is_unknown()).count();
        prop_assert_eq!(bisection.unknown_links, unknown);
        let bound = if unknown == 0 { BisectionBound::Exact } else { BisectionBound::AtLeast };
        prop_assert_eq!(bisection.bound, bound);
    }

    #[test]
    fn swaps_end_in_a_balanced_cut_that_is_no_narrower_than_the_narrowest(
        (devices, links) in (2_usize..9).prop_flat_map(|n| (Just(n), links(n))),
    ) {
        let topology = topology(devices, &links);
        let crossing = Crossing::new(&topology, &(0..devices).collect::<Vec<_>>());
        let cut = swap::narrow(&crossing);
        let here = cut.iter().filter(|&&side| side).count();
        prop_assert_eq!(here, devices / 2);
        prop_assert!(crossing.gb_per_s(&cut) >= brute_force(&topology));
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
    topology(groups * size, &links)
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
    let bisection = topology(24, &links).bisection_bandwidth_gb_per_s().unwrap();
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
    assert_eq!(topology(1, &[]).bisection_bandwidth_gb_per_s(), None);
    assert_eq!(topology(0, &[]).bisection_bandwidth_gb_per_s(), None);
}

#[test]
fn halves_without_a_link_carry_nothing() {
    let bisection = topology(4, &[]).bisection_bandwidth_gb_per_s().unwrap();
    assert_eq!((bisection.gb_per_s, bisection.bound), (0.0, BisectionBound::Exact));
}
