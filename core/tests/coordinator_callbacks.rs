//! User code is called with no lock held: it may call back, and may panic.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

#[path = "coordinator_support/machine.rs"]
mod machine;
#[path = "coordinator_support/watchdog.rs"]
mod watchdog;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hopwise_core::{
    CoordinatorError, CoordinatorEvent, DeviceState, KernelId, LaunchOptions,
    LoadBalancingStrategy, MigrationEnd, MigrationPriority, MultiGpuConfig, MultiGpuCoordinator,
};
use machine::machine;
use watchdog::within;

const LIMIT: Duration = Duration::from_secs(30);

fn custom() -> Arc<MultiGpuCoordinator> {
    let strategy = LoadBalancingStrategy::Custom;
    machine(3, MultiGpuConfig::builder().load_balancing(strategy).build())
}

/// Calls everything that takes a lock.
fn call_back(coordinator: &MultiGpuCoordinator) {
    let kernel = KernelId::new("inner");
    coordinator.assign_kernel(kernel, 0).unwrap();
    let request = coordinator.request_migration(&kernel, 2).unwrap();
    coordinator.complete_migration(&request).unwrap();
    coordinator.update_device_memory(2, 1 << 20).unwrap();
    assert_eq!(coordinator.topology().device_count(), coordinator.device_count());
    assert_eq!(coordinator.kernels_on_device(2), [kernel]);
    assert_eq!(
        coordinator.stats().mapped_kernels,
        coordinator.get_all_status().iter().map(|status| status.kernel_count).sum::<usize>()
    );
    coordinator.remove_kernel(&kernel).unwrap();
}

#[test]
fn a_selector_may_call_back() {
    within(LIMIT, || {
        let coordinator = custom();
        let inner = Arc::downgrade(&coordinator);
        coordinator.set_custom_selector(move |_, _| {
            let coordinator = inner.upgrade().unwrap();
            call_back(&coordinator);
            // Even replacing the selector from within is allowed.
            coordinator.set_custom_selector(|_, _| 1);
            1
        });
        let placement = coordinator.place(KernelId::new("outer"), &LaunchOptions::new());
        assert_eq!(placement.unwrap().device, 1);
    });
}

#[test]
fn a_panicking_selector_is_an_error_that_names_it() {
    within(LIMIT, || {
        let coordinator = custom();
        coordinator.set_custom_selector(|_, options| {
            assert!(options.required_memory_bytes > 0, "no memory asked for");
            0
        });
        let kernel = KernelId::new("k");
        let error = coordinator.place(kernel, &LaunchOptions::new()).unwrap_err();
        let message = "no memory asked for".to_owned();
        assert_eq!(error, CoordinatorError::SelectorPanicked { message });
        assert_eq!(coordinator.get_kernel_device(&kernel), None);
        assert!(coordinator.explain(&LaunchOptions::new()).selector_error.is_some());
        assert!(coordinator.place(kernel, &LaunchOptions::new().with_required_memory(1)).is_ok());
    });
}

#[test]
fn a_selector_that_fails_while_planning_leaves_orphans_and_says_why() {
    within(LIMIT, || {
        let coordinator = custom();
        for _ in 0..3 {
            coordinator.assign_kernel(KernelId::new("k"), 0).unwrap();
        }
        let calls = AtomicUsize::new(0);
        coordinator.set_custom_selector(move |statuses, _| {
            match calls.fetch_add(1, Ordering::SeqCst) {
                0 => statuses[2].index(),
                _ => panic!("second call"),
            }
        });
        let result = coordinator.unregister_device(0);
        assert_eq!(result.plans.iter().map(|plan| plan.target).collect::<Vec<_>>(), [2]);
        assert_eq!(result.orphans.len(), 2);
        let message = "second call".to_owned();
        assert_eq!(result.selector_error, Some(CoordinatorError::SelectorPanicked { message }));
        coordinator.set_custom_selector(|_, _| 0);
        let again = coordinator.unregister_device(0);
        assert_eq!(again.orphans.len(), 3, "the leaving device itself will not do");
        let refused = again.selector_error.unwrap().to_string();
        assert!(refused.contains("chose device 0"), "{refused}");
    });
}

#[test]
fn a_selector_sees_the_moves_planned_before() {
    within(LIMIT, || {
        let coordinator = custom();
        for _ in 0..6 {
            coordinator.assign_kernel(KernelId::new("k"), 0).unwrap();
        }
        coordinator.set_custom_selector(|statuses, _| {
            let available = statuses.iter().filter(|status| status.is_available());
            available.min_by_key(|status| status.kernel_count).map_or(0, |status| status.index())
        });
        let plans = coordinator.unregister_device(0).plans;
        let on_1 = plans.iter().filter(|plan| plan.target == 1).count();
        assert_eq!((plans.len(), on_1), (6, 3));
    });
}

#[test]
fn observers_hear_of_everything_may_call_back_and_may_panic() {
    within(LIMIT, || {
        let coordinator = machine(3, MultiGpuConfig::default());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&heard);
        coordinator.add_observer(|event| {
            if matches!(event, CoordinatorEvent::KernelPlaced { .. }) {
                panic!("an observer that cannot stand placements");
            }
        });
        coordinator.add_observer(move |event| record.lock().unwrap().push(event.clone()));
        let inner = Arc::downgrade(&coordinator);
        let depth = AtomicUsize::new(0);
        coordinator.add_observer(move |_| {
            if depth.fetch_add(1, Ordering::SeqCst) == 0 {
                call_back(&inner.upgrade().unwrap());
            }
        });
        let kernel = KernelId::new("outer");
        coordinator.assign_kernel(kernel, 0).unwrap();
        assert_eq!(coordinator.stats().callback_panics, 2, "the outer and the inner placement");
        heard.lock().unwrap().clear();

        let lost = coordinator.request_migration(&kernel, 1).unwrap();
        coordinator.set_device_state(1, DeviceState::Lost).unwrap();
        let request = coordinator.request_migration(&kernel, 2).unwrap();
        let incarnation = coordinator.unregister_device(0).incarnation.unwrap();
        coordinator.complete_migration(&request).unwrap();
        coordinator.remove_kernel(&kernel).unwrap();
        let (from, to) = (DeviceState::Active, DeviceState::Lost);
        let end = |request_id, end| CoordinatorEvent::MigrationEnded { request_id, kernel, end };
        assert_eq!(
            *heard.lock().unwrap(),
            [
                CoordinatorEvent::MigrationRequested(lost),
                CoordinatorEvent::DeviceStateChanged { index: 1, from, to },
                end(lost.id, MigrationEnd::TargetLost),
                CoordinatorEvent::MigrationRequested(request),
                CoordinatorEvent::DeviceLeaving { index: 0, incarnation },
                end(request.id, MigrationEnd::Completed),
                CoordinatorEvent::KernelMoved { kernel, from: 0, to: 2 },
                CoordinatorEvent::DeviceGone { index: 0, incarnation },
                CoordinatorEvent::KernelRemoved { kernel, device: 2 },
            ]
        );
    });
}

#[test]
fn an_activity_source_may_call_back_and_may_panic() {
    within(LIMIT, || {
        let coordinator = machine(3, MultiGpuConfig::default());
        let kernel = KernelId::new("k");
        coordinator.assign_kernel(kernel, 1).unwrap();
        let inner = Arc::downgrade(&coordinator);
        coordinator.set_activity_source(Arc::new(move |kernel| {
            let coordinator = inner.upgrade().unwrap();
            assert_eq!(coordinator.get_kernel_device(kernel), Some(1));
            call_back(&coordinator);
            panic!("asked about {kernel}");
        }));
        let plans = coordinator.unregister_device(1).plans;
        assert_eq!(plans[0].priority, MigrationPriority::Normal, "only the declared one counts");
        assert_eq!(coordinator.stats().callback_panics, 1);
    });
}
