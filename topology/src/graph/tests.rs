//! Tests of the graph.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::{Figure, SwitchId};

mod switches;

fn link(from: usize, to: usize, gb_per_s: f64) -> GpuConnection {
    GpuConnection::new(from, to, InterconnectType::PcieSwitch)
        .with_bandwidth(Figure::measured(gb_per_s, 1).unwrap())
}

#[test]
fn one_direction_does_not_touch_the_other() {
    let mut topology = GpuTopology::new([0, 1]);
    topology.set_connection(link(1, 0, 3.0)).unwrap();
    topology.set_connection(link(0, 1, 5.0)).unwrap();
    topology.set_connection(link(0, 1, 7.0)).unwrap();
    assert_eq!(topology.connection(0, 1), Some(link(0, 1, 7.0)));
    assert_eq!(topology.connection(1, 0), Some(link(1, 0, 3.0)));
}

#[test]
fn a_repeated_index_counts_once_and_gaps_make_no_devices() {
    let topology = GpuTopology::new([7, 3, 7]);
    assert_eq!(topology.device_count(), 2);
    assert_eq!(topology.devices().collect::<Vec<_>>(), [3, 7]);
    assert!(!topology.contains(0));
}

#[test]
fn refusals_name_the_device_and_change_nothing() {
    let mut topology = GpuTopology::new([0, 1]);
    let before = topology.clone();
    assert_eq!(topology.add_device(1), Err(TopologyError::DeviceExists { index: 1 }));
    assert_eq!(topology.remove_device(2), Err(TopologyError::UnknownDevice { index: 2 }));
    assert_eq!(
        topology.set_connection(link(0, 9, 1.0)),
        Err(TopologyError::UnknownDevice { index: 9 })
    );
    assert_eq!(topology.set_connection(link(1, 1, 1.0)), Err(TopologyError::SelfLink { index: 1 }));
    let no_links = InterconnectType::NvLink { generation: None, links: 0 };
    assert_eq!(
        topology.set_connection_both(GpuConnection::new(0, 1, no_links)),
        Err(TopologyError::EmptyLink { kind: no_links })
    );
    assert_eq!(topology.set_numa_node(4, Some(0)), Err(TopologyError::UnknownDevice { index: 4 }));
    assert_eq!(
        topology.set_host_link(HostLink::new(4, InterconnectType::Unknown)),
        Err(TopologyError::UnknownDevice { index: 4 })
    );
    let no_lanes = InterconnectType::Pcie { generation: None, lanes: Some(0) };
    assert_eq!(
        topology.set_host_link(HostLink::new(1, no_lanes)),
        Err(TopologyError::EmptyLink { kind: no_lanes })
    );
    assert_eq!(topology, before);
}

#[test]
fn neighbors_follow_the_direction_of_the_links() {
    let mut topology = GpuTopology::new([0, 1, 2]);
    topology.set_connection(link(0, 2, 1.0)).unwrap();
    topology.set_connection(link(0, 1, 1.0).with_peer_access(true)).unwrap();
    topology.set_host_link(HostLink::new(0, InterconnectType::Unknown)).unwrap();
    assert_eq!(topology.neighbors(0), [1, 2]);
    assert_eq!(topology.peer_neighbors(0), [1]);
    assert!(topology.neighbors(2).is_empty());
    assert!(topology.neighbors(99).is_empty());
}

#[test]
fn full_connection_needs_both_directions_of_every_pair() {
    let mut topology = GpuTopology::new([0, 1, 2]);
    for (from, to) in [(0, 1), (0, 2), (1, 2)] {
        topology.set_connection_both(link(from, to, 1.0)).unwrap();
    }
    assert!(topology.is_fully_connected());
    assert!(topology.remove_connection(2, 0).is_some());
    assert!(!topology.is_fully_connected());
    assert!(GpuTopology::new([5]).is_fully_connected());
}

#[test]
fn devices_on_unknown_numa_nodes_are_not_neighbors() {
    let mut topology = GpuTopology::new([0, 1, 2, 3]);
    topology.set_numa_node(1, Some(0)).unwrap();
    topology.set_numa_node(3, Some(0)).unwrap();
    assert_eq!(topology.numa_neighbors(1), [3]);
    assert!(topology.numa_neighbors(0).is_empty());
    topology.set_numa_node(3, None).unwrap();
    assert!(topology.numa_neighbors(1).is_empty());
}

#[test]
fn a_host_link_keeps_its_two_directions_apart() {
    let mut topology = GpuTopology::new([0, 1]);
    let mut host_link =
        HostLink::new(1, InterconnectType::Pcie { generation: Some(4), lanes: Some(16) });
    host_link.to_host.bandwidth = Figure::measured(21.0, 5).unwrap();
    host_link.from_host.bandwidth = Figure::measured(23.0, 5).unwrap();
    topology.set_host_link(host_link.clone()).unwrap();
    assert_eq!(topology.host_link(1), Some(host_link));
    assert_eq!(topology.host_link(0), None);
    assert!(topology.connections().is_empty());
}

#[test]
fn every_change_gives_a_new_epoch_and_clones_keep_theirs() {
    let mut topology = GpuTopology::new([0, 1]);
    let copy = topology.clone();
    assert_eq!(copy.epoch(), topology.epoch());
    let mut seen = BTreeSet::from([topology.epoch(), GpuTopology::new([0, 1]).epoch()]);
    let kind = InterconnectType::NvSwitch { generation: None, links: 18 };
    let changes: [fn(&mut GpuTopology); 9] = [
        |topology| topology.add_device(2).unwrap(),
        |topology| topology.set_connection(link(0, 1, 1.0)).unwrap(),
        |topology| drop(topology.remove_connection(0, 1)),
        |topology| topology.set_numa_node(0, Some(1)).unwrap(),
        |topology| {
            topology.set_host_link(HostLink::new(0, InterconnectType::HostBridge)).unwrap();
        },
        |topology| {
            topology.add_switch();
        },
        |topology| topology.remove_device(2).unwrap(),
        |topology| {
            let kind = InterconnectType::XeLink { links: 1 };
            topology.set_switch_link(SwitchLink::new(0, SwitchId::new(0), kind)).unwrap();
        },
        |topology| drop(topology.remove_switch_link(0, SwitchId::new(0))),
    ];
    for change in changes {
        change(&mut topology);
        assert!(seen.insert(topology.epoch()));
    }
    assert!(topology.set_switch_link(SwitchLink::new(0, SwitchId::new(1), kind)).is_err());
    assert!(topology.remove_connection(0, 1).is_none());
    assert!(!seen.insert(topology.epoch()), "nothing changed");
    assert_eq!(copy, GpuTopology::new([0, 1]), "the epoch is no part of equality");
}

/// What the graph must remember, kept in plain maps.
#[derive(Default)]
struct Model {
    devices: BTreeSet<usize>,
    links: BTreeMap<(usize, usize), GpuConnection>,
}

#[derive(Clone, Debug)]
enum Change {
    Add(usize),
    Remove(usize),
    Set(usize, usize, u32),
    Unset(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let index = 0_usize..6;
    prop_oneof![
        3 => index.clone().prop_map(Change::Add),
        1 => index.clone().prop_map(Change::Remove),
        6 => (index.clone(), index.clone(), 1_u32..9).prop_map(|(a, b, w)| Change::Set(a, b, w)),
        2 => (index.clone(), index).prop_map(|(a, b)| Change::Unset(a, b)),
    ]
}

impl Model {
    fn apply(&mut self, change: &Change) -> bool {
        match *change {
            Change::Add(index) => self.devices.insert(index),
            Change::Remove(index) => {
                self.links.retain(|&(from, to), _| from != index && to != index);
                self.devices.remove(&index)
            }
            Change::Set(from, to, weight) => {
                let valid =
                    from != to && self.devices.contains(&from) && self.devices.contains(&to);
                if valid {
                    self.links.insert((from, to), link(from, to, f64::from(weight)));
                }
                valid
            }
            Change::Unset(from, to) => self.links.remove(&(from, to)).is_some(),
        }
    }
}

fn apply(topology: &mut GpuTopology, change: &Change) -> bool {
    match *change {
        Change::Add(index) => topology.add_device(index).is_ok(),
        Change::Remove(index) => topology.remove_device(index).is_ok(),
        Change::Set(from, to, weight) => {
            topology.set_connection(link(from, to, f64::from(weight))).is_ok()
        }
        Change::Unset(from, to) => topology.remove_connection(from, to).is_some(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_graph_equals_plain_maps(changes in prop::collection::vec(change(), 0..60)) {
        let (mut topology, mut model) = (GpuTopology::new([]), Model::default());
        for change in &changes {
            prop_assert_eq!(apply(&mut topology, change), model.apply(change), "{:?}", change);
            prop_assert!(topology.devices().eq(model.devices.iter().copied()));
            let links: Vec<_> = model.links.values().collect();
            prop_assert_eq!(topology.connections(), links);
            for from in 0..6 {
                for to in 0..6 {
                    prop_assert_eq!(topology.direct_connection(from, to), model.links.get(&(from, to)));
                }
            }
        }
    }
}
