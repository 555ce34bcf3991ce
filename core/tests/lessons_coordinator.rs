//! Scenarios in which another coordinator of this shape goes wrong, each as a test.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

#[path = "coordinator_support/machine.rs"]
mod machine;
#[path = "coordinator_support/watchdog.rs"]
mod watchdog;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use hopwise_core::{
    CoordinatorError, DeviceState, KernelActivity, KernelId, KernelPriority, LaunchOptions,
    LoadBalancingStrategy, MigrationPriority, MultiGpuConfig, MultiGpuCoordinator, Refusal,
    RefusalReason,
};
use machine::{gpu, machine};
use watchdog::within;

fn assigned(coordinator: &MultiGpuCoordinator, count: usize, device: usize) -> Vec<KernelId> {
    let kernels: Vec<_> = (0..count).map(|number| KernelId::new(format!("k{number}"))).collect();
    for kernel in &kernels {
        coordinator.assign_kernel(*kernel, device).unwrap();
    }
    kernels
}

fn counts(coordinator: &MultiGpuCoordinator) -> Vec<usize> {
    coordinator.get_all_status().iter().map(|status| status.kernel_count).collect()
}

fn with_strategy(strategy: LoadBalancingStrategy, capacity: usize) -> MultiGpuConfig {
    MultiGpuConfig::builder().load_balancing(strategy).max_kernels_per_device(capacity).build()
}

#[test]
fn lesson_01_an_unregistered_device_is_not_selected() {
    let coordinator = machine(2, MultiGpuConfig::default());
    let kernels = assigned(&coordinator, 1, 0);
    assert!(coordinator.can_p2p(0, 1));
    assert_eq!(coordinator.unregister_device(0).plans.len(), 1);
    for _ in 0..4 {
        assert_eq!(coordinator.select_device(&LaunchOptions::new()), Ok(1));
    }
    assert_eq!(coordinator.device_count(), 1);
    assert_eq!(coordinator.device(0), None);
    assert!(!coordinator.can_p2p(0, 1));
    // Its kernel is still there, so its status can still be seen, under its own name.
    let status = coordinator.get_device_status(0).unwrap();
    assert_eq!((status.state, status.info.name.as_str()), (DeviceState::Leaving, "gpu0"));
    assert_eq!(coordinator.get_kernel_device(&kernels[0]), Some(0));
}

#[test]
fn lesson_02_plans_count_one_another_and_respect_the_capacity() {
    let coordinator = machine(4, with_strategy(LoadBalancingStrategy::LeastLoaded, 90));
    let kernels = assigned(&coordinator, 90, 0);
    let result = coordinator.unregister_device(0);
    let mut per_target = [0; 4];
    for plan in &result.plans {
        per_target[plan.target] += 1;
    }
    assert_eq!(per_target, [0, 30, 30, 30]);

    let small = machine(4, with_strategy(LoadBalancingStrategy::LeastLoaded, 64));
    for device in 1..4 {
        assigned(&small, 50, device);
    }
    assigned(&small, 64, 0);
    let result = small.unregister_device(0);
    assert_eq!((result.plans.len(), result.orphans.len()), (42, 22), "14 fit on each of three");
    for plan in &result.plans {
        small.request_planned_migration(plan).unwrap();
    }
    assert_eq!(kernels.len(), 90);
}

#[test]
fn lesson_03_nothing_is_planned_onto_a_device_that_left() {
    let coordinator = machine(3, MultiGpuConfig::default());
    assert!(coordinator.unregister_device(0).is_gone());
    assigned(&coordinator, 1, 1);
    let result = coordinator.unregister_device(1);
    assert_eq!(result.plans[0].target, 2);
    assert_eq!(coordinator.unregister_device(2).plans, []);
    assert_eq!(coordinator.unregister_device(1).orphans.len(), 1, "nobody is left to take it");
}

#[test]
fn lesson_04_a_plan_moves_nothing_and_can_be_carried_out() {
    let coordinator = machine(2, MultiGpuConfig::default());
    let kernel = assigned(&coordinator, 1, 0)[0];
    let plan = coordinator.unregister_device(0).plans[0];
    assert_eq!(coordinator.get_kernel_device(&kernel), Some(0), "planned is not moved");
    let request = coordinator.request_migration(&kernel, plan.target).unwrap();
    assert_eq!(coordinator.get_kernel_device(&kernel), Some(0), "requested is not moved");
    coordinator.complete_migration(&request).unwrap();
    assert_eq!(coordinator.get_kernel_device(&kernel), Some(1));
    assert_eq!(coordinator.get_device_status(0), None, "the last kernel took the device with it");
}

#[test]
fn lesson_05_leaving_is_idempotent_and_final() {
    let coordinator = machine(2, MultiGpuConfig::default());
    let kernel = assigned(&coordinator, 1, 1)[0];
    let first = coordinator.unregister_device(1);
    let second = coordinator.unregister_device(1);
    assert!(!first.already_leaving && second.already_leaving);
    assert_eq!(first.plans, second.plans);
    coordinator.update_device_memory(1, 1 << 30).unwrap();
    let revived = coordinator.set_device_state(1, DeviceState::Active);
    assert!(matches!(revived, Err(CoordinatorError::InvalidTransition { index: 1, .. })));
    let again = coordinator.register_device(gpu(1));
    assert_eq!(again, Err(CoordinatorError::IndexLeaving { index: 1, kernels: 1 }));
    assert_eq!(coordinator.get_device_status(1).unwrap().state, DeviceState::Leaving);

    coordinator.remove_kernel(&kernel).unwrap();
    coordinator.register_device(gpu(1)).unwrap();
    let reborn = coordinator.get_device_status(1).unwrap();
    assert!(Some(reborn.incarnation) > first.incarnation);
    let nobody = coordinator.unregister_device(7);
    assert_eq!((nobody.incarnation, nobody.is_gone()), (None, true));
}

#[test]
fn lesson_06_selection_never_falls_back() {
    let full = machine(2, with_strategy(LoadBalancingStrategy::FirstAvailable, 1));
    assigned(&full, 1, 1);
    let only_1 = LaunchOptions::new().with_preferred_devices([1]);
    let refusals = vec![
        Refusal { device: 0, reason: RefusalReason::NotPreferred },
        Refusal { device: 1, reason: RefusalReason::Full { kernels: 1, reserved: 0, capacity: 1 } },
    ];
    assert_eq!(full.select_device(&only_1), Err(CoordinatorError::NoDevice { refusals }));
    assigned(&full, 1, 0);
    let error = full.select_device(&LaunchOptions::new()).unwrap_err();
    assert!(error.to_string().contains("device 0: it is full"), "{error}");

    let empty = MultiGpuCoordinator::new(MultiGpuConfig::default());
    let error = empty.select_device(&LaunchOptions::new()).unwrap_err();
    assert_eq!(error.to_string(), "no device fits: no device is registered");

    let custom = machine(2, with_strategy(LoadBalancingStrategy::Custom, 4));
    let any = LaunchOptions::new();
    assert_eq!(custom.select_device(&any), Err(CoordinatorError::NoSelector));
    custom.set_custom_selector(|_, _| 99);
    let wrong = CoordinatorError::SelectorRefused { index: 99, reason: None };
    assert_eq!(custom.select_device(&any), Err(wrong));
    custom.set_custom_selector(|statuses, _| statuses.last().map_or(0, |last| last.index()));
    assert_eq!(custom.select_device(&any), Ok(1));
    let not_1 = LaunchOptions::new().with_excluded_devices([1]);
    let reason = Some(RefusalReason::Excluded);
    assert_eq!(
        custom.select_device(&not_1),
        Err(CoordinatorError::SelectorRefused { index: 1, reason })
    );
}

#[test]
fn lesson_07_a_sparse_index_is_one_device() {
    let coordinator = MultiGpuCoordinator::new(MultiGpuConfig::default());
    coordinator.register_device(gpu(3)).unwrap();
    assert_eq!(coordinator.device_count(), 1);
    assert_eq!(coordinator.select_device(&LaunchOptions::new()), Ok(3));
    assert_eq!(coordinator.device(0), None);
    assert_eq!(coordinator.get_all_status().len(), 1);
    let twice = coordinator.register_device(gpu(3));
    assert_eq!(twice, Err(CoordinatorError::IndexInUse { index: 3, name: "gpu3".to_owned() }));
}

#[test]
fn lesson_08_a_stale_request_changes_nothing() {
    let coordinator = machine(3, MultiGpuConfig::default());
    let kernel = assigned(&coordinator, 1, 0)[0];
    let request = coordinator.request_migration(&kernel, 1).unwrap();
    coordinator.remove_kernel(&kernel).unwrap();
    assert!(coordinator.complete_migration(&request).is_err());
    assert_eq!(counts(&coordinator), [0, 0, 0]);

    coordinator.assign_kernel(kernel, 0).unwrap();
    let first = coordinator.request_migration(&kernel, 1).unwrap();
    let second = coordinator.request_migration(&kernel, 2).unwrap();
    assert!(coordinator.complete_migration(&first).is_err(), "a newer request took its place");
    assert_eq!(coordinator.get_device_status(1).unwrap().reserved, 0);
    coordinator.complete_migration(&second).unwrap();
    assert!(coordinator.complete_migration(&second).is_err(), "a replay");
    assert_eq!(counts(&coordinator), [0, 0, 1]);

    let away = coordinator.request_migration(&kernel, 1).unwrap();
    assert!(coordinator.unregister_device(1).is_gone());
    coordinator.register_device(gpu(1)).unwrap();
    assert!(coordinator.complete_migration(&away).is_err(), "device 1 is another one now");
    assert_eq!(counts(&coordinator), [0, 0, 1]);
    assert_eq!(coordinator.stats().reserved, 0);
}

#[test]
fn lesson_09_assigning_twice_moves_the_record() {
    let coordinator = machine(2, MultiGpuConfig::default());
    let kernel = assigned(&coordinator, 1, 0)[0];
    coordinator.assign_kernel(kernel, 1).unwrap();
    assert_eq!(counts(&coordinator), [0, 1]);
    let error = coordinator.assign_kernel(kernel, 99).unwrap_err();
    assert_eq!(error, CoordinatorError::UnknownDevice { index: 99, known: vec![0, 1] });
    assert_eq!(coordinator.get_kernel_device(&kernel), Some(1));
    coordinator.remove_kernel(&kernel).unwrap();
    assert_eq!(counts(&coordinator), [0, 0]);
    assert_eq!(coordinator.stats().total_kernels, 1, "moving is not launching");
}

#[test]
fn lesson_10_racing_launches_stay_within_the_capacity() {
    within(Duration::from_secs(30), || {
        let coordinator = machine(2, with_strategy(LoadBalancingStrategy::LeastLoaded, 10));
        let start = Barrier::new(8);
        let placed: usize = thread::scope(|scope| {
            let launch = || {
                start.wait();
                let place =
                    |_: &i32| coordinator.place(KernelId::new("k"), &LaunchOptions::new()).is_ok();
                (0..5).filter(place).count()
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(launch)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(placed, 20);
        assert_eq!(counts(&coordinator), [10, 10]);
    });
}

#[test]
fn lesson_11_selecting_beside_a_writer_does_not_deadlock() {
    within(Duration::from_secs(60), || {
        let coordinator = machine(4, MultiGpuConfig::default());
        let kernel = assigned(&coordinator, 1, 0)[0];
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        coordinator.select_device(&LaunchOptions::new()).unwrap();
                        let request = coordinator.request_migration(&kernel, 1);
                        assert_eq!(request.unwrap().target, 1);
                        assert_eq!(coordinator.topology().device_count(), 4);
                    }
                });
            }
            let start = Instant::now();
            while start.elapsed() < Duration::from_secs(1) {
                coordinator.update_device_memory(2, 1 << 30).unwrap();
            }
            stop.store(true, Ordering::Relaxed);
        });
    });
}

#[test]
fn lesson_12_selection_does_not_scan_kernels() {
    // That no operation scans all kernels is measured by the bench. Here: figures come from
    // counters that follow every change, with many kernels on the devices.
    let coordinator = machine(8, with_strategy(LoadBalancingStrategy::LeastLoaded, 10_000));
    for device in 0..8 {
        assigned(&coordinator, 1000 + device, device);
    }
    assert_eq!(coordinator.select_device(&LaunchOptions::new()), Ok(0));
    assert_eq!(coordinator.stats().mapped_kernels, 8 * 1000 + 28);
    let last = *coordinator.kernels_on_device(7).last().unwrap();
    for kernel in coordinator.kernels_on_device(7) {
        coordinator.remove_kernel(&kernel).unwrap();
    }
    assert_eq!(
        coordinator.select_device_for_k2k(&last).unwrap_err(),
        CoordinatorError::UnknownKernel { kernel: last }
    );
    assert_eq!(coordinator.select_device(&LaunchOptions::new()), Ok(7));
}

#[test]
fn lesson_13_k2k_selection_obeys_the_rules_of_selection() {
    let coordinator = machine(3, with_strategy(LoadBalancingStrategy::LeastLoaded, 2));
    let kernels = assigned(&coordinator, 1, 0);
    assert_eq!(coordinator.select_device_for_k2k(&kernels[0]), Ok(0), "nearest is the same device");
    assigned(&coordinator, 1, 0);
    let neighbour = coordinator.select_device_for_k2k(&kernels[0]).unwrap();
    assert_ne!(neighbour, 0, "the source device is full");
    assert!(coordinator.unregister_device(neighbour).is_gone());
    let other = coordinator.select_device_for_k2k(&kernels[0]).unwrap();
    assert_ne!(other, neighbour, "that device left");
    assigned(&coordinator, 2, other);
    let error = coordinator.select_device_for_k2k(&kernels[0]).unwrap_err();
    assert!(matches!(error, CoordinatorError::NoDevice { refusals } if refusals.len() == 2));

    let config = MultiGpuConfig::builder().preferred_devices([2]).build();
    let choosy = machine(3, config);
    let kernels = assigned(&choosy, 1, 0);
    assert_eq!(choosy.select_device_for_k2k(&kernels[0]), Ok(2), "only device 2 is preferred");
}

#[test]
fn lesson_14_priorities_are_computed_and_order_the_plans() {
    let coordinator = machine(2, MultiGpuConfig::default());
    let kernels = assigned(&coordinator, 4, 0);
    coordinator.set_kernel_priority(&kernels[3], KernelPriority::Critical).unwrap();
    coordinator.set_kernel_priority(&kernels[1], KernelPriority::Low).unwrap();
    let order = |coordinator: &MultiGpuCoordinator| -> Vec<_> {
        let plans = coordinator.unregister_device(0).plans;
        plans.iter().map(|plan| (plan.kernel, plan.priority)).collect()
    };
    assert_eq!(
        order(&coordinator),
        [
            (kernels[3], MigrationPriority::Critical),
            (kernels[0], MigrationPriority::Normal),
            (kernels[2], MigrationPriority::Normal),
            (kernels[1], MigrationPriority::Low),
        ]
    );
    let (backed_up, idle) = (kernels[2], kernels[0]);
    coordinator.set_activity_source(Arc::new(move |kernel| {
        let mailbox_depth = if *kernel == backed_up { 500 } else { 0 };
        let idle = Duration::from_secs(if *kernel == idle { 60 } else { 0 });
        let known = *kernel == backed_up || idle > Duration::ZERO;
        known.then_some(KernelActivity { priority: KernelPriority::Normal, mailbox_depth, idle })
    }));
    assert_eq!(
        order(&coordinator),
        [
            (kernels[3], MigrationPriority::Critical),
            (kernels[2], MigrationPriority::High),
            (kernels[0], MigrationPriority::Low),
            (kernels[1], MigrationPriority::Low),
        ]
    );
}
