//! NVLinks: to GPUs, to switches, to what nobody knows.

use hopwise_topology::{InterconnectType, NodeKind, PeerCapability, PeerStatus, RouteTable};

use super::scripted::{Lane, Scripted, gpu_pci, lane, pci};
use crate::nvml::management::Remote;

fn lanes(count: usize, one: &Lane) -> Vec<Lane> {
    vec![one.clone(); count]
}

/// Eight H100: 18 lanes of each lead to four switches.
fn hgx() -> Scripted {
    let to_switches = |_| {
        let counts = [4, 5, 4, 5];
        let switch = |at: u8| Lane { version: 6, ..lane(Remote::Switch, Some(pci(0xc0 + at))) };
        (0..4).flat_map(|at| lanes(counts[usize::from(at)], &switch(at))).collect()
    };
    Scripted::new(8).with_lanes(to_switches)
}

#[test]
fn switches_join_all_pairs() {
    let (said, machine) = hgx().observe();
    let switches = said.nodes.iter().filter(|node| node.kind == NodeKind::NvSwitch).count();
    assert_eq!(switches, 4);
    for (from, row) in machine.classes().iter().enumerate() {
        for (to, class) in row.iter().enumerate() {
            assert_eq!(class, if from == to { "X" } else { "NV18" });
        }
    }
    let kind = machine.class(machine.gpus()[0], machine.gpus()[7]);
    assert_eq!(kind, InterconnectType::NvSwitch { generation: Some(4), links: 18 });
    assert!(said.warnings.is_empty(), "{:?}", said.warnings);
}

/// A hypervisor shows neither kind nor address of the other end.
#[test]
fn ends_that_nobody_knows_are_a_switch() {
    for remote in [Remote::Switch, Remote::Unknown] {
        let scripted = Scripted::new(8).with_lanes(|_| lanes(18, &lane(remote, None)));
        let (said, machine) = scripted.observe();
        assert_eq!(machine.classes()[0][5], "NV18");
        let switches: Vec<_> =
            said.nodes.iter().filter(|node| node.kind == NodeKind::NvSwitch).collect();
        assert_eq!(switches.len(), 1);
        assert_eq!((switches[0].pci, switches[0].is_implied), (None, false));
        let routes = RouteTable::build(&machine.topology(), &|_| true);
        assert!(routes.route(0, 7, 1 << 20).is_some());
    }
}

#[test]
fn a_lane_that_is_up_proves_nothing_about_a_pair() {
    let over_pcie = |_, _, capability| match capability {
        PeerCapability::NvLink => PeerStatus::NotSupported,
        _ => PeerStatus::Supported,
    };
    let (said, machine) = hgx().with_peers(over_pcie).observe();
    assert_eq!(machine.classes()[0][1], "PHB");
    assert!(said.links.is_empty());
    assert_eq!(said.nodes[0].nvlinks_up, Some(18), "the lanes are still counted");
    assert!(said.warnings[0].text.contains("nvidia-fabricmanager"), "{:?}", said.warnings);
}

#[test]
fn a_driver_that_does_not_know_denies_nothing() {
    let (_, machine) = hgx().with_peers(|_, _, _| PeerStatus::Unknown).observe();
    assert_eq!(machine.classes()[0][1], "NV18");
    assert_eq!(machine.peer_access(0, 1), None);
}

/// Two A100 with a bridge each: NVML's version 5 is generation 3.
#[test]
fn the_generation_is_taken_from_the_enumeration() {
    let other = |index| gpu_pci(1 - index);
    let scripted =
        Scripted::new(2).with_lanes(|index| lanes(12, &lane(Remote::Gpu, Some(other(index)))));
    let (said, machine) = scripted.observe();
    assert_eq!(said.links.len(), 2);
    assert_eq!(said.links[0].kind, InterconnectType::NvLink { generation: Some(3), links: 12 });
    assert_eq!(machine.classes()[0][1], "NV12");
    assert_eq!(machine.links()[0].bandwidth.value(), Some(300.0));
    let newer = Scripted::new(2).with_lanes(|index| {
        lanes(18, &Lane { version: 7, ..lane(Remote::Gpu, Some(other(index))) })
    });
    assert_eq!(newer.observe().1.links()[0].bandwidth.value(), Some(900.0));
}

#[test]
fn lanes_of_different_generations_count_as_the_slower() {
    let scripted = Scripted::new(2).with_lanes(|index| {
        let one = lane(Remote::Gpu, Some(gpu_pci(1 - index)));
        vec![Lane { version: 6, ..one.clone() }, one.clone(), Lane { is_up: false, ..one }]
    });
    let (said, _) = scripted.observe();
    assert_eq!(said.links[0].kind, InterconnectType::NvLink { generation: Some(3), links: 2 });
    assert_eq!(said.nodes[0].nvlinks_up, Some(2));
}

#[test]
fn access_in_one_direction_stays_one_way() {
    let one_way = |from, to, _| match (from, to) {
        (0, 1) => PeerStatus::Supported,
        _ => PeerStatus::TopologyNotSupported,
    };
    let scripted = Scripted::new(2)
        .with_lanes(|index| lanes(4, &lane(Remote::Gpu, Some(gpu_pci(1 - index)))))
        .with_peers(one_way);
    let (said, machine) = scripted.observe();
    assert_eq!((machine.peer_access(0, 1), machine.peer_access(1, 0)), (Some(true), Some(false)));
    assert_eq!(machine.classes()[0][1], "NV4");
    assert_eq!(machine.classes()[1][0], "PHB");
    let topology = machine.topology();
    let access = |from, to| topology.connection(from, to).map(|link| link.peer_access);
    assert_eq!((access(0, 1), access(1, 0)), (Some(true), Some(false)));
    assert!(said.warnings[0].text.contains("from GPU1 to GPU0"), "{:?}", said.warnings);
}

#[test]
fn a_gpu_that_is_not_listed_is_no_switch() {
    let scripted = Scripted::new(1).with_lanes(|_| lanes(2, &lane(Remote::Gpu, Some(pci(0x77)))));
    let (said, _) = scripted.observe();
    assert!(said.links.is_empty());
    let text = &said.warnings[0].text;
    assert!(text.contains("lane 0 of GPU0") && text.contains("0000:77:00.0"), "{text}");
}

#[test]
fn links_to_the_processor_end_at_its_numa_node() {
    let scripted = Scripted::new(2).with_lanes(|_| lanes(3, &lane(Remote::Processor, None)));
    let (said, machine) = scripted.clone().observe();
    let numa: Vec<_> = said.nodes.iter().filter(|node| node.kind == NodeKind::NumaNode).collect();
    assert_eq!(numa.len(), 1, "both GPUs are near to node 0");
    assert_eq!(said.links.len(), 4);
    assert_eq!(machine.classes()[0][1], "PHB", "that both reach the processor joins no pair");
    let mut unknown = scripted;
    unknown.gpus[0].numa_nodes.clear();
    assert!(unknown.observe().0.warnings[0].text.contains("NUMA node is unknown"));
}

/// A hybrid cube: each GPU has other numbers of lanes to its neighbours.
#[test]
fn lanes_are_counted_by_neighbour() {
    let scripted = Scripted::new(3).with_lanes(|index| {
        let to = |other, count| lanes(count, &lane(Remote::Gpu, Some(gpu_pci(other))));
        match index {
            0 => [to(1, 2), to(2, 1)].concat(),
            1 => to(0, 2),
            _ => to(0, 1),
        }
    });
    let (_, machine) = scripted.observe();
    assert_eq!(machine.classes()[0], ["X", "NV2", "NV1"]);
    assert_eq!(machine.classes()[1], ["NV2", "X", "PHB"]);
}
