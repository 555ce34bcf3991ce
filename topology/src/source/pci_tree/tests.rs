//! Chains of bridges become switches and host bridges.

use super::{Bridge, BusRange, PciTree, Root};
use crate::{NodeKind, Observations, PciAddress, Tool};

fn buses(first: u8, last: u8) -> BusRange {
    BusRange { domain: 0, first, last }
}

fn bridge(address: &str, first: u8, last: u8) -> Bridge {
    Bridge { address: address.parse().unwrap(), buses: buses(first, last), uplink: None }
}

fn root(first: u8, last: u8, numa_node: u32) -> Root {
    Root { buses: buses(first, last), numa_nodes: vec![numa_node], cpu_affinity: None }
}

#[test]
fn every_other_bridge_below_a_root_port_is_a_switch() {
    let mut tree = PciTree::default();
    let mut observed = Observations::default();
    let root = tree.add_root(root(0, 9, 3));
    let root_port = tree.add_bridge(root, bridge("00:01.0", 1, 9));
    let upstream = tree.add_bridge(root_port, bridge("01:00.0", 2, 9));
    let downstream = tree.add_bridge(upstream, bridge("02:08.0", 3, 9));
    let inner = tree.add_bridge(downstream, bridge("03:00.0", 4, 9));
    let host_bridge = tree.node(root, &mut observed);
    assert_eq!(tree.node(root_port, &mut observed), host_bridge);
    let below = tree.node(inner, &mut observed);
    let switch = tree.node(downstream, &mut observed);
    assert_eq!(tree.node(upstream, &mut observed), switch);
    let kinds: Vec<_> = observed.nodes.iter().map(|node| node.kind).collect();
    assert_eq!(kinds, [NodeKind::HostBridge, NodeKind::PcieSwitch, NodeKind::PcieSwitch]);
    let parents: Vec<_> = observed.nodes.iter().map(|node| node.parent).collect();
    assert_eq!(parents, [None, Some(host_bridge), Some(switch)]);
    let address: PciAddress = "03:00.0".parse().unwrap();
    assert_eq!(observed.nodes[below].pci, Some(address));
    assert_eq!(observed.nodes[below].numa_nodes, [3]);
    assert_eq!(observed.nodes[host_bridge].label(Tool::Os), Some("pci0000:00"));
}

#[test]
fn a_bridge_that_is_listed_twice_is_one_node() {
    let mut tree = PciTree::default();
    let mut observed = Observations::default();
    for _ in 0..2 {
        let root = tree.add_root(root(0, 9, 0));
        let root_port = tree.add_bridge(root, bridge("00:01.0", 1, 9));
        let upstream = tree.add_bridge(root_port, bridge("01:00.0", 2, 9));
        tree.node(upstream, &mut observed);
    }
    assert_eq!(observed.nodes.len(), 2);
}

#[test]
fn ranges_nest() {
    assert!(buses(0, 9).has_below(buses(1, 9)));
    assert!(!buses(1, 3).has_below(buses(1, 3)));
    assert!(!buses(1, 3).has_below(buses(2, 4)));
    assert!(!buses(1, 9).has_below(buses(4, 3)));
    let address: PciAddress = "01:1f.7".parse().unwrap();
    assert!(buses(1, 9).has_directly(address));
    assert!(!buses(0, 9).has_directly(address));
}
