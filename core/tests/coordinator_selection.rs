//! Strategies, options and states: who is chosen, and why the others are not.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

#[path = "coordinator_support/machine.rs"]
mod machine;

use std::collections::BTreeMap;

use hopwise_core::{
    BackendKind, ComputeCapability, CoordinatorError, DeviceInfo, DeviceState, KernelId,
    LaunchOptions, LoadBalancingStrategy, MultiGpuConfig, MultiGpuCoordinator, Refusal,
    RefusalReason,
};
use machine::{gpu, machine};

const GIB: u64 = 1 << 30;

fn with_strategy(strategy: LoadBalancingStrategy) -> MultiGpuConfig {
    MultiGpuConfig::builder().load_balancing(strategy).max_kernels_per_device(4).build()
}

fn place_all(coordinator: &MultiGpuCoordinator, count: usize) -> Vec<usize> {
    let place = |_| coordinator.place(KernelId::new("k"), &LaunchOptions::new()).unwrap().device;
    (0..count).map(place).collect()
}

fn reasons(
    coordinator: &MultiGpuCoordinator,
    options: &LaunchOptions,
) -> BTreeMap<usize, RefusalReason> {
    let refusals = coordinator.explain(options).refusals;
    refusals.into_iter().map(|Refusal { device, reason }| (device, reason)).collect()
}

#[test]
fn first_available_fills_the_lowest_index() {
    let coordinator = machine(2, with_strategy(LoadBalancingStrategy::FirstAvailable));
    assert_eq!(place_all(&coordinator, 6), [0, 0, 0, 0, 1, 1]);
}

#[test]
fn least_loaded_spreads_and_counts_reservations() {
    let coordinator = machine(3, with_strategy(LoadBalancingStrategy::LeastLoaded));
    assert_eq!(place_all(&coordinator, 4), [0, 1, 2, 0]);
    let kernel = coordinator.kernels_on_device(0)[0];
    coordinator.request_migration(&kernel, 1).unwrap();
    assert_eq!(place_all(&coordinator, 1), [2], "devices 0 and 1 count two each");
}

#[test]
fn round_robin_takes_turns_among_those_that_fit() {
    let coordinator = machine(4, with_strategy(LoadBalancingStrategy::RoundRobin));
    coordinator.set_device_state(2, DeviceState::Degraded).unwrap();
    assert_eq!(coordinator.explain(&LaunchOptions::new()).choice(), Some(0));
    assert_eq!(place_all(&coordinator, 5), [0, 1, 3, 0, 1], "asking for reasons takes no turn");
}

#[test]
fn memory_based_takes_the_most_memory_left() {
    let coordinator = machine(2, with_strategy(LoadBalancingStrategy::MemoryBased));
    coordinator.update_device_memory(0, 10 * GIB).unwrap();
    let options = LaunchOptions::new().with_required_memory(4 * GIB);
    let place = |_| coordinator.place(KernelId::new("k"), &options).unwrap().device;
    assert_eq!((0..4).map(place).collect::<Vec<_>>(), [1, 1, 0, 1]);
    let left: Vec<_> = coordinator
        .get_all_status()
        .iter()
        .map(|status| status.available_memory_bytes / GIB)
        .collect();
    assert_eq!(left, [6, 4]);
}

#[test]
fn compute_capability_takes_the_highest_that_has_room() {
    let coordinator =
        MultiGpuCoordinator::new(with_strategy(LoadBalancingStrategy::ComputeCapability));
    coordinator.register_device(DeviceInfo::new(0, "none", BackendKind::Wgpu)).unwrap();
    for (index, (major, minor)) in [(1, (8, 9)), (2, (9, 0)), (3, (8, 10))] {
        let info = gpu(index).with_compute_capability(major, minor);
        coordinator.register_device(info).unwrap();
    }
    let ranked: Vec<_> = coordinator
        .explain(&LaunchOptions::new())
        .candidates
        .iter()
        .map(|candidate| candidate.device)
        .collect();
    assert_eq!(ranked, [2, 3, 1, 0]);
    assert_eq!(place_all(&coordinator, 5), [2, 2, 2, 2, 3]);
}

#[test]
fn each_option_is_satisfied_or_refused_by_name() {
    let coordinator = machine(2, MultiGpuConfig::default());
    let other_kind = DeviceInfo::new(2, "card", BackendKind::Wgpu).with_memory(GIB);
    coordinator.register_device(other_kind).unwrap();
    let options = LaunchOptions::new().with_backend(BackendKind::Cuda).with_excluded_devices([1]);
    let (wanted, found) = (BackendKind::Cuda, BackendKind::Wgpu);
    assert_eq!(coordinator.select_device(&options), Ok(0));
    assert_eq!(
        reasons(&coordinator, &options),
        BTreeMap::from([
            (1, RefusalReason::Excluded),
            (2, RefusalReason::Backend { wanted, found }),
        ])
    );

    let options = LaunchOptions::new().with_min_compute_capability(9, 0);
    let wanted = ComputeCapability { major: 9, minor: 0 };
    let found = Some(ComputeCapability { major: 8, minor: 0 });
    assert_eq!(
        reasons(&coordinator, &options),
        BTreeMap::from([
            (0, RefusalReason::ComputeCapability { wanted, found }),
            (1, RefusalReason::ComputeCapability { wanted, found }),
            (2, RefusalReason::ComputeCapability { wanted, found: None }),
        ])
    );

    let options = LaunchOptions::new().with_required_memory(2 * GIB).with_preferred_devices([2, 9]);
    let (required_bytes, available_bytes) = (2 * GIB, GIB);
    assert_eq!(
        reasons(&coordinator, &options),
        BTreeMap::from([
            (0, RefusalReason::NotPreferred),
            (1, RefusalReason::NotPreferred),
            (2, RefusalReason::Memory { required_bytes, available_bytes }),
            (9, RefusalReason::NotRegistered),
        ])
    );
}

#[test]
fn the_options_preference_replaces_the_configured_one() {
    let coordinator = machine(3, MultiGpuConfig::builder().preferred_devices([1]).build());
    assert_eq!(coordinator.select_device(&LaunchOptions::new()), Ok(1));
    let other = LaunchOptions::new().with_preferred_devices([2]);
    assert_eq!(coordinator.select_device(&other), Ok(2));
}

#[test]
fn only_active_devices_are_selected() {
    let coordinator = machine(3, MultiGpuConfig::default());
    coordinator.set_device_state(0, DeviceState::Degraded).unwrap();
    coordinator.set_device_state(1, DeviceState::Lost).unwrap();
    coordinator.set_device_state(1, DeviceState::Probation).unwrap();
    assert_eq!(coordinator.select_device(&LaunchOptions::new()), Ok(2));
    assert_eq!(
        reasons(&coordinator, &LaunchOptions::new()),
        BTreeMap::from([
            (0, RefusalReason::State(DeviceState::Degraded)),
            (1, RefusalReason::State(DeviceState::Probation)),
        ])
    );
    coordinator.assign_kernel(KernelId::new("named"), 0).unwrap();
    let kernel = KernelId::new("k");
    let reason = RefusalReason::State(DeviceState::Probation);
    assert_eq!(
        coordinator.assign_kernel(kernel, 1),
        Err(CoordinatorError::DeviceRefused { index: 1, kernel, reason })
    );
}

#[test]
fn a_loss_is_followed_by_probation_and_keeps_its_kernels() {
    let coordinator = machine(2, MultiGpuConfig::default());
    let kernel = KernelId::new("k");
    coordinator.assign_kernel(kernel, 0).unwrap();
    coordinator.set_device_state(0, DeviceState::Unresponsive).unwrap();
    coordinator.set_device_state(0, DeviceState::Lost).unwrap();
    let refused = coordinator.set_device_state(0, DeviceState::Active).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "device 0 cannot go from lost to active; open it again and put it on probation first"
    );
    assert!(coordinator.set_device_state(0, DeviceState::Unresponsive).is_err());
    assert_eq!(coordinator.get_kernel_device(&kernel), Some(0), "its kernels stay mapped");
    let rescue = coordinator.request_migration(&kernel, 1).unwrap();
    coordinator.set_device_state(0, DeviceState::Probation).unwrap();
    coordinator.set_device_state(0, DeviceState::Active).unwrap();
    coordinator.complete_migration(&rescue).unwrap();
    let leave = coordinator.set_device_state(1, DeviceState::Leaving).unwrap_err();
    assert!(leave.to_string().ends_with("call unregister_device"), "{leave}");
}

#[test]
fn a_migration_needs_room_and_memory_on_its_target() {
    let config = MultiGpuConfig::builder().max_kernels_per_device(1).build();
    let coordinator = machine(3, config);
    let kernel = KernelId::new("big");
    let options = LaunchOptions::new().with_required_memory(12 * GIB);
    assert_eq!(coordinator.place(kernel, &options).unwrap().device, 0);
    coordinator.update_device_memory(1, 8 * GIB).unwrap();
    let refused = coordinator.request_migration(&kernel, 1).unwrap_err().to_string();
    assert!(refused.contains("12884901888 bytes of memory were asked for, 8589934592 are left"));

    let first = coordinator.request_migration(&kernel, 2).unwrap();
    assert_eq!(coordinator.get_device_status(2).unwrap().available_memory_bytes, 4 * GIB);
    let again = coordinator.request_migration(&kernel, 2).unwrap();
    assert_ne!(first.id, again.id, "a full target is no obstacle to whom it is reserved for");
    assert!(coordinator.cancel_migration(&first).is_err());
    assert!(coordinator.assign_kernel(KernelId::new("late"), 2).is_err(), "the room is taken");
    assert_eq!(coordinator.place(KernelId::new("other"), &LaunchOptions::new()).unwrap().device, 1);
    coordinator.complete_migration(&again).unwrap();
    assert_eq!(coordinator.get_device_status(0).unwrap().available_memory_bytes, 16 * GIB);
    assert_eq!(coordinator.get_device_status(2).unwrap().available_memory_bytes, 4 * GIB);
}

#[test]
fn a_plan_of_another_world_is_refused() {
    let coordinator = machine(3, MultiGpuConfig::default());
    let kernel = KernelId::new("k");
    coordinator.assign_kernel(kernel, 0).unwrap();
    let plan = coordinator.unregister_device(0).plans[0];
    assert!(coordinator.unregister_device(plan.target).is_gone());
    assert!(coordinator.request_planned_migration(&plan).is_err(), "the target left");
    coordinator.register_device(gpu(plan.target)).unwrap();
    let error = coordinator.request_planned_migration(&plan).unwrap_err();
    assert!(error.to_string().contains("the target left or was lost"), "{error}");
    coordinator.assign_kernel(kernel, 2).unwrap();
    let error = coordinator.request_planned_migration(&plan).unwrap_err();
    assert!(error.to_string().contains("not on the source device any more"), "{error}");
}

#[test]
fn plans_heed_what_kernels_asked_for() {
    let coordinator = machine(2, MultiGpuConfig::default());
    coordinator.register_device(DeviceInfo::new(2, "card", BackendKind::Wgpu)).unwrap();
    let cuda = LaunchOptions::new().with_backend(BackendKind::Cuda).with_excluded_devices([1]);
    let pinned = LaunchOptions::new().with_preferred_devices([0]);
    let (picky, modest) = (KernelId::new("picky"), KernelId::new("modest"));
    assert_eq!(coordinator.place(picky, &cuda).unwrap().device, 0);
    assert_eq!(coordinator.place(modest, &pinned).unwrap().device, 0);
    let result = coordinator.unregister_device(0);
    assert_eq!(result.orphans, [picky], "device 1 is excluded, device 2 is no CUDA device");
    assert_eq!(result.plans.len(), 1, "a preference does not make an orphan");
    assert_eq!(result.plans[0].kernel, modest);
}

#[test]
fn figures_that_cannot_be_are_refused() {
    let coordinator = machine(1, MultiGpuConfig::default());
    let too_much = coordinator.update_device_memory(0, 17 * GIB).unwrap_err();
    assert!(matches!(too_much, CoordinatorError::MemoryExceedsTotal { index: 0, .. }));
    let odd = gpu(1).with_memory(GIB).with_available_memory(2 * GIB);
    assert!(coordinator.register_device(odd).is_err());
    assert_eq!(coordinator.device_count(), 1);
    let unknown = DeviceInfo::new(2, "no figures", BackendKind::Cuda);
    coordinator.register_device(unknown).unwrap();
    let some = LaunchOptions::new().with_required_memory(1).with_preferred_devices([2]);
    assert!(coordinator.select_device(&some).is_err(), "unknown memory is not plenty");
}
