//! Routes on machines of the kinds that exist.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "routes_support/fat_tree.rs"]
mod fat_tree;

use fat_tree::{LEAVES, RACK, fat_tree};
use hopwise_topology::{
    End, Figure, GpuConnection, GpuTopology, HostLink, InterconnectType, RouteKind, RouteTable,
    SwitchId, SwitchLink, shared_links,
};

const LARGE: u64 = 256 << 20;
const SMALL: u64 = 64;

/// NVLinks of the eight V100 of a DGX-1, once for each pair: two squares of four and the edges
/// between them.
const HYBRID_CUBE: [(usize, usize, u16); 16] = [
    (0, 1, 1),
    (0, 2, 1),
    (0, 3, 2),
    (0, 4, 2),
    (1, 2, 2),
    (1, 3, 1),
    (1, 5, 2),
    (2, 3, 2),
    (2, 6, 1),
    (3, 7, 1),
    (4, 5, 1),
    (4, 6, 1),
    (4, 7, 2),
    (5, 6, 2),
    (5, 7, 1),
    (6, 7, 2),
];

fn measured(value: f64) -> Figure {
    Figure::measured(value, 1).unwrap()
}

fn pairs(devices: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..devices)
        .flat_map(move |from| (0..devices).map(move |to| (from, to)))
        .filter(|(a, b)| a != b)
}

fn host_links(topology: &mut GpuTopology) {
    for device in topology.devices().collect::<Vec<_>>() {
        let link = HostLink::new(device, InterconnectType::HostBridge)
            .with_bandwidth(measured(11.0))
            .with_latency(measured(6.0));
        topology.set_host_link(link).unwrap();
    }
}

/// The cube; pairs without NVLink are joined over the sockets, with peer access or without.
fn hybrid_cube(peers_over_sockets: bool) -> GpuTopology {
    let mut topology = GpuTopology::new(0..8);
    host_links(&mut topology);
    for (from, to) in pairs(8) {
        let link = GpuConnection::new(from, to, InterconnectType::System)
            .with_bandwidth(measured(10.0))
            .with_latency(measured(5.7))
            .with_peer_access(peers_over_sockets);
        topology.set_connection(link).unwrap();
    }
    for (from, to, links) in HYBRID_CUBE {
        let kind = InterconnectType::NvLink { generation: Some(2), links };
        let link = GpuConnection::new(from, to, kind)
            .with_bandwidth(kind.estimated_bandwidth())
            .with_latency(kind.estimated_latency());
        topology.set_connection_both(link).unwrap();
    }
    topology
}

#[test]
fn in_a_hybrid_cube_large_messages_between_far_devices_take_one_nvlink_relay() {
    for peers_over_sockets in [true, false] {
        let topology = hybrid_cube(peers_over_sockets);
        let routes = RouteTable::build_within(&topology, &|_| true, 1);
        let unbound = RouteTable::build(&topology, &|_| true);
        for (from, to) in pairs(8) {
            let is_near =
                HYBRID_CUBE.iter().any(|&(a, b, _)| (a, b) == (from, to) || (b, a) == (from, to));
            let route = routes.route(from, to, LARGE).unwrap().to_route();
            if !is_near {
                assert_eq!((route.kind, route.path.len()), (RouteKind::MultiHop, 3), "{route}");
                assert!(route.bandwidth_gb_per_s >= Some(25.0), "{route}");
                // A few bytes arrive sooner over the sockets, if these let them through.
                let small = routes.route(from, to, SMALL).unwrap().kind;
                assert_eq!(small == RouteKind::Direct, peers_over_sockets);
            }
            // Longer ways over double links alone are twice as wide.
            let wider = unbound.route(from, to, LARGE).unwrap();
            assert!(wider.time_us(LARGE) <= route.time_us(LARGE));
            assert_eq!(wider.bandwidth_gb_per_s, Some(50.0));
            for (a, b) in route.links() {
                let (End::Device(a), End::Device(b)) = (a, b) else { panic!("there is no switch") };
                let kind = topology.connection(a, b).unwrap().kind;
                assert!(matches!(kind, InterconnectType::NvLink { .. }), "{route}");
            }
        }
        // Six links leave each device, and all of them carry.
        assert_eq!(topology.bisection_bandwidth_gb_per_s().unwrap().unknown_links, 0);
        assert!(topology.max_flow_gb_per_s(0, 5).unwrap().gb_per_s >= 150.0);
    }
}

#[test]
fn a_hybrid_cube_loses_a_link_and_goes_another_way() {
    let mut topology = hybrid_cube(false);
    let build = |topology: &GpuTopology| RouteTable::build_within(topology, &|_| true, 1);
    let routes = build(&topology);
    let alternatives = routes.disjoint_routes(0, 5, LARGE, 8);
    let paths: Vec<_> = alternatives.iter().map(|route| route.path.clone()).collect();
    assert_eq!(paths, [vec![0, 1, 5], vec![0, 4, 5], vec![0, 5]]);
    assert_eq!(alternatives[2].kind, RouteKind::HostMediated);
    assert_eq!(routes.route(0, 5, LARGE).unwrap().path(), paths[0]);
    topology.remove_connection(1, 5).unwrap();
    assert_ne!(routes.epoch(), topology.epoch());
    assert_eq!(build(&topology).route(0, 5, LARGE).unwrap().path(), paths[1]);
}

/// Two PCIe switches with four devices each, on two sockets; every device sees every other.
fn pcie_box() -> GpuTopology {
    let mut topology = GpuTopology::new(0..8);
    host_links(&mut topology);
    for (from, to) in pairs(8) {
        let is_near = from / 4 == to / 4;
        let kind = if is_near { InterconnectType::PcieSwitch } else { InterconnectType::System };
        let (gb_per_s, latency_us) = if is_near { (24.0, 1.0) } else { (9.0, 40.0) };
        let link = GpuConnection::new(from, to, kind)
            .with_bandwidth(measured(gb_per_s))
            .with_latency(measured(latency_us))
            .with_peer_access(true);
        topology.set_connection(link).unwrap();
    }
    topology
}

/// The same as switches: one for each socket, joined to each other.
fn pcie_box_of_switches() -> GpuTopology {
    let mut topology = GpuTopology::new(0..8);
    host_links(&mut topology);
    let switches = [topology.add_switch(), topology.add_switch()];
    let kind = InterconnectType::Pcie { generation: Some(4), lanes: Some(16) };
    let mut join = |link: SwitchLink, gb_per_s| {
        let link = link.with_bandwidth(measured(gb_per_s)).with_latency(measured(0.5));
        topology.set_switch_link_both(link).unwrap();
    };
    for device in 0..8 {
        join(SwitchLink::new(device, switches[device / 4], kind), 24.0);
    }
    join(SwitchLink::new(switches[0], switches[1], InterconnectType::System), 9.0);
    // One device hangs on both, and would shorten every way from the one to the other.
    join(SwitchLink::new(0, switches[1], kind), 24.0);
    topology
}

#[test]
fn on_a_pcie_box_no_device_relays() {
    for topology in [pcie_box(), pcie_box_of_switches()] {
        let routes = RouteTable::build(&topology, &|_| true);
        for (from, to) in pairs(8) {
            for bytes in [SMALL, LARGE] {
                for route in routes.routes(from, to) {
                    assert_eq!(route.path(), [from, to], "{route:?}");
                }
                assert_ne!(routes.route(from, to, bytes).unwrap().kind, RouteKind::MultiHop);
            }
        }
        // What the slow way between the sockets does not carry at once, the host does.
        assert!(topology.max_flow_gb_per_s(1, 5).unwrap().gb_per_s <= 9.0);
    }
}

#[test]
fn on_an_nvswitch_box_every_pair_is_direct_at_full_width() {
    let mut topology = GpuTopology::new(0..8);
    host_links(&mut topology);
    let switch = topology.add_switch();
    let kind = InterconnectType::NvSwitch { generation: Some(4), links: 18 };
    for device in 0..8 {
        let port = SwitchLink::new(device, switch, kind)
            .with_bandwidth(kind.estimated_bandwidth())
            .with_latency(measured(1.0));
        topology.set_switch_link_both(port).unwrap();
    }
    let routes = RouteTable::build(&topology, &|_| true);
    for (from, to) in pairs(8) {
        for bytes in [SMALL, LARGE] {
            let route = routes.route(from, to, bytes).unwrap();
            assert_eq!((route.kind, route.hops()), (RouteKind::Direct, 1));
            assert_eq!(route.bandwidth_gb_per_s, Some(450.0));
            assert_eq!(route.latency_us, Some(2.0));
            let ends = [End::Device(from), End::Switch(switch), End::Device(to)];
            assert_eq!(route.links(), [(ends[0], ends[1]), (ends[1], ends[2])]);
        }
    }
    assert_eq!(topology.bisection_bandwidth_gb_per_s().unwrap().gb_per_s, 4.0 * 450.0);
    assert_eq!(topology.max_flow_gb_per_s(0, 7).unwrap().gb_per_s, 450.0);
}

#[test]
fn transfers_into_one_port_share_it() {
    let topology = fat_tree(2 * RACK);
    let routes = RouteTable::build(&topology, &|_| true);
    let route = |from, to| routes.route(from, to, LARGE).unwrap().to_route();
    let shared = shared_links([route(0, 5), route(1, 5), route(5, 2), route(3, 4)]);
    assert_eq!(shared.len(), 1);
    let link = shared[0];
    assert_eq!((link.from, link.to), (End::Switch(SwitchId::new(0)), End::Device(5)));
    assert_eq!(link.routes, 2);
    assert!(shared_links([route(0, 5), route(5, 0)]).is_empty(), "one way does not slow the other");
}

#[test]
fn a_thousand_devices_in_a_fat_tree_fit_into_little_memory() {
    const DEVICES: usize = 1024;
    let routes = RouteTable::build(&fat_tree(DEVICES), &|_| true);
    assert!(routes.memory_bytes() < 200_000_000, "{}", routes.memory_bytes());
    for (from, to) in [(0, 71), (0, 72), (5, 5 + 3 * LEAVES), (700, 701), (1023, 0)] {
        let route = routes.route(from, to, LARGE).unwrap().to_route();
        assert_eq!((route.kind, &route.path[..]), (RouteKind::Direct, &[from, to][..]));
        let (links, gb_per_s) = match (from / RACK == to / RACK, from % LEAVES == to % LEAVES) {
            (true, _) => (2, 900.0),
            (false, true) => (2, 50.0),
            (false, false) => (4, 50.0),
        };
        assert_eq!((route.links().len(), route.bandwidth_gb_per_s), (links, Some(gb_per_s)));
    }
}
