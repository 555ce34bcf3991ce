//! What goes wrong in a kernel or a device stays there, with a clear reason and nothing lost.

#[path = "support/fleet_programs.rs"]
mod support;

use std::sync::Arc;
use std::time::Duration;

use hopwise_core::backend::Backend;
use hopwise_core::coordinator::{DeviceState, LaunchOptions};
use hopwise_core::error::{DeviceError, StepFault};
use hopwise_core::fault::{FaultAction, FaultPlan, FaultRule, FaultyBackend, Operation};
use hopwise_core::fleet::{
    ConnectError, DeliveryReason, Fleet, FleetError, KernelPhase, KernelSpec, LaunchError,
    MessageTotals, SendReason,
};
use hopwise_core::host::{HostBackend, HostOptions};
use hopwise_core::id::KernelId;
use hopwise_core::message::Message;
use hopwise_core::program::{Grid, Program};
use support::{PATIENCE, gives_up, hash_of, host_fleet, relay, touchy, within_time, words};

fn on(device: usize) -> LaunchOptions {
    LaunchOptions::new().with_preferred_devices([device])
}

/// A fleet on two host devices whose calls a plan disturbs.
fn faulty_fleet(step_limit: Duration) -> (Fleet, Arc<FaultPlan>) {
    let plan = FaultPlan::new();
    let host = Arc::new(HostBackend::new(HostOptions::new(2).with_workers(1)));
    let backend = FaultyBackend::new(host, Arc::clone(&plan));
    let builder = Fleet::builder().backend(&backend).expect("host devices open");
    (builder.step_limit(step_limit).build().expect("two devices"), plan)
}

/// Runs `program` beside a relay on one device; sends it 1, 13, 2; the relay must not notice.
fn run_beside_a_relay(program: Arc<Program>) -> (Fleet, KernelId) {
    let fleet = host_fleet(1, 1);
    let bad = fleet.launch(KernelSpec::new("bad", program, 4)).expect("room");
    let good = fleet.launch(KernelSpec::new("good", relay(), 8)).expect("room");
    let (to_bad, to_good) = (
        fleet.sender("a", &bad, "in").expect("a port"),
        fleet.sender("b", &good, "in").expect("a port"),
    );
    for tag in [1, 13, 2] {
        let hold = fleet.hold(&bad, PATIENCE);
        let _ = to_bad.send(Message::from_words(tag, &[]));
        drop(hold);
        let _ = fleet.wait_idle(PATIENCE);
    }
    for tag in 1..=100 {
        to_good.send(Message::from_words(tag, &[])).expect("the relay runs");
    }
    fleet.wait_idle(PATIENCE).expect("nothing hangs");
    let state = words(&fleet.read_state(&good).expect("the relay runs"));
    assert_eq!(state, [100, hash_of(100)]);
    (fleet, bad)
}

#[test]
fn every_misdeed_stops_its_kernel_alone_and_keeps_its_message() {
    within_time(|| {
        let overflow = touchy("overflow", |step| {
            (0..9).for_each(|key| step.outbox.send(0, key, 0, &[]));
        });
        let equal_keys = touchy("equal-keys", |step| {
            (0..2).for_each(|_| step.outbox.send(0, 7, 0, &[]));
        });
        let nowhere = touchy("nowhere", |step| step.outbox.send(3, 0, 0, &[]));
        let too_long = touchy("too-long", |step| step.outbox.send(0, 0, 0, &[0; 9]));
        let panics = touchy("panics", |_| panic!("thirteen is bad luck"));
        let expected = [
            (overflow, "outbox overflow: 9 messages sent, 4 slots"),
            (equal_keys, "two messages on out-port `out` carry key 7"),
            (nowhere, "out-port 3, the program has 1"),
            (too_long, "36 bytes on out-port `out`, which allows 8"),
            (panics, "thirteen is bad luck"),
            (gives_up(), "fault 5: thirteen"),
        ];
        for (program, text) in expected {
            let name = program.name().to_owned();
            let (fleet, bad) = run_beside_a_relay(program);
            let status = fleet.status(&bad).unwrap();
            let KernelPhase::Failed(fault) = &status.phase else { panic!("{name}: {status:?}") };
            assert!(fault.to_string().contains(text), "{name}: {fault}");
            assert_eq!((status.steps, status.mailbox_depth), (1, 1), "{name}: 13 is kept");
            assert_eq!(fleet.coordinator().get_kernel_device(&bad), Some(0), "still mapped");
            let error = fleet.hold(&bad, PATIENCE).unwrap_err();
            assert!(matches!(error, FleetError::Failed { .. }), "{error}");
        }
    });
}

#[test]
fn a_step_without_end_loses_its_kernel_and_nobody_else() {
    within_time(|| {
        let program = touchy("endless", |_| {
            loop {
                std::thread::park();
            }
        });
        let backend = HostBackend::new(HostOptions::new(1).with_workers(1));
        let builder = Fleet::builder().backend(&backend).unwrap();
        let fleet = builder.step_limit(Duration::from_millis(50)).build().unwrap();
        let endless = fleet.launch(KernelSpec::new("endless", program, 4)).unwrap();
        let good = fleet.launch(KernelSpec::new("good", relay(), 8)).unwrap();
        let to_endless = fleet.sender("a", &endless, "in").unwrap();
        to_endless.send(Message::from_words(13, &[])).unwrap();
        let to_good = fleet.sender("b", &good, "in").unwrap();
        for tag in 1..=50 {
            to_good.send(Message::from_words(tag, &[])).unwrap();
        }
        fleet.wait_idle(PATIENCE).unwrap();
        assert_eq!(words(&fleet.read_state(&good).unwrap()), [50, hash_of(50)]);
        let status = fleet.status(&endless).unwrap();
        let KernelPhase::Lost { cause } = &status.phase else { panic!("{status:?}") };
        assert!(cause.contains("endless ran longer than its limit of 50 ms"), "{cause}");
        assert_eq!(status.mailbox_depth, 1, "its message is kept");
        let error = to_endless.send(Message::default()).unwrap_err();
        assert!(matches!(error.reason, SendReason::Closed(DeliveryReason::Lost { .. })));
        assert!(fleet.remove(&endless).is_ok(), "a lost kernel can be removed");
        assert_eq!(fleet.coordinator().get_kernel_device(&endless), None);
    });
}

#[test]
fn a_lost_device_keeps_its_kernels_mapped_and_their_messages() {
    within_time(|| {
        let (fleet, plan) = faulty_fleet(PATIENCE);
        let first = fleet.launch(KernelSpec::new("first", relay(), 8).with_options(on(0))).unwrap();
        let second =
            fleet.launch(KernelSpec::new("second", relay(), 8).with_options(on(1))).unwrap();
        fleet.connect(&first, "out", &second, "in").unwrap();
        let sender = fleet.sender("test", &first, "in").unwrap();
        for tag in 1..=10 {
            sender.send(Message::from_words(tag, &[])).unwrap();
        }
        fleet.wait_idle(PATIENCE).unwrap();
        let lose = FaultAction::Lose { cause: "pulled out".to_owned() };
        plan.arm(FaultRule::new(lose).on(Operation::RunBatch).at_device(1).at_call(1));
        for tag in 11..=20 {
            sender.send(Message::from_words(tag, &[])).unwrap();
        }
        fleet.wait_idle(PATIENCE).unwrap();
        assert_eq!(words(&fleet.read_state(&first).unwrap()), [20, hash_of(20)], "it goes on");
        let status = fleet.status(&second).unwrap();
        let KernelPhase::Lost { cause } = &status.phase else { panic!("{status:?}") };
        assert!(cause.contains("pulled out"), "{cause}");
        assert_eq!(status.mailbox_depth, 10, "nothing that was sent is gone");
        assert_eq!(fleet.coordinator().get_kernel_device(&second), Some(1));
        let device = fleet.coordinator().get_device_status(1).unwrap();
        assert_eq!(device.state, DeviceState::Lost);
        let error = fleet.launch(KernelSpec::new("x", relay(), 8).with_options(on(1)));
        assert!(matches!(error.unwrap_err(), LaunchError::Place { .. }));
        let totals = MessageTotals::of(&fleet.ledgers());
        assert_eq!((totals.lost, totals.duplicated, totals.waiting), (0, 0, 10));
    });
}

#[test]
fn a_step_that_was_not_started_is_repeated_and_one_of_unknown_outcome_is_not() {
    within_time(|| {
        let (fleet, plan) = faulty_fleet(PATIENCE);
        let kernel = fleet.launch(KernelSpec::new("k", relay(), 8).with_options(on(0))).unwrap();
        let sender = fleet.sender("test", &kernel, "in").unwrap();
        let busy = DeviceError::Driver { message: "busy".to_owned() };
        let refuse = FaultRule::new(FaultAction::Fail(busy.clone())).on(Operation::RunBatch);
        plan.arm(refuse.clone().times(2));
        sender.send(Message::from_words(1, &[])).unwrap();
        fleet.wait_idle(PATIENCE).unwrap();
        assert_eq!(words(&fleet.read_state(&kernel).unwrap()), [1, hash_of(1)]);

        let other = fleet.launch(KernelSpec::new("o", relay(), 8).with_options(on(1))).unwrap();
        let to_other = fleet.sender("test", &other, "in").unwrap();
        plan.disarm();
        plan.arm(refuse.at_device(1).times(3));
        to_other.send(Message::from_words(1, &[])).unwrap();
        fleet.wait_idle(PATIENCE).unwrap();
        let status = fleet.status(&other).unwrap();
        assert_eq!(status.phase, KernelPhase::Failed(StepFault::Device(busy.clone())));
        assert_eq!((status.mailbox_depth, status.steps), (1, 0));

        plan.disarm();
        plan.arm(FaultRule::new(FaultAction::FailAfter(busy)).on(Operation::RunBatch));
        sender.send(Message::from_words(2, &[])).unwrap();
        fleet.wait_idle(PATIENCE).unwrap();
        let status = fleet.status(&kernel).unwrap();
        let KernelPhase::Lost { cause } = &status.phase else { panic!("{status:?}") };
        assert!(cause.contains("nobody knows"), "{cause}");
    });
}

#[test]
fn a_failed_launch_leaves_nothing() {
    within_time(|| {
        let (fleet, plan) = faulty_fleet(PATIENCE);
        let before = fleet.device(0).unwrap().memory().unwrap();
        for operation in [Operation::Compile, Operation::CreateInstance] {
            let error = DeviceError::OutOfMemory { requested_bytes: 8, available_bytes: Some(0) };
            plan.arm(FaultRule::new(FaultAction::Fail(error)).on(operation));
            let error = fleet.launch(KernelSpec::new("k", relay(), 8)).unwrap_err();
            assert!(error.to_string().contains("kernel `k` on device"), "{error}");
        }
        assert_eq!(fleet.device(0).unwrap().memory().unwrap(), before);
        let counts: Vec<_> =
            fleet.coordinator().get_all_status().iter().map(|device| device.kernel_count).collect();
        assert_eq!(counts, [0, 0]);
        let error = fleet.launch(KernelSpec::new("k", relay(), 6)).unwrap_err();
        assert!(error.to_string().contains("a state of 6 bytes"), "{error}");
        let shader =
            Program::builder("shader").wgsl("").pass("main", Grid::Messages).build().unwrap();
        let error = fleet.launch(KernelSpec::new("k", shader, 8)).unwrap_err();
        assert!(error.to_string().contains("device 1: program `shader` has no form for host"));
        let spec = KernelSpec::new("k", relay(), 8).with_parameters(vec![1]);
        let error = fleet.launch(spec).unwrap_err();
        assert!(error.to_string().contains("1 parameter words, program `relay` declares 0"));
    });
}

#[test]
fn kernels_go_where_their_memory_fits() {
    let options = HostOptions::new(0).with_device(1, 100).with_device(1, 1000);
    let backend = HostBackend::new(options);
    let fleet = Fleet::builder().backend(&backend).unwrap().build().unwrap();
    let launch = |bytes| fleet.launch(KernelSpec::new("k", relay(), bytes));
    let device = |kernel| fleet.status(&kernel).unwrap().device;
    assert_eq!(device(launch(400).unwrap()), 1, "too large for device 0");
    assert_eq!(device(launch(80).unwrap()), 0, "the least loaded");
    assert_eq!(device(launch(80).unwrap()), 1, "device 0 has 4 bytes left");
    let error = launch(4000).unwrap_err().to_string();
    assert!(error.contains("device 1: a state of 4000 bytes exceeds the device's limit of 1000"));
    assert!(matches!(launch(800).unwrap_err(), LaunchError::Place { .. }));
}

#[test]
fn wrong_connections_are_named() {
    let fleet = host_fleet(1, 1);
    let wide = Program::builder("wide").out_port("out", 9).host(|_| Ok(())).build().unwrap();
    let from = fleet.launch(KernelSpec::new("wide", wide, 4)).unwrap();
    let to = fleet.launch(KernelSpec::new("relay", relay(), 8)).unwrap();
    let error = fleet.connect(&from, "out", &to, "in").unwrap_err();
    assert!(error.to_string().contains("sends up to 9 bytes, in-port `relay.in` takes 8"));
    let error = fleet.connect(&to, "up", &to, "in").unwrap_err();
    assert!(error.to_string().contains("no out-port `up`; it has: out"), "{error}");
    let error = fleet.sender("s", &from, "in").unwrap_err();
    assert!(error.to_string().contains("no in-port `in`; it has: none"), "{error}");
    let stranger = KernelId::new("stranger");
    let error = fleet.connect(&stranger, "out", &to, "in").unwrap_err();
    assert!(matches!(error, ConnectError::UnknownKernel { .. }));
}

#[test]
fn a_device_is_closed_when_its_kernels_are_gone() {
    within_time(|| {
        let fleet = host_fleet(2, 1);
        let kernel = fleet.launch(KernelSpec::new("k", relay(), 8).with_options(on(1))).unwrap();
        let error = fleet.close_device(1).unwrap_err();
        assert!(error.to_string().contains("device 1 still has 1 kernels"), "{error}");
        assert!(fleet.launch(KernelSpec::new("l", relay(), 8).with_options(on(1))).is_ok());
        let other = fleet.statuses().iter().map(|status| status.kernel).max().unwrap();
        fleet.remove(&kernel).unwrap();
        fleet.remove(&other).unwrap();
        fleet.close_device(1).unwrap();
        assert!(matches!(fleet.close_device(1), Err(FleetError::UnknownDevice { .. })));
        let error = fleet.launch(KernelSpec::new("k", relay(), 8).with_options(on(1)));
        assert!(error.is_err());
        fleet.launch(KernelSpec::new("k", relay(), 8)).unwrap();
    });
}

#[test]
fn a_lost_device_that_ran_before_is_lost_when_it_is_added() {
    let backend = HostBackend::new(HostOptions::new(2).with_workers(1));
    let device = backend.open(0).unwrap();
    let fleet = Fleet::builder().device(backend.open(1).unwrap()).build().unwrap();
    device.health().latch(DeviceError::Lost { cause: "gone".to_owned() });
    assert!(fleet.add_device(device).is_err());
    assert_eq!(fleet.add_device(backend.open(0).unwrap()).unwrap(), 1);
    assert!(Fleet::builder().build().is_err());
}
