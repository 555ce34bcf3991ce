//! Cases in which other implementations gave wrong answers.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use hopwise_topology::{
    BisectionBound, DeviceFacts, Figure, GpuConnection, GpuTopology, HostLink, InterconnectType,
    Provenance, Quality, RouteKind, RouteTable, TopologyWarning,
};

const MEGABYTE: u64 = 1_000_000;

const NVLINK: InterconnectType = InterconnectType::NvLink { generation: Some(3), links: 12 };

/// A measured link with peer access.
fn link(from: usize, to: usize, kind: InterconnectType, gb_per_s: f64) -> GpuConnection {
    GpuConnection::new(from, to, kind)
        .with_bandwidth(Figure::measured(gb_per_s, 1).unwrap())
        .with_latency(Figure::measured(2.0, 1).unwrap())
        .with_peer_access(true)
}

fn topology(devices: usize, links: &[GpuConnection]) -> GpuTopology {
    let mut topology = GpuTopology::new(0..devices);
    for link in links {
        topology.set_connection_both(link.clone()).unwrap();
    }
    topology
}

fn path(topology: &GpuTopology, from: usize, to: usize, bytes: u64) -> (RouteKind, Vec<usize>) {
    let routes = RouteTable::build(topology, &|_| true);
    let route = routes.route(from, to, bytes).unwrap();
    (route.kind, route.path())
}

#[test]
fn lesson_16_no_card_is_given_nvlink_that_nobody_saw() {
    let cards: Vec<_> = (0..4)
        .map(|index| DeviceFacts {
            peer_capable: true,
            pcie: Some((4, 16)),
            backend: Some("cuda".into()),
            ..DeviceFacts::new(index)
        })
        .collect();
    let topology = GpuTopology::estimate(&cards);
    assert!(topology.is_fully_connected());
    for link in topology.connections() {
        assert!(!link.kind.class_name().starts_with("NV"), "{link:?}");
        assert_eq!(link.bandwidth.value(), Some(24.0));
        assert!(matches!(link.bandwidth.provenance(), Provenance::Estimated { .. }));
    }
    // Four crossing links of 24 GB/s, where 1200 was claimed.
    let bisection = topology.bisection_bandwidth_gb_per_s().unwrap();
    assert_eq!((bisection.gb_per_s, bisection.bound), (96.0, BisectionBound::Exact));
}

#[test]
fn lesson_17_a_chain_is_followed_to_its_end() {
    let links = [link(0, 1, NVLINK, 300.0), link(1, 2, NVLINK, 300.0), link(2, 3, NVLINK, 300.0)];
    let chain = topology(4, &links);
    assert_eq!(path(&chain, 0, 3, MEGABYTE), (RouteKind::MultiHop, vec![0, 1, 2, 3]));
    assert_eq!(path(&chain, 3, 0, MEGABYTE), (RouteKind::MultiHop, vec![3, 2, 1, 0]));
}

#[test]
fn lesson_18_the_direct_link_is_not_always_the_best() {
    let machine = topology(
        3,
        &[
            link(0, 2, InterconnectType::System, 32.0),
            link(0, 1, NVLINK, 300.0),
            link(1, 2, NVLINK, 300.0),
        ],
    );
    assert_eq!(path(&machine, 0, 2, 64 * MEGABYTE), (RouteKind::MultiHop, vec![0, 1, 2]));
    // A small message waits less on one link than on two.
    assert_eq!(path(&machine, 0, 2, 64), (RouteKind::Direct, vec![0, 2]));
    let routes = RouteTable::build(&machine, &|_| true);
    assert_eq!(routes.routes(0, 2).len(), 2);
}

#[test]
fn lesson_19_host_links_are_not_strung_together() {
    // Every pair is joined through the host; none has peer access.
    let mut machine = GpuTopology::new(0..3);
    for (from, to) in [(0, 1), (1, 2)] {
        let through_host =
            link(from, to, InterconnectType::HostBridge, 12.0).with_peer_access(false);
        machine.set_connection_both(through_host).unwrap();
    }
    assert_eq!(path(&machine, 0, 2, MEGABYTE), (RouteKind::HostMediated, vec![0, 2]));

    // Nor are links that end in host memory, although both ends reach it.
    let memory = InterconnectType::HostMemory;
    let shares = topology(3, &[link(0, 1, memory, 30.0), link(1, 2, memory, 30.0)]);
    assert_eq!(path(&shares, 0, 1, MEGABYTE), (RouteKind::Direct, vec![0, 1]));
    assert_eq!(path(&shares, 0, 2, MEGABYTE), (RouteKind::HostMediated, vec![0, 2]));
}

#[test]
fn lesson_19_a_host_bounce_is_two_links_whatever_lies_between() {
    let mut machine = GpuTopology::new(0..3);
    for device in 0..3 {
        let host_link = HostLink::new(device, InterconnectType::HostBridge)
            .with_bandwidth(Figure::measured(12.0, 1).unwrap())
            .with_latency(Figure::measured(5.0, 1).unwrap());
        machine.set_host_link(host_link).unwrap();
    }
    let routes = RouteTable::build(&machine, &|_| true);
    let route = routes.route(0, 2, MEGABYTE).unwrap();
    assert_eq!((route.kind, route.hops()), (RouteKind::HostMediated, 2));
    assert_eq!((route.latency_us, route.bandwidth_gb_per_s), (Some(10.0), Some(12.0)));
    assert_eq!(route.quality, Quality::Measured);
}

#[test]
fn lesson_20_devices_come_and_go() {
    let mut machine = topology(4, &[link(0, 1, NVLINK, 300.0), link(1, 2, NVLINK, 300.0)]);
    machine.add_device(4).unwrap();
    assert_eq!(machine.device_count(), 5);
    assert_eq!(path(&machine, 0, 4, MEGABYTE).0, RouteKind::HostMediated);
    machine.remove_device(1).unwrap();
    assert!(machine.neighbors(0).is_empty());
    assert_eq!(path(&machine, 0, 2, MEGABYTE).0, RouteKind::HostMediated);
    assert!(RouteTable::build(&machine, &|_| true).route(0, 1, MEGABYTE).is_none());
}

#[test]
fn lesson_20_a_device_that_leaves_is_no_relay() {
    let chain = topology(3, &[link(0, 1, NVLINK, 300.0), link(1, 2, NVLINK, 300.0)]);
    let routes = RouteTable::build(&chain, &|device| device != 1);
    let kind = |from, to| routes.route(from, to, MEGABYTE).map(|route| route.kind);
    assert_eq!(kind(0, 2), Some(RouteKind::HostMediated));
    assert_eq!(kind(0, 1), Some(RouteKind::Direct));
    assert_eq!(kind(1, 2), Some(RouteKind::Direct));
}

#[test]
fn lesson_21_each_direction_keeps_its_own_figures() {
    let mut machine = GpuTopology::new(0..2);
    machine.set_connection(link(0, 1, InterconnectType::PcieSwitch, 20.0)).unwrap();
    assert!(machine.connection(1, 0).is_none());
    machine.set_connection(link(1, 0, InterconnectType::PcieSwitch, 11.0)).unwrap();
    machine.set_connection(link(0, 1, InterconnectType::PcieSwitch, 22.0)).unwrap();
    let bandwidth = |from, to| machine.connection(from, to).unwrap().bandwidth.value();
    assert_eq!((bandwidth(0, 1), bandwidth(1, 0)), (Some(22.0), Some(11.0)));
    // The cut carries what its weaker direction carries.
    assert_eq!(machine.bisection_bandwidth_gb_per_s().unwrap().gb_per_s, 11.0);
}

#[test]
fn report_8_missing_figures_never_win() {
    let unknown = GpuConnection::new(0, 1, InterconnectType::Unknown).with_peer_access(true);
    let machine = topology(
        3,
        &[
            unknown,
            link(0, 2, InterconnectType::InfinityFabric { links: 1 }, 24.0),
            link(2, 1, InterconnectType::InfinityFabric { links: 1 }, 24.0),
        ],
    );
    for bytes in [1, MEGABYTE] {
        assert_eq!(path(&machine, 0, 1, bytes), (RouteKind::MultiHop, vec![0, 2, 1]));
    }
    let bisection = machine.bisection_bandwidth_gb_per_s().unwrap();
    assert_eq!((bisection.bound, bisection.unknown_links), (BisectionBound::AtLeast, 2));
}

#[test]
fn report_9_a_missing_reverse_direction_is_a_warning() {
    let mut machine = GpuTopology::new(0..2);
    machine.set_connection(link(0, 1, NVLINK, 300.0)).unwrap();
    assert_eq!(machine.validate(), [TopologyWarning::OneWayLink { from: 0, to: 1 }]);
    assert_eq!(path(&machine, 0, 1, MEGABYTE).0, RouteKind::Direct);
    assert_eq!(path(&machine, 1, 0, MEGABYTE).0, RouteKind::HostMediated);
    assert_eq!(machine.bisection_bandwidth_gb_per_s().unwrap().gb_per_s, 0.0);
    assert!(machine.table().contains("NV12"));

    machine
        .set_connection(link(1, 0, InterconnectType::System, 9.0).with_peer_access(false))
        .unwrap();
    let expected = [
        TopologyWarning::KindsDiffer { from: 0, to: 1, there: "NV12".into(), back: "SYS".into() },
        TopologyWarning::OneWayPeerAccess { from: 0, to: 1 },
    ];
    assert_eq!(machine.validate(), expected);
}
