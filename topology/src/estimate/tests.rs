//! Tests of the rules.

use proptest::prelude::*;

use super::*;
use crate::{Provenance, Quality};

fn pcie(generation: u8, lanes: u8) -> Option<f64> {
    InterconnectType::Pcie { generation: Some(generation), lanes: Some(lanes) }
        .estimated_bandwidth()
        .value()
}

fn card(index: usize, pcie: Option<(u8, u8)>, numa_node: Option<u32>) -> DeviceFacts {
    DeviceFacts { pcie, numa_node, peer_capable: true, ..DeviceFacts::new(index) }
}

#[test]
fn pcie_bandwidth_is_nccls() {
    let x16: Vec<_> = (1..=6).filter_map(|generation| pcie(generation, 16)).collect();
    assert_eq!(x16, [3.0, 6.0, 12.0, 24.0, 48.0, 96.0]);
    assert_eq!(pcie(4, 8), Some(12.0));
    assert_eq!(pcie(4, 0), Some(24.0));
    assert_eq!(pcie(0, 16), None);
    assert_eq!(pcie(7, 16), None);
}

#[test]
fn nvlink_bandwidth_needs_the_generation() {
    let nvlink = |generation, links| {
        InterconnectType::NvLink { generation, links }.estimated_bandwidth().value()
    };
    assert_eq!(nvlink(Some(1), 4), Some(80.0));
    assert_eq!(nvlink(Some(3), 12), Some(300.0));
    assert_eq!(nvlink(Some(5), 18), Some(900.0));
    assert_eq!(nvlink(None, 12), None);
    assert_eq!(nvlink(Some(7), 12), None);
    assert_eq!(nvlink(Some(3), 0), None);
}

#[test]
fn every_estimate_names_its_rule() {
    let topology =
        GpuTopology::estimate(&[card(0, Some((4, 16)), None), card(1, Some((3, 8)), None)]);
    let link = topology.connection(0, 1).unwrap();
    // The narrower of the two cards limits the pair.
    assert_eq!(link.bandwidth.value(), Some(6.0));
    for figure in [&link.bandwidth, &link.latency] {
        let Provenance::Estimated { rule } = figure.provenance() else {
            panic!("{figure:?} is not an estimate")
        };
        assert!(rule.contains("NCCL"), "{rule}");
    }
}

#[test]
fn numa_nodes_that_differ_make_a_pair_sys_and_equal_ones_claim_no_class() {
    let facts = [
        card(0, Some((4, 16)), Some(0)),
        card(1, Some((4, 16)), Some(0)),
        card(2, Some((4, 16)), Some(1)),
        card(3, Some((4, 16)), None),
    ];
    let topology = GpuTopology::estimate(&facts);
    let class = |from, to| topology.connection(from, to).map(|link| link.kind.class_name());
    assert_eq!(class(0, 1).as_deref(), Some("PCIE"));
    assert_eq!(class(0, 2).as_deref(), Some("SYS"));
    assert_eq!(class(0, 3).as_deref(), Some("PCIE"));
    assert_eq!(topology.numa_neighbors(0), [1]);
    assert!(topology.validate().is_empty());
}

#[test]
fn a_pair_that_is_not_peer_capable_gets_no_link() {
    let incapable = DeviceFacts { peer_capable: false, ..card(1, Some((4, 16)), None) };
    let elsewhere = DeviceFacts { backend: Some("wgpu".into()), ..card(2, Some((4, 16)), None) };
    let topology = GpuTopology::estimate(&[card(0, Some((4, 16)), None), incapable, elsewhere]);
    assert!(topology.connections().is_empty());
    let to_host = topology.host_link(1).unwrap().to_host;
    assert_eq!(to_host.bandwidth.value(), Some(24.0));
}

#[test]
fn unknown_pcie_gives_a_link_of_unknown_kind_and_figures() {
    let topology = GpuTopology::estimate(&[card(0, None, None), card(1, Some((4, 16)), None)]);
    let link = topology.connection(0, 1).unwrap();
    assert_eq!(link.kind, InterconnectType::Unknown);
    assert_eq!(link.bandwidth.quality(), Quality::Unknown);
    assert!(link.peer_access);
}

#[test]
fn shares_of_the_host_are_joined_by_host_memory() {
    let share = |index| DeviceFacts { host: true, ..DeviceFacts::new(index) };
    let topology = GpuTopology::estimate(&[share(0), share(4), card(7, Some((4, 16)), None)]);
    let link = topology.connection(0, 4).unwrap();
    assert_eq!(link.kind, InterconnectType::HostMemory);
    assert!(link.bandwidth.is_unknown());
    assert!(!link.peer_access);
    assert_eq!(topology.neighbors(7), Vec::<usize>::new());
    assert_eq!(topology.neighbors(0), [4]);
}

#[test]
fn the_last_facts_about_an_index_count() {
    let topology = GpuTopology::estimate(&[card(0, None, Some(1)), card(0, None, Some(2))]);
    assert_eq!(topology.device_count(), 1);
    assert_eq!(topology.numa_node(0), Some(2));
}

fn any_facts() -> impl Strategy<Value = DeviceFacts> {
    (
        0_usize..6,
        prop::option::of(prop::sample::select(vec!["cuda".to_owned(), "wgpu".to_owned()])),
        prop::option::of(0_u32..2),
        any::<bool>(),
        any::<Option<(u8, u8)>>(),
        prop::bool::weighted(0.3),
    )
        .prop_map(|(index, backend, numa_node, peer_capable, pcie, host)| DeviceFacts {
            index,
            backend,
            numa_node,
            peer_capable,
            pcie,
            host,
        })
}

proptest! {
    #[test]
    fn any_facts_give_a_topology_of_estimates(facts in prop::collection::vec(any_facts(), 0..8)) {
        let topology = GpuTopology::estimate(&facts);
        prop_assert!(topology.validate().is_empty());
        prop_assert!(facts.iter().all(|device| topology.contains(device.index)));
        for link in topology.connections() {
            prop_assert!(link.bandwidth.quality() <= Quality::Estimated);
            prop_assert!(link.latency.quality() <= Quality::Estimated);
            prop_assert!(!link.kind.class_name().starts_with("NV"));
        }
    }
}
