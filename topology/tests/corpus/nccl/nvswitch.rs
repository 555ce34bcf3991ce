//! Machines with NVSwitches.

use hopwise_topology::{InterconnectType, NodeKind, Observations};

use super::{
    Outcome, all, clean, count, gigabits, links_of_gpus, numa_of_gpus, on_each_switch, pcie,
    switches_above, width,
};

/// Every GPU has this many links to the one node of the NVSwitches, and back, and no others.
fn is_switched(observed: &Observations, generation: u8, links: u16) {
    let [switch] = (0..observed.nodes.len())
        .filter(|&at| observed.nodes[at].kind == NodeKind::NvSwitch)
        .collect::<Vec<_>>()[..]
    else {
        panic!("{observed:?}")
    };
    let kind = InterconnectType::NvLink { generation: Some(generation), links };
    for gpu in 0..8 {
        assert_eq!(observed.nodes[gpu].kind, NodeKind::Gpu);
        assert_eq!(observed.nodes[gpu].nvlinks_up, Some(links));
        for (from, to) in [(gpu, switch), (switch, gpu)] {
            let between = observed.links.iter().filter(|link| (link.from, link.to) == (from, to));
            assert_eq!(between.map(|link| link.kind).collect::<Vec<_>>(), [kind]);
        }
    }
    assert_eq!((observed.links.len(), links_of_gpus(observed).len()), (16, 0));
    assert_eq!(count(observed, NodeKind::Gpu), 8);
}

pub(super) fn b200_13_nets(outcome: &Outcome) {
    let observed = clean(outcome);
    is_switched(observed, 5, 18);
    let speeds = gigabits(observed);
    let of = |speed: f64| speeds.iter().filter(|&&other| other == speed).count();
    assert_eq!((speeds.len(), of(100.0), of(200.0), of(400.0)), (13, 4, 1, 8));
    let gpus = all(observed, NodeKind::Gpu);
    assert_eq!(gpus[1].pci.unwrap().to_string(), "0002:01:02.0");
    assert_eq!(gpus[3].pci.unwrap().to_string(), "0002:03:04.0");
    assert_eq!(on_each_switch(observed, NodeKind::Nic), [1; 8]);
    let [bridge] = all(observed, NodeKind::HostBridge)[..] else { panic!("{observed:?}") };
    assert_eq!(bridge.pci.unwrap().to_string(), "0000:00:00.0");
    let is_on_bridge = |at: usize| observed.nodes[at].kind == NodeKind::HostBridge;
    let nics = all(observed, NodeKind::Nic);
    assert_eq!(nics.iter().filter(|nic| is_on_bridge(nic.parent.unwrap())).count(), 5);
    assert!(nics.iter().all(|nic| nic.pci.is_none()));
    assert_eq!(numa_of_gpus(observed), [0, 0, 0, 0, 1, 1, 1, 1]);
}

pub(super) fn b200_unseen_peers(outcome: &Outcome) {
    let observed = clean(outcome);
    is_switched(observed, 5, 18);
    assert_eq!(count(observed, NodeKind::Nic), 13);
    assert!(all(observed, NodeKind::HostBridge).iter().all(|bridge| bridge.uplink.is_none()));
    assert!(all(observed, NodeKind::Gpu).iter().all(|gpu| width(gpu) == pcie(5, 16)));
}

pub(super) fn oci_h100(outcome: &Outcome) {
    let observed = clean(outcome);
    is_switched(observed, 4, 18);
    let nics = all(observed, NodeKind::Nic);
    assert_eq!(gigabits(observed), [180.0; 16]);
    assert!(nics.chunks(2).all(|ports| ports[0].pci == ports[1].pci));
    assert!(nics.windows(3).all(|nics| nics[0].pci != nics[2].pci));
    let gpus = all(observed, NodeKind::Gpu);
    assert!(gpus.iter().all(|gpu| switches_above(observed, gpu) == 2));
    assert_eq!(numa_of_gpus(observed), [0, 0, 0, 0, 1, 1, 1, 1]);
    let switches = all(observed, NodeKind::PcieSwitch);
    assert_eq!(switches.iter().filter(|switch| width(switch) == pcie(2, 16)).count(), 8);
    assert!(switches.iter().all(|switch| switch.model.as_deref() == Some("1000:c030")));
}
