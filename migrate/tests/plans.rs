//! Plans, draining and parking.

#[path = "support/fleets.rs"]
mod support;

use std::thread;

use hopwise_core::coordinator::{CoordinatorError, KernelPriority, MigrationPriority};
use hopwise_core::fleet::{Fleet, FleetError};
use hopwise_core::host::{HostBackend, HostOptions};
use hopwise_core::id::KernelId;
use hopwise_migrate::{
    CancelToken, KernelMigrator, MigrationCause, MigrationError, MigrationOptions, Phase, Remains,
};
use support::{
    Recorder, check_ledgers, check_settled, filling_fleet, host_fleet, spec, within_time,
};

fn filling_host_fleet(devices: usize, kernels: usize) -> Fleet {
    let backend = HostBackend::new(HostOptions::new(devices).with_workers(1));
    filling_fleet(&backend, kernels)
}

fn is_stale(error: &MigrationError) -> bool {
    let MigrationCause::Fleet(FleetError::Coordinator(refusal)) = &*error.cause else {
        return false;
    };
    matches!(refusal, CoordinatorError::StaleRequest { .. })
}

fn device_of(fleet: &Fleet, kernel: &KernelId) -> usize {
    fleet.status(kernel).expect("launched").device
}

#[test]
fn a_drain_empties_a_device_while_its_kernels_work() {
    within_time(|| {
        let fleet = filling_host_fleet(3, 3);
        let recorders: Vec<_> = (0..4).map(|_| Recorder::launch_anywhere(&fleet, 400)).collect();
        let options = MigrationOptions::new().with_chunk_bytes(64);
        let migrator = KernelMigrator::new(&fleet).with_options(options);
        let count = 300;
        let report = thread::scope(|scope| {
            for recorder in &recorders {
                scope.spawn(|| recorder.send(1, count));
                scope.spawn(|| recorder.receive(1, count));
            }
            migrator.drain(0)
        });
        assert!(report.is_complete(), "{report:?}");
        assert_eq!((report.device, report.moved.len(), report.rounds), (0, 3, 1));
        for moved in &report.moved {
            assert_eq!(moved.source, 0);
            assert_eq!(device_of(&fleet, &moved.kernel), moved.target);
        }
        assert!(fleet.coordinator().get_device_status(0).is_none(), "an empty device is gone");
        check_ledgers(&fleet);
        recorders.iter().for_each(|recorder| recorder.check(&fleet, count));
        check_settled(&fleet, 3);
        assert!(!migrator.drain(0).is_complete(), "there is no such device any more");
        assert_eq!(migrator.drain(7).incarnation, None);
    });
}

#[test]
fn a_drain_names_orphans_and_goes_on_when_there_is_room() {
    within_time(|| {
        let fleet = filling_host_fleet(2, 2);
        let recorders: Vec<_> = (0..3).map(|_| Recorder::launch_anywhere(&fleet, 40)).collect();
        let migrator = KernelMigrator::new(&fleet);
        let first = migrator.drain(0);
        assert!(!first.is_complete());
        assert_eq!((first.moved.len(), first.orphans.len(), first.failed.len()), (1, 1, 0));
        let orphan = first.orphans[0];
        assert_eq!(device_of(&fleet, &orphan), 0);
        recorders[0].send(1, 5);
        recorders[1].send(1, 5);
        recorders[0].receive(1, 5);
        recorders[1].receive(1, 5);

        let error = migrator.park(&orphan).unwrap_err();
        assert!(matches!(*error.cause, MigrationCause::NoHostDevice { .. }), "{error}");
        assert!(error.source_running(), "{error}");
        let text = error.to_string();
        assert!(text.contains("device 1 is full (2 kernels at most)"), "{text}");
        assert!(text.contains("add a host device"), "{text}");

        let more = HostBackend::new(HostOptions::new(1).with_workers(1));
        let added = fleet.add_device(more.open_host(0).unwrap()).unwrap();
        let second = migrator.drain(0);
        assert!(second.is_complete(), "{second:?}");
        assert_eq!(second.incarnation, first.incarnation);
        assert_eq!((second.moved[0].kernel, second.moved[0].target), (orphan, added));
        recorders[0].check(&fleet, 5);
        recorders[1].check(&fleet, 5);
        check_settled(&fleet, 3);
    });
}

#[test]
fn a_drain_stopped_by_a_cancel_says_what_is_left() {
    within_time(|| {
        let fleet = filling_host_fleet(2, 4);
        let recorders = [(); 2].map(|()| Recorder::launch_anywhere(&fleet, 40));
        let token = CancelToken::new();
        token.cancel();
        let migrator = KernelMigrator::new(&fleet);
        let report = migrator.drain_with(0, &token);
        assert_eq!((report.moved.len(), report.failed.len()), (0, 2));
        assert!(report.failed.iter().all(|error| error.source_running()));
        assert!(migrator.drain(0).is_complete(), "a drain can be taken up again");
        recorders.iter().for_each(|recorder| recorder.check(&fleet, 0));
    });
}

#[test]
fn plans_are_carried_out_by_priority_and_none_stops_the_rest() {
    within_time(|| {
        let fleet = filling_host_fleet(3, 4);
        let launch = |priority| {
            let mut spec = spec(40);
            spec.options = spec.options.with_priority(priority);
            Recorder::launch_spec(&fleet, spec, 40).kernel
        };
        let low = launch(KernelPriority::Low);
        let critical = launch(KernelPriority::Critical);
        let normal = launch(KernelPriority::Normal);
        let removed = launch(KernelPriority::High);
        let mut plans = fleet.coordinator().unregister_device(0).plans;
        plans.reverse();
        fleet.remove(&removed).unwrap();
        let outcomes = KernelMigrator::new(&fleet).execute_plans(&plans);
        let order: Vec<_> = outcomes.iter().map(|outcome| outcome.plan.kernel).collect();
        assert_eq!(order, [critical, removed, normal, low]);
        for outcome in &outcomes {
            match &outcome.result {
                Ok(report) => {
                    assert_eq!(report.priority, outcome.plan.priority);
                    assert_eq!(device_of(&fleet, &report.kernel), outcome.plan.target);
                }
                Err(error) => {
                    assert_eq!((error.kernel, error.remains), (removed, Remains::Removed));
                }
            }
        }
        assert_eq!(outcomes[0].plan.priority, MigrationPriority::Critical);
        assert_eq!(outcomes.iter().filter(|outcome| outcome.result.is_ok()).count(), 3);
        check_settled(&fleet, 3);
    });
}

#[test]
fn a_plan_that_the_world_overtook_is_refused() {
    within_time(|| {
        let fleet = filling_host_fleet(3, 4);
        let recorder = Recorder::launch_anywhere(&fleet, 40);
        let migrator = KernelMigrator::new(&fleet);
        let plan = fleet.coordinator().unregister_device(0).plans[0];
        let elsewhere = 3 - plan.target;
        migrator.migrate(&recorder.kernel, elsewhere).unwrap();
        let error = migrator.execute(&plan).unwrap_err();
        assert!(is_stale(&error), "{error}");
        assert!(error.source_running() && error.world_changed(), "{error}");
        assert_eq!((error.phase, device_of(&fleet, &recorder.kernel)), (Phase::Reserve, elsewhere));

        // From where it is now, but with the registration of the device that it left.
        let mut forged = plan;
        forged.source = elsewhere;
        let error = migrator.execute(&forged).unwrap_err();
        assert!(is_stale(&error), "{error}");
        recorder.check(&fleet, 0);
        check_settled(&fleet, 3);
    });
}

#[test]
fn park_takes_the_least_loaded_host_device_with_memory() {
    within_time(|| {
        let options = HostOptions::new(1).with_workers(1).with_device(1, 1000);
        let options = options.with_device(1, 1 << 20).with_device(1, 1 << 20);
        let backend = HostBackend::new(options);
        let fleet = Fleet::builder().backend(&backend).unwrap().build().unwrap();
        let recorders = [Recorder::launch(&fleet, 0, 400), Recorder::launch(&fleet, 2, 400)];
        let migrator = KernelMigrator::new(&fleet);
        let report = migrator.park(&recorders[0].kernel).unwrap();
        assert_eq!((report.source, report.target), (0, 3), "device 1 is small, device 2 loaded");
        recorders.iter().for_each(|recorder| recorder.check(&fleet, 0));
        check_settled(&fleet, 4);

        let large = Recorder::launch(&fleet, 0, 1 << 20);
        let error = migrator.park(&large.kernel).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("device 1 has ") && text.contains("device 3 has "), "{text}");
        assert!(error.source_running() && error.target_device.is_none(), "{text}");

        fleet.remove(&large.kernel).unwrap();
        let error = migrator.park(&large.kernel).unwrap_err();
        assert_eq!(error.remains, Remains::Removed);
    });
}

#[test]
fn what_makes_no_sense_is_refused_with_the_reason() {
    within_time(|| {
        let fleet = host_fleet(2);
        let recorder = Recorder::launch(&fleet, 0, 40);
        let migrator = KernelMigrator::new(&fleet);
        let same = migrator.migrate(&recorder.kernel, 0).unwrap_err();
        assert!(
            same.source_running() && same.to_string().contains("on device 0 already"),
            "{same}"
        );
        let unknown = migrator.migrate(&recorder.kernel, 9).unwrap_err();
        assert!(unknown.source_running(), "{unknown}");
        assert!(unknown.to_string().contains("no device has index 9"), "{unknown}");
        let stranger = migrator.migrate(&KernelId::new("stranger"), 1).unwrap_err();
        assert_eq!(stranger.remains, Remains::Removed);
        let MigrationCause::Fleet(FleetError::UnknownKernel { .. }) = *stranger.cause else {
            panic!("{stranger}")
        };
        recorder.check(&fleet, 0);
        check_settled(&fleet, 2);
    });
}
