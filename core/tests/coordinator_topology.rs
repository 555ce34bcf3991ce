//! What follows from links: peer access, relays, and the choice of a device near another kernel.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

#[path = "coordinator_support/machine.rs"]
mod machine;

use hopwise_core::{
    BackendKind, CoordinatorError, DeviceInfo, DeviceState, GpuConnection, GpuTopology,
    InterconnectType, KernelId, LaunchOptions, MultiGpuConfig, MultiGpuCoordinator, RefusalReason,
};
use hopwise_topology::{Figure, SwitchLink};
use machine::{gpu, machine};

fn nvlink(from: usize, to: usize) -> GpuConnection {
    let figure = |value| Figure::reported(value, "test").unwrap();
    let kind = InterconnectType::NvLink { generation: Some(4), links: 18 };
    GpuConnection::new(from, to, kind).with_bandwidth(figure(450.0)).with_latency(figure(3.0))
}

fn linked(devices: usize, links: &[(usize, usize)]) -> GpuTopology {
    let mut topology = GpuTopology::new(0..devices);
    for &(from, to) in links {
        topology.set_connection_both(nvlink(from, to)).unwrap();
    }
    topology
}

fn fill(coordinator: &MultiGpuCoordinator, device: usize, kernels: usize) -> KernelId {
    let mut last = KernelId::new("first");
    for _ in 0..kernels {
        last = KernelId::new("filler");
        coordinator.assign_kernel(last, device).unwrap();
    }
    last
}

#[test]
fn the_discovered_topology_follows_registration() {
    let coordinator = machine(2, MultiGpuConfig::default());
    assert_eq!(coordinator.topology().devices().collect::<Vec<_>>(), [0, 1]);
    coordinator.register_device(gpu(4)).unwrap();
    let topology = coordinator.topology();
    assert_eq!(topology.neighbors(4), [0, 1]);
    for link in topology.connections() {
        assert!(!link.kind.class_name().starts_with("NV"), "no link is made up: {link:?}");
    }
    fill(&coordinator, 1, 1);
    assert_eq!(coordinator.unregister_device(1).plans.len(), 1);
    assert_eq!(coordinator.topology().neighbors(4), [0]);
    assert_eq!(coordinator.discover_topology(), coordinator.topology());
}

#[test]
fn a_topology_set_by_hand_is_checked_and_stays() {
    let coordinator = machine(2, MultiGpuConfig::default());
    let error = coordinator.set_topology(linked(3, &[(0, 1)])).unwrap_err();
    assert_eq!(error, CoordinatorError::TopologyDevice { index: 2, known: vec![0, 1] });
    let set = linked(2, &[(0, 1)]);
    coordinator.set_topology(set.clone()).unwrap();
    assert_eq!(coordinator.topology(), set);
    coordinator.register_device(gpu(2)).unwrap();
    let with_2 = coordinator.topology();
    assert_eq!((with_2.device_count(), with_2.neighbors(2)), (3, vec![]));
    assert_eq!(with_2.connection(0, 1), set.connection(0, 1));
    assert!(!coordinator.can_p2p(0, 2), "what is not known is not assumed");
}

#[test]
fn peer_access_needs_configuration_both_devices_and_the_link() {
    let config = MultiGpuConfig::builder().enable_p2p(false).build();
    let without = machine(2, config);
    without.set_topology(linked(2, &[(0, 1)])).unwrap();
    assert!(!without.can_p2p(0, 1), "the configuration rules it out");

    let coordinator = machine(3, MultiGpuConfig::default());
    coordinator.register_device(DeviceInfo::new(3, "no peer", BackendKind::Cuda)).unwrap();
    let other = DeviceInfo::new(4, "other driver", BackendKind::Wgpu).with_peer_access(true);
    coordinator.register_device(other).unwrap();
    let mut topology = linked(5, &[(0, 1), (0, 3), (0, 4)]);
    topology.set_connection(nvlink(2, 0)).unwrap();
    coordinator.set_topology(topology).unwrap();
    assert!(coordinator.can_p2p(0, 1) && coordinator.can_p2p(1, 0));
    assert!(coordinator.can_p2p(2, 0) && !coordinator.can_p2p(0, 2), "one way stays one way");
    assert!(!coordinator.can_p2p(1, 2), "a link of each to a third device is not one of theirs");
    assert!(!coordinator.can_p2p(0, 3), "device 3 cannot access peers");
    assert!(!coordinator.can_p2p(0, 4), "two drivers share no memory");
    assert!(!coordinator.can_p2p(0, 0) && !coordinator.can_p2p(0, 9));
    coordinator.set_device_state(1, DeviceState::Lost).unwrap();
    assert!(!coordinator.can_p2p(0, 1));
}

#[test]
fn a_switch_gives_peer_access_to_devices_of_one_driver() {
    let mut topology = GpuTopology::new(0..4);
    let switch = topology.add_switch();
    for device in 0..4 {
        let kind = InterconnectType::NvSwitch { generation: Some(4), links: 18 };
        topology.set_switch_link_both(SwitchLink::new(device, switch, kind)).unwrap();
    }
    for enable_p2p in [true, false] {
        let coordinator = machine(2, MultiGpuConfig::builder().enable_p2p(enable_p2p).build());
        let other = DeviceInfo::new(2, "other driver", BackendKind::Wgpu).with_peer_access(true);
        coordinator.register_device(other.clone()).unwrap();
        coordinator.register_device(DeviceInfo { index: 3, ..other }).unwrap();
        coordinator.set_topology(topology.clone()).unwrap();
        assert_eq!(coordinator.can_p2p(0, 1), enable_p2p);
        assert_eq!(coordinator.can_p2p(2, 3), enable_p2p, "they share a driver of their own");
        assert!(!coordinator.can_p2p(0, 2) && !coordinator.can_p2p(3, 1));
        coordinator.set_device_state(1, DeviceState::Lost).unwrap();
        assert!(!coordinator.can_p2p(0, 1));
    }
}

#[test]
fn peer_access_can_be_asked_for() {
    let coordinator = machine(4, MultiGpuConfig::default());
    coordinator.set_topology(linked(4, &[(1, 3)])).unwrap();
    let near_3 = LaunchOptions::new().with_peer_access_to(3);
    let explained = coordinator.explain(&near_3);
    let fitting: Vec<_> = explained.candidates.iter().map(|candidate| candidate.device).collect();
    assert_eq!(fitting, [1, 3], "the linked device, and the device itself");
    let reasons: Vec<_> = explained.refusals.into_iter().map(|refusal| refusal.reason).collect();
    assert_eq!(reasons, vec![RefusalReason::NoPeerAccess { with: 3 }; 2]);
}

#[test]
fn a_device_that_left_or_is_lost_relays_nothing() {
    for goes in [DeviceState::Leaving, DeviceState::Lost] {
        let config = MultiGpuConfig::builder().max_kernels_per_device(2).build();
        let coordinator = machine(4, config);
        coordinator.set_topology(linked(4, &[(0, 1), (1, 3)])).unwrap();
        let source = fill(&coordinator, 0, 2);
        fill(&coordinator, 1, 2);
        let choice = || coordinator.select_device_for_k2k(&source);
        assert_eq!(choice(), Ok(3), "known, through device 1, before unknown, through the host");
        coordinator.set_device_state(1, DeviceState::Degraded).unwrap();
        assert_eq!(choice(), Ok(3), "a degraded device still relays");
        match goes {
            DeviceState::Leaving => assert!(!coordinator.unregister_device(1).is_gone()),
            _ => coordinator.set_device_state(1, goes).unwrap(),
        }
        assert_eq!(choice(), Ok(2), "nothing is known of either way, so the index decides");
    }
}

#[test]
fn routes_without_peer_access_are_not_taken() {
    let config = MultiGpuConfig::builder().enable_p2p(false).max_kernels_per_device(2).build();
    let coordinator = machine(3, config);
    coordinator.set_topology(linked(3, &[(0, 2)])).unwrap();
    let source = fill(&coordinator, 0, 2);
    assert_eq!(coordinator.select_device_for_k2k(&source), Ok(1), "the link cannot be used");
}

#[test]
fn distance_is_weighed_against_load() {
    let coordinator = machine(3, MultiGpuConfig::default());
    coordinator.set_topology(linked(3, &[(0, 2)])).unwrap();
    let source = fill(&coordinator, 0, 40);
    assert_eq!(coordinator.select_device_for_k2k(&source), Ok(0), "near, and not very full");
    fill(&coordinator, 0, 20);
    assert_eq!(coordinator.select_device_for_k2k(&source), Ok(2), "a neighbour with room");
    let unknown = KernelId::new("unknown");
    assert_eq!(
        coordinator.select_device_for_k2k(&unknown),
        Err(CoordinatorError::UnknownKernel { kernel: unknown })
    );
}

#[test]
fn plans_prefer_near_devices_among_equals() {
    let coordinator = machine(4, MultiGpuConfig::default());
    coordinator.set_topology(linked(4, &[(0, 3)])).unwrap();
    fill(&coordinator, 0, 4);
    let targets: Vec<_> =
        coordinator.unregister_device(0).plans.iter().map(|plan| plan.target).collect();
    assert_eq!(targets, [3, 1, 2, 3]);
}
