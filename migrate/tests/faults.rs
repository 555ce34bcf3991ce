//! A fault at every device call of a migration, one at a time.

#[path = "support/fleets.rs"]
mod support;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use hopwise_core::backend::Backend;
use hopwise_core::device::{InitialState, InstanceRequest};
use hopwise_core::error::DeviceError;
use hopwise_core::fault::{FaultAction, FaultPlan, FaultRule, FaultyBackend, Operation};
use hopwise_core::fleet::{Fleet, KernelPhase, KernelStatus};
use hopwise_core::host::{HostBackend, HostOptions};
use hopwise_migrate::{
    KernelMigrator, MigrationCause, MigrationError, MigrationOptions, MigrationReport, Phase,
    Remains, TransferPath,
};
use support::{
    PATIENCE, Recorder, check_ledgers, eventually, recorder as recorder_program, within_time,
};

const SOURCE: usize = 0;
const TARGET: usize = 1;

/// Every call that a migration can make.
const OPERATIONS: [Operation; 7] = [
    Operation::Memory,
    Operation::Compile,
    Operation::CreateInstance,
    Operation::ReadState,
    Operation::WriteState,
    Operation::Digests,
    Operation::PeerCopy,
];

/// Messages that are sent before a migration: 16 fill the endpoint, 4 are pending output and keep
/// the kernel from stepping, 20 wait in its mailbox. So a migration makes the same calls every time.
const SENT: u32 = 40;

/// One fleet with a kernel on the source that has messages everywhere.
struct Scene {
    fleet: Fleet,
    backend: Arc<HostBackend>,
    plan: Arc<FaultPlan>,
    recorder: Recorder,
    options: MigrationOptions,
    kernel_bytes: u64,
}

/// Which call is disturbed.
#[derive(Clone, Copy, Debug)]
struct Call {
    operation: Operation,
    device: usize,
    number: u64,
}

impl Scene {
    fn new(peer_copy: bool) -> Self {
        let plan = FaultPlan::new();
        let backend = Arc::new(HostBackend::new(HostOptions::new(2).with_workers(1)));
        let inner = Arc::clone(&backend) as Arc<dyn Backend>;
        let faulty = FaultyBackend::new(inner, Arc::clone(&plan));
        let builder = Fleet::builder().backend(&faulty).expect("host devices open");
        let fleet = builder.build().expect("threads start");
        // Direct copies cover 16 chunks at a time, so they need a larger state for several calls.
        let words = if peer_copy { 600 } else { 50 };
        let recorder = Recorder::launch(&fleet, SOURCE, words);
        // Held meanwhile, so that every step takes as many messages as it can.
        let hold = fleet.hold(&recorder.kernel, PATIENCE).expect("no step runs yet");
        recorder.send(1, SENT);
        hold.release();
        eventually("the kernel waits for its endpoint", || {
            let status = fleet.status(&recorder.kernel).expect("launched");
            (status.mailbox_depth, status.pending_output) == (20, 4)
        });
        let options = MigrationOptions::new()
            .with_chunk_bytes(64)
            .with_staging_buffers(2)
            .with_peer_copy(peer_copy);
        let kernel_bytes = used_bytes(&backend)[SOURCE];
        Self { fleet, backend, plan, recorder, options, kernel_bytes }
    }

    fn migrate(&self) -> Result<MigrationReport, MigrationError> {
        let migrator = KernelMigrator::new(&self.fleet).with_options(self.options.clone());
        migrator.migrate(&self.recorder.kernel, TARGET)
    }

    fn status(&self) -> KernelStatus {
        self.fleet.status(&self.recorder.kernel).expect("nobody removes the kernel")
    }

    /// One owner, nothing reserved, nothing held, no memory but the owner's.
    fn check_owner(&self, owner: usize) {
        let status = self.status();
        assert_eq!((status.device, status.held), (owner, false));
        let coordinator = self.fleet.coordinator();
        assert_eq!(coordinator.get_kernel_device(&self.recorder.kernel), Some(owner));
        for device in coordinator.get_all_status() {
            let expected = (usize::from(device.index() == owner), 0);
            assert_eq!((device.kernel_count, device.reserved), expected);
        }
        let mut expected = [0, 0];
        expected[owner] = self.kernel_bytes;
        eventually("only the owner's memory is in use", || used_bytes(&self.backend) == expected);
    }

    /// The kernel finishes its work, with the right result and no message lost.
    fn check_works(&self) {
        self.recorder.receive(1, SENT);
        self.recorder.send(SENT + 1, SENT + 10);
        self.recorder.receive(SENT + 1, SENT + 10);
        check_ledgers(&self.fleet);
        self.recorder.check(&self.fleet, SENT + 10);
    }

    /// The kernel is lost, stays mapped and keeps its messages.
    fn check_lost(&self) {
        eventually("the kernel is marked as lost", || {
            matches!(self.status().phase, KernelPhase::Lost { .. })
        });
        let status = self.status();
        assert_eq!((status.mailbox_depth, status.pending_output), (20, 4));
        self.check_owner(SOURCE);
    }

    fn check_stayed(&self) {
        assert_eq!(self.status().phase, KernelPhase::Ready);
        self.check_owner(SOURCE);
        let target_works = self.fleet.device(TARGET).expect("known").health().is_working();
        if target_works {
            // Nothing of the failed attempt stands in the way of the next one.
            self.migrate().expect("no fault any more");
            self.check_owner(TARGET);
        }
        self.check_works();
    }

    fn check_moved(&self) {
        self.check_owner(TARGET);
        self.check_works();
    }
}

/// Read below the faults, so that it can be read of lost devices, too.
fn used_bytes(backend: &HostBackend) -> [u64; 2] {
    let infos = backend.enumerate().expect("declared devices are listed");
    [SOURCE, TARGET].map(|at| infos[at].total_memory_bytes - infos[at].available_memory_bytes)
}

/// The calls that an undisturbed migration makes.
fn calls(peer_copy: bool) -> Vec<Call> {
    let scene = Scene::new(peer_copy);
    scene.plan.reset_counts();
    scene.migrate().expect("no fault is armed");
    let count = |operation, device| scene.plan.calls(Some(operation), Some(device));
    let mut calls = Vec::new();
    for operation in OPERATIONS {
        for device in [SOURCE, TARGET] {
            let numbers = 1..=count(operation, device);
            calls.extend(numbers.map(|number| Call { operation, device, number }));
        }
    }
    assert_eq!(calls.len() as u64, scene.plan.calls(None, None), "no call is forgotten");
    scene.check_moved();
    calls
}

/// Runs a migration for every call it makes, with `rule` made of an action for that call.
fn at_every_call(
    action: impl Fn() -> FaultAction,
    times: u64,
    check: impl Fn(&Scene, Call, Result<MigrationReport, MigrationError>),
) {
    for peer_copy in [false, true] {
        for call in calls(peer_copy) {
            let scene = Scene::new(peer_copy);
            let Call { operation, device, number } = call;
            let rule = FaultRule::new(action()).on(operation).at_device(device);
            scene.plan.reset_counts();
            scene.plan.arm(rule.at_call(number).times(times));
            let outcome = scene.migrate();
            scene.plan.disarm();
            assert!(scene.plan.fired() > 0, "{call:?} was not made");
            check(&scene, call, outcome);
        }
    }
}

fn expected_phase(operation: Operation) -> Phase {
    match operation {
        Operation::Compile | Operation::CreateInstance => Phase::Twin,
        Operation::Digests => Phase::Verify,
        _ => Phase::Copy,
    }
}

/// What every recoverable error must lead to.
fn check_recoverable(scene: &Scene, call: Call, outcome: Result<MigrationReport, MigrationError>) {
    if call.operation == Operation::PeerCopy {
        let report = outcome.expect("host memory is the way out");
        assert_eq!(report.path == TransferPath::Staged, call.number == 1, "{call:?}");
        assert!(report.peer_failure.is_some_and(|reason| reason.contains("flaky")));
        return scene.check_moved();
    }
    let error = outcome.expect_err("the fault shows");
    assert_eq!(error.phase, expected_phase(call.operation), "{call:?}: {error}");
    assert!(error.source_running(), "{call:?}: {error}");
    assert!(error.to_string().contains("flaky"), "{error}");
    scene.check_stayed();
}

#[test]
fn recoverable_errors_leave_the_kernel_running_on_the_source() {
    within_time(|| {
        let flaky = || DeviceError::Driver { message: "flaky".to_owned() };
        at_every_call(|| FaultAction::Fail(flaky()), 1, check_recoverable);
        at_every_call(|| FaultAction::FailAfter(flaky()), 1, check_recoverable);
    });
}

#[test]
fn a_loss_of_the_target_is_recoverable_and_one_of_the_source_is_not() {
    within_time(|| {
        let lost = || "pulled out".to_owned();
        let check = |scene: &Scene, call: Call, outcome: Result<_, MigrationError>| {
            let error = outcome.expect_err("the loss shows");
            assert_eq!(error.phase, expected_phase(call.operation), "{call:?}: {error}");
            let MigrationCause::DeviceLost { device, .. } = *error.cause else {
                panic!("{call:?}: {error}")
            };
            assert_eq!(device, call.device);
            if device == SOURCE {
                assert_eq!(error.remains, Remains::Lost, "{call:?}: {error}");
                scene.check_lost();
            } else {
                assert_eq!(error.remains, Remains::Running, "{call:?}: {error}");
                scene.check_stayed();
            }
        };
        at_every_call(|| FaultAction::Lose { cause: lost() }, 1, check);
        let after = || FaultAction::FailAfter(DeviceError::Lost { cause: lost() });
        at_every_call(after, 1, check);
    });
}

#[test]
fn a_byte_that_comes_out_wrong_is_found_and_copied_again() {
    within_time(|| {
        at_every_call(
            || FaultAction::Corrupt,
            1,
            |scene, call, outcome| {
                let report = outcome.expect("one wrong byte is repaired");
                let carries_data =
                    !matches!(call.operation, Operation::Compile | Operation::CreateInstance);
                assert_eq!(report.repaired_chunks, u64::from(carries_data), "{call:?}");
                if call.operation == Operation::PeerCopy {
                    assert_eq!(report.path, TransferPath::PeerThenStaged, "{call:?}");
                }
                scene.check_moved();
            },
        );
    });
}

#[test]
fn a_device_that_goes_on_corrupting_is_refused() {
    within_time(|| {
        at_every_call(
            || FaultAction::Corrupt,
            u64::MAX,
            |scene, call, outcome| {
                let corrupts_both_copies = matches!(
                    call.operation,
                    Operation::ReadState | Operation::WriteState | Operation::Digests
                );
                if !corrupts_both_copies {
                    outcome.expect("the second way is sound");
                    return scene.check_moved();
                }
                let error = outcome.expect_err("the states differ");
                let MigrationCause::StatesDiffer { differing, chunks, .. } = *error.cause else {
                    panic!("{call:?}: {error}")
                };
                assert!(differing > 0 && differing <= chunks);
                assert_eq!((error.phase, error.source_running()), (Phase::Verify, true));
                scene.check_stayed();
            },
        );
    });
}

#[test]
fn the_source_is_lost_while_the_target_works() {
    within_time(|| {
        let mut losses = 0;
        for call in calls(false).into_iter().filter(|call| call.device == TARGET) {
            let scene = Scene::new(false);
            let Call { operation, device, number } = call;
            let pause = FaultAction::Delay(Duration::from_millis(50));
            scene.plan.reset_counts();
            scene.plan.arm(FaultRule::new(pause).on(operation).at_device(device).at_call(number));
            let outcome = thread::scope(|scope| {
                let migration = scope.spawn(|| scene.migrate());
                eventually("the call is reached", || scene.plan.fired() > 0);
                let source = scene.fleet.device(SOURCE).expect("known");
                source.health().latch(DeviceError::Lost { cause: "pulled out".to_owned() });
                migration.join().expect("a migration does not panic")
            });
            match outcome {
                // This machine was so slow that the migration had ended before the loss.
                Ok(_) => scene.check_moved(),
                Err(error) => {
                    assert_eq!(error.remains, Remains::Lost, "{call:?}: {error}");
                    scene.check_lost();
                    losses += 1;
                }
            }
        }
        assert!(losses > 0);
    });
}

#[test]
fn a_target_without_memory_is_refused_with_the_figures() {
    within_time(|| {
        let options = HostOptions::new(1).with_workers(1).with_device(1, 1000);
        let backend = HostBackend::new(options.with_device(1, 4000));
        let fleet = Fleet::builder().backend(&backend).expect("opens").build().expect("starts");
        let recorder = Recorder::launch(&fleet, SOURCE, 600);
        let migrator = KernelMigrator::new(&fleet);
        let error = migrator.migrate(&recorder.kernel, TARGET).expect_err("too small");
        assert_eq!((error.phase, error.source_running()), (Phase::Reserve, true), "{error}");
        assert!(error.to_string().contains("1000 are left"), "{error}");

        // Memory that is used behind the coordinator's back shows when the twin is created.
        let device = fleet.device(2).expect("known");
        let program = device.compile(&recorder_program()).expect("it has a host form");
        let (state_bytes, initial) = (3000, InitialState::Zeroed);
        let request = InstanceRequest { parameters: &[], state_bytes, initial };
        let hog = device.create_instance(&program, &request).expect("there is room");
        let error = migrator.migrate(&recorder.kernel, 2).expect_err("full");
        assert_eq!((error.phase, error.source_running()), (Phase::Twin, true), "{error}");
        assert!(error.to_string().contains("out of device memory"), "{error}");
        assert_eq!(fleet.coordinator().get_device_status(2).map(|status| status.reserved), Some(0));
        drop(hog);
        migrator.migrate(&recorder.kernel, 2).expect("there is room again");
        recorder.check(&fleet, 0);
    });
}
