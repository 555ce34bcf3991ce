//! Classes, implied links, and the topology of devices.

use crate::{
    Figure, Format, InterconnectType, Machine, Node, NodeKind, Observations, Pair, PcieWidth,
    PeerCapability, PeerStatus, Quality, Reading, RouteKind, RouteTable, Statement, Tool, Uplink,
};

fn merged(observations: Observations) -> Machine {
    Machine::merge(&[Reading { format: Format::NcclXml, observations }])
}

/// GPUs of which a matrix of classes is stated, as nvidia-smi does; 0 is SYS, else NV#.
fn matrix(rows: &[&[u16]]) -> Observations {
    let mut all = Observations::default();
    for number in 0..rows.len() {
        all.add_node(Node::new(NodeKind::Gpu).labelled(Tool::NvidiaSmi, format!("GPU{number}")));
    }
    for (from, row) in rows.iter().enumerate() {
        for (to, &links) in row.iter().enumerate().filter(|&(to, _)| to != from) {
            let class = match links {
                0 => InterconnectType::System,
                links => InterconnectType::NvLink { generation: None, links },
            };
            let statement = Statement::Class(class);
            all.pairs.push(Pair { from, to, statement, line: None });
        }
    }
    all
}

/// The hybrid cube mesh of eight V100s.
const CUBE: [&[u16]; 8] = [
    &[0, 1, 1, 2, 2, 0, 0, 0],
    &[1, 0, 2, 1, 0, 2, 0, 0],
    &[1, 2, 0, 2, 0, 0, 1, 0],
    &[2, 1, 2, 0, 0, 0, 0, 1],
    &[2, 0, 0, 0, 0, 1, 1, 2],
    &[0, 2, 0, 0, 1, 0, 2, 1],
    &[0, 0, 1, 0, 1, 2, 0, 2],
    &[0, 0, 0, 1, 2, 1, 2, 0],
];

#[test]
fn on_the_hybrid_cube_large_messages_go_over_one_nvlink_relay() {
    let machine = merged(matrix(&CUBE));
    assert_eq!(machine.classes()[0][5], "SYS");
    assert!(machine.nodes().iter().all(|node| node.kind == NodeKind::Gpu), "no switch is made up");
    let topology = machine.topology();
    let bandwidth = topology.connection(0, 3).unwrap().bandwidth.clone();
    assert_eq!((bandwidth.value(), bandwidth.quality()), (Some(50.0), Quality::Estimated));
    let routes = RouteTable::build_within(&topology, &|_| true, 1);
    for (from, row) in CUBE.iter().enumerate() {
        for (to, &links) in row.iter().enumerate().filter(|&(to, _)| to != from) {
            let route = routes.route(from, to, 1 << 26).unwrap();
            assert!(route.path().len() <= 3, "{route:?}");
            assert!(links > 0 || route.kind == RouteKind::MultiHop, "{route:?}");
        }
    }
}

#[test]
fn more_nvlinks_than_a_gpu_can_have_lead_through_a_switch() {
    let rows: Vec<Vec<u16>> = vec![vec![18; 8]; 8];
    let rows: Vec<&[u16]> = rows.iter().map(Vec::as_slice).collect();
    let machine = merged(matrix(&rows));
    let switches = machine.nodes().iter().filter(|node| node.kind == NodeKind::NvSwitch).count();
    assert_eq!(switches, 1);
    assert_eq!(machine.links().len(), 16);
    assert_eq!(machine.classes()[0][7], "NV18");
    // Four A100s with 4 links to each other use no more than they have.
    let rows: [&[u16]; 4] = [&[4; 4]; 4];
    assert!(merged(matrix(&rows)).nodes().iter().all(|node| node.kind == NodeKind::Gpu));
    // Six links to each of three peers fit a GPU with 18, but not one that says it has 6.
    let rows: [&[u16]; 4] = [&[6; 4]; 4];
    let mut few = matrix(&rows);
    few.nodes.iter_mut().for_each(|node| node.nvlinks_up = Some(6));
    assert_eq!(merged(few).nodes().len(), 5);
    assert_eq!(merged(matrix(&rows)).nodes().len(), 4);
}

#[test]
fn on_an_nvswitch_every_pair_is_direct_at_full_width() {
    let rows: Vec<Vec<u16>> = vec![vec![18; 8]; 8];
    let rows: Vec<&[u16]> = rows.iter().map(Vec::as_slice).collect();
    let machine = merged(matrix(&rows));
    let topology = machine.topology();
    let routes = RouteTable::build(&topology, &|_| true);
    for from in 0..8 {
        for to in (0..8).filter(|&to| to != from) {
            assert_eq!(topology.connection(from, to).unwrap().kind.class_name(), "NV18");
            let route = routes.route(from, to, 1 << 30).unwrap();
            assert_eq!((route.kind, route.bandwidth_gb_per_s), (RouteKind::Direct, Some(450.0)));
        }
    }
    // All links of a GPU together, not those to one peer times seven.
    assert_eq!(machine.max_flow_gb_per_s(0, 7).unwrap().gb_per_s, 450.0);
    assert_eq!(machine.bisection_bandwidth_gb_per_s().unwrap().gb_per_s, 4.0 * 450.0);
}

#[test]
fn gpus_on_one_switch_share_its_uplink() {
    let machine = tree();
    // GPU0 and GPU3 meet at the host bridge, over the uplink of the switch.
    assert_eq!(machine.max_flow_gb_per_s(0, 3).unwrap().gb_per_s, 24.0);
    let cut = machine.bisection_bandwidth_gb_per_s().unwrap();
    assert_eq!(cut.gb_per_s, 24.0, "{cut:?}");
}

#[test]
fn a_stated_rate_gives_a_reported_bandwidth() {
    let rows: [&[u16]; 2] = [&[0, 4], &[4, 0]];
    let mut all = matrix(&rows);
    for node in &mut all.nodes {
        node.nvlink_gb_per_s = Figure::reported(14.062, "nvidia-smi nvlink -s").unwrap();
    }
    let machine = merged(all);
    let bandwidth = &machine.links()[0].bandwidth;
    assert_eq!(bandwidth.value(), Some(4.0 * 14.062));
    assert_eq!(bandwidth.quality(), Quality::Reported);
}

/// NUMA node 0 with two bridges; below the first a switch with two GPUs, and one below a further
/// switch; below the second a GPU. NUMA node 1 with a GPU.
fn tree() -> Machine {
    let mut all = Observations::default();
    let hang = |all: &mut Observations, kind, parent: Option<usize>| {
        let mut node = Node::new(kind);
        node.parent = parent;
        let width = PcieWidth { generation: Some(4), lanes: Some(16) };
        let now = PcieWidth { generation: Some(1), lanes: Some(16) };
        node.uplink = Some(Uplink { current: now, maximum: width });
        all.add_node(node)
    };
    let near = hang(&mut all, NodeKind::NumaNode, None);
    let far = hang(&mut all, NodeKind::NumaNode, None);
    let bridge = hang(&mut all, NodeKind::HostBridge, Some(near));
    let other_bridge = hang(&mut all, NodeKind::HostBridge, Some(near));
    let far_bridge = hang(&mut all, NodeKind::HostBridge, Some(far));
    let switch = hang(&mut all, NodeKind::PcieSwitch, Some(bridge));
    let inner = hang(&mut all, NodeKind::PcieSwitch, Some(switch));
    for parent in [switch, switch, inner, bridge, other_bridge, far_bridge] {
        hang(&mut all, NodeKind::Gpu, Some(parent));
    }
    merged(all)
}

#[test]
fn classes_follow_from_the_tree() {
    let machine = tree();
    let classes = machine.classes();
    assert_eq!(classes[0], ["X", "PIX", "PXB", "PHB", "NODE", "SYS"]);
    assert_eq!(classes[5][0], "SYS");
    let domains = machine.failure_domains(machine.gpus()[2]);
    let kinds: Vec<_> = domains.iter().map(|&at| machine.nodes()[at].kind).collect();
    use NodeKind::{HostBridge, NumaNode, PcieSwitch};
    assert_eq!(kinds, [PcieSwitch, PcieSwitch, HostBridge, NumaNode]);
}

#[test]
fn on_pcie_nobody_relays_and_an_idle_card_counts_at_its_best() {
    let machine = tree();
    let topology = machine.topology();
    let link = topology.connection(0, 1).unwrap();
    assert_eq!(
        (link.bandwidth.value(), link.bandwidth.quality()),
        (Some(24.0), Quality::Estimated)
    );
    assert!(!link.peer_access, "nobody said that there is");
    // Between sockets nothing is known of the CPUs, so nothing is known of the way.
    assert!(topology.connection(0, 5).unwrap().bandwidth.is_unknown());
    let routes = RouteTable::build(&topology, &|_| true);
    for from in 0..6 {
        for to in (0..6).filter(|&to| to != from) {
            let route = routes.route(from, to, 1 << 26).unwrap();
            assert_eq!(route.kind, RouteKind::HostMediated, "{route:?}");
        }
    }
}

#[test]
fn peer_access_needs_every_stated_way() {
    let rows: [&[u16]; 2] = [&[0, 0], &[0, 0]];
    let mut all = matrix(&rows);
    let mut say = |from, to, capability, status| {
        let statement = Statement::Peer { capability, status };
        all.pairs.push(Pair { from, to, statement, line: None });
    };
    say(0, 1, PeerCapability::Read, PeerStatus::Supported);
    say(1, 0, PeerCapability::Read, PeerStatus::Supported);
    say(1, 0, PeerCapability::Write, PeerStatus::ChipsetNotSupported);
    let machine = merged(all);
    let topology = machine.topology();
    assert_eq!(machine.peer_access(0, 1), Some(true));
    assert!(topology.connection(0, 1).unwrap().peer_access);
    assert!(!topology.connection(1, 0).unwrap().peer_access);
}
