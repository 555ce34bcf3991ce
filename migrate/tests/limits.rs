//! Time limits, long steps, kernels that stop, devices that vanish in the middle of a drain.

#[path = "support/fleets.rs"]
mod support;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use hopwise_core::backend::Backend;
use hopwise_core::error::StepFault;
use hopwise_core::fault::{FaultAction, FaultPlan, FaultRule, FaultyBackend, Operation};
use hopwise_core::fleet::{Fleet, KernelPhase, KernelSpec};
use hopwise_core::host::{HostBackend, HostOptions};
use hopwise_core::id::KernelId;
use hopwise_core::message::Message;
use hopwise_core::program::Program;
use hopwise_migrate::{
    CancelToken, KernelMigrator, MigrationCause, MigrationError, MigrationOptions, Phase, Remains,
};
use support::{
    PATIENCE, Recorder, check_settled, eventually, filling_fleet, host_fleet, within_time,
};

/// A kernel whose step lasts until the test lets it go.
struct Gate {
    kernel: KernelId,
    begun: Receiver<()>,
    open: Sender<()>,
}

impl Gate {
    fn launch(fleet: &Fleet) -> Self {
        let (say_begun, begun) = bounded(0);
        let (open, wait) = bounded::<()>(0);
        let program = Program::builder("gate")
            .in_port("in", 4)
            .host(move |step| {
                say_begun.send(()).expect("the test waits for the step");
                wait.recv().expect("the test opens the gate");
                step.state[0] += 1;
                Ok(())
            })
            .build()
            .expect("a well-formed program");
        let kernel = fleet.launch(KernelSpec::new("gate", program, 4).started()).expect("room");
        Self { kernel, begun, open }
    }

    /// Migrates while the step runs.
    fn migrate_during_the_step(
        &self,
        fleet: &Fleet,
        options: MigrationOptions,
        cancel: &CancelToken,
    ) -> MigrationError {
        self.begun.recv_timeout(PATIENCE).expect("the step begins");
        let source = fleet.status(&self.kernel).expect("launched").device;
        let migrator = KernelMigrator::new(fleet).with_options(options);
        let error = migrator.migrate_with(&self.kernel, 1 - source, cancel).expect_err("no end");
        assert_eq!((error.phase, error.remains), (Phase::Hold, Remains::Running), "{error}");
        check_settled(fleet, 2);
        self.open.send(()).expect("the step waits");
        fleet.wait_idle(PATIENCE).expect("the step ends");
        assert_eq!(fleet.read_state(&self.kernel).expect("it runs"), [1, 0, 0, 0]);
        migrator.migrate(&self.kernel, 1 - source).expect("no step runs any more");
        assert_eq!(fleet.read_state(&self.kernel).expect("it runs"), [1, 0, 0, 0]);
        error
    }
}

#[test]
fn a_step_that_outlives_the_hold_timeout_is_left_alone() {
    within_time(|| {
        for timeout in [Duration::ZERO, Duration::from_millis(30)] {
            let fleet = host_fleet(2);
            let options = MigrationOptions::new().with_hold_timeout(timeout);
            let gate = Gate::launch(&fleet);
            let error = gate.migrate_during_the_step(&fleet, options, &CancelToken::new());
            assert!(matches!(*error.cause, MigrationCause::HoldTimedOut { .. }), "{error}");
        }
    });
}

#[test]
fn the_total_timeout_ends_the_wait_for_a_step() {
    within_time(|| {
        let fleet = host_fleet(2);
        let options = MigrationOptions::new().with_total_timeout(Duration::from_secs(1));
        let error =
            Gate::launch(&fleet).migrate_during_the_step(&fleet, options, &CancelToken::new());
        assert!(matches!(*error.cause, MigrationCause::TimedOut { .. }), "{error}");
    });
}

#[test]
fn a_cancel_ends_the_wait_for_a_step() {
    within_time(|| {
        let fleet = host_fleet(2);
        let gate = Gate::launch(&fleet);
        let token = CancelToken::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                eventually("the step is waited for", || {
                    fleet.status(&gate.kernel).expect("launched").held
                });
                token.cancel();
            });
            let error = gate.migrate_during_the_step(&fleet, MigrationOptions::new(), &token);
            assert!(matches!(*error.cause, MigrationCause::Cancelled), "{error}");
        });
    });
}

#[test]
fn no_time_at_all_changes_nothing() {
    within_time(|| {
        let fleet = host_fleet(2);
        let recorder = Recorder::launch(&fleet, 0, 40);
        let options = MigrationOptions::new().with_total_timeout(Duration::ZERO);
        let migrator = KernelMigrator::new(&fleet).with_options(options);
        let error = migrator.migrate(&recorder.kernel, 1).unwrap_err();
        assert_eq!((error.phase, error.source_running()), (Phase::Reserve, true));
        assert!(error.to_string().contains("total timeout"), "{error}");
        recorder.check(&fleet, 0);
        check_settled(&fleet, 2);
    });
}

#[test]
fn a_kernel_that_somebody_holds_is_waited_for_by_one() {
    within_time(|| {
        let fleet = host_fleet(2);
        let recorder = Recorder::launch(&fleet, 0, 40);
        let hold = fleet.hold(&recorder.kernel, PATIENCE).unwrap();
        let options = MigrationOptions::new().with_hold_timeout(PATIENCE);
        let migrator = KernelMigrator::new(&fleet).with_options(options);
        thread::scope(|scope| {
            let migration = scope.spawn(|| migrator.migrate(&recorder.kernel, 1));
            eventually("room is reserved", || {
                let target = fleet.coordinator().get_device_status(1);
                target.is_some_and(|status| status.reserved == 1)
            });
            assert!(!migration.is_finished());
            // Nobody else moves the kernel meanwhile, however often they ask.
            for _ in 0..2 {
                let error = migrator.migrate(&recorder.kernel, 1).unwrap_err();
                assert!(matches!(*error.cause, MigrationCause::UnderWay), "{error}");
                assert!(error.source_running(), "{error}");
            }
            hold.release();
            migration.join().unwrap().unwrap();
        });
        recorder.check(&fleet, 0);
        check_settled(&fleet, 2);
    });
}

#[test]
fn a_kernel_that_stopped_is_not_moved() {
    within_time(|| {
        let fleet = host_fleet(2);
        let program = Program::builder("gives-up")
            .in_port("in", 4)
            .host(|_| Err(StepFault::Program { code: 5, reason: "enough".to_owned() }))
            .build()
            .unwrap();
        let kernel = fleet.launch(KernelSpec::new("gives-up", program, 4)).unwrap();
        fleet.sender("test", &kernel, "in").unwrap().send(Message::default()).unwrap();
        fleet.wait_idle(PATIENCE).unwrap();
        let source = fleet.status(&kernel).unwrap().device;
        let error = KernelMigrator::new(&fleet).migrate(&kernel, 1 - source).unwrap_err();
        assert_eq!((error.phase, error.remains), (Phase::Reserve, Remains::Stopped));
        assert!(error.to_string().contains("enough"), "{error}");
        let report = KernelMigrator::new(&fleet).drain(source);
        assert_eq!((report.failed.len(), report.rounds), (1, 1));
        check_settled(&fleet, 2);
    });
}

#[test]
fn a_drain_finds_another_target_when_one_is_lost() {
    within_time(|| {
        let plan = FaultPlan::new();
        let host: Arc<dyn Backend> =
            Arc::new(HostBackend::new(HostOptions::new(3).with_workers(1)));
        let backend = FaultyBackend::new(host, Arc::clone(&plan));
        let fleet = filling_fleet(&backend, 4);
        let recorders = [(); 2].map(|()| Recorder::launch_anywhere(&fleet, 40));
        // The target of the first plan goes when it is to compile.
        let lose = FaultAction::Lose { cause: "pulled out".to_owned() };
        plan.arm(FaultRule::new(lose).on(Operation::Compile));
        let report = KernelMigrator::new(&fleet).drain(0);
        assert!(report.is_complete(), "{report:?}");
        assert_eq!((report.moved.len(), report.rounds, plan.fired()), (2, 2, 1));
        recorders.iter().for_each(|recorder| recorder.check(&fleet, 0));
    });
}

#[test]
fn a_source_lost_in_a_drain_loses_its_kernels_and_says_so() {
    within_time(|| {
        let plan = FaultPlan::new();
        let host: Arc<dyn Backend> =
            Arc::new(HostBackend::new(HostOptions::new(2).with_workers(1)));
        let backend = FaultyBackend::new(host, Arc::clone(&plan));
        let fleet = filling_fleet(&backend, 4);
        let recorders = [(); 2].map(|()| Recorder::launch_anywhere(&fleet, 40));
        let lose = FaultAction::Lose { cause: "pulled out".to_owned() };
        plan.arm(FaultRule::new(lose).on(Operation::Digests).at_device(0));
        let report = KernelMigrator::new(&fleet).drain(0);
        assert_eq!((report.moved.len(), report.failed.len()), (0, 2));
        assert!(report.failed.iter().all(|error| error.remains == Remains::Lost), "{report:?}");
        for recorder in &recorders {
            eventually("the kernel is marked as lost", || {
                let status = fleet.status(&recorder.kernel).unwrap();
                matches!(status.phase, KernelPhase::Lost { .. })
            });
        }
    });
}
