//! The fault-injecting wrapper: every action does what it says, at the call it was asked for, and
//! the conformance suite sees a backend that lies.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use hopwise_core::abi::{inbox, outbox};
use hopwise_core::backend::Backend;
use hopwise_core::conformance::{self, programs};
use hopwise_core::device::{
    Device, InitialState, InstanceRequest, KernelInstance, Step, StepOutcome,
};
use hopwise_core::error::{DeviceError, TransferError};
use hopwise_core::fault::{FaultAction, FaultPlan, FaultRule, FaultyBackend, Operation};
use hopwise_core::host::{HostBackend, HostOptions};
use proptest::prelude::*;

fn wrapped(plan: &Arc<FaultPlan>) -> (Arc<HostBackend>, FaultyBackend) {
    let host = Arc::new(HostBackend::new(HostOptions::new(2).with_memory_bytes(4 << 20)));
    (Arc::clone(&host), FaultyBackend::new(host, Arc::clone(plan)))
}

fn kernel(device: &dyn Device) -> Result<Arc<dyn KernelInstance>, DeviceError> {
    let refused = |text: String| DeviceError::Driver { message: text };
    let compiled = device.compile(&programs::namesakes()[0]);
    let compiled = compiled.map_err(|error| refused(error.to_string()))?;
    let initial = InitialState::Bytes(&[0; 64]);
    let request = InstanceRequest { parameters: &[], state_bytes: 64, initial };
    device.create_instance(&compiled, &request).map_err(|error| refused(error.to_string()))
}

fn step(instance: &Arc<dyn KernelInstance>) -> Step {
    let program = &programs::namesakes()[0];
    let (mut inbox, mut outbox) = (Vec::new(), Vec::new());
    inbox::begin(&mut inbox, program.inbox_slot_words(), 1, true);
    outbox::begin(&mut outbox, program);
    let instance = Arc::clone(instance);
    Step::new(instance, inbox, outbox)
}

fn read_all(instance: &dyn KernelInstance) -> Result<Vec<u8>, TransferError> {
    let mut bytes = vec![0; 64];
    instance.read_state(0, &mut bytes).map(|()| bytes)
}

fn driver() -> DeviceError {
    DeviceError::Driver { message: "injected".to_owned() }
}

fn lost() -> DeviceError {
    DeviceError::Lost { cause: "injected".to_owned() }
}

/// Every operation once, in an order in which each needs what came before.
fn tour(backend: &FaultyBackend) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    backend.enumerate().map_err(|error| text(&error))?;
    backend.links().map_err(|error| text(&error))?;
    let device = backend.open(0).map_err(|error| text(&error))?;
    device.memory().map_err(|error| text(&error))?;
    let kernel = kernel(&*device).map_err(|error| text(&error))?;
    device.run_batch(&mut [step(&kernel)]).map_err(|error| text(&error))?;
    read_all(&*kernel).map_err(|error| text(&error))?;
    kernel.write_state(0, &[1; 64]).map_err(|error| text(&error))?;
    kernel.chunk_digests(16).map_err(|error| text(&error))?;
    let peer = device.peer_copy().expect("host devices copy");
    peer.copy_state(&*kernel, &*kernel, 0, 64).map_err(|error| text(&error))
}

#[test]
fn every_call_of_a_run_can_be_made_to_fail() {
    let plan = FaultPlan::new();
    tour(&wrapped(&plan).1).expect("nothing is armed");
    let total = plan.calls(None, None);
    assert_eq!(total, 11, "one call of each operation");
    assert_eq!((plan.calls(None, Some(0)), plan.calls(None, Some(1))), (9, 0));
    assert_eq!(plan.fired(), 0);
    for action in [FaultAction::Fail(driver()), FaultAction::FailAfter(driver())] {
        for call in 1..=total {
            plan.disarm();
            plan.reset_counts();
            plan.arm(FaultRule::new(action.clone()).at_call(call));
            let (host, backend) = wrapped(&plan);
            let failed = tour(&backend).expect_err("a fault is armed");
            assert!(failed.contains("injected"), "{failed}");
            assert_eq!((plan.fired(), plan.calls(None, None)), (1, call));
            tour(&backend).expect("a rule disturbs one call unless told otherwise");
            assert_eq!(host.open(0).unwrap().memory().unwrap().available_bytes, 4 << 20);
        }
    }
}

#[test]
fn a_failed_batch_tells_whether_its_steps_ran() {
    let cases = [
        (FaultAction::Fail(driver()), Err(driver()), StepOutcome::NotStarted, 0),
        (FaultAction::FailAfter(driver()), Err(driver()), StepOutcome::Unknown, 1),
        (FaultAction::Delay(Duration::from_millis(1)), Ok(()), StepOutcome::Applied, 1),
        (FaultAction::Corrupt, Ok(()), StepOutcome::Applied, 1),
    ];
    for (action, result, outcome, word) in cases {
        let plan = FaultPlan::new();
        let device = wrapped(&plan).1.open(1).unwrap();
        let kernel = kernel(&*device).unwrap();
        plan.arm(FaultRule::new(action).on(Operation::RunBatch).at_device(1));
        let mut steps = [step(&kernel)];
        let (inbox, outbox) = (steps[0].inbox.clone(), steps[0].outbox.clone());
        assert_eq!(device.run_batch(&mut steps), result);
        assert_eq!(steps[0].outcome, outcome);
        assert_eq!((&steps[0].inbox, &steps[0].outbox), (&inbox, &outbox), "boxes come back");
        assert!(Arc::ptr_eq(&steps[0].instance, &kernel), "the caller's instance comes back");
        assert_eq!(read_all(&*kernel).unwrap()[0], word);
        assert_eq!(plan.fired(), 1);
    }
}

#[test]
fn a_lost_device_takes_its_instances_along_and_no_other() {
    for action in [
        FaultAction::Lose { cause: "injected".to_owned() },
        FaultAction::Fail(lost()),
        FaultAction::FailAfter(lost()),
    ] {
        let plan = FaultPlan::new();
        let (host, backend) = wrapped(&plan);
        let (device, other) = (backend.open(0).unwrap(), backend.open(1).unwrap());
        let (here, there) = (kernel(&*device).unwrap(), kernel(&*other).unwrap());
        let peer = other.peer_copy().unwrap();
        assert!(peer.reaches(&*device));
        plan.arm(FaultRule::new(action).on(Operation::Memory).at_device(0));
        assert!(other.memory().is_ok(), "the rule names another device");
        assert_eq!(device.memory(), Err(lost()));

        let gone = Err(TransferError::Device(lost()));
        assert_eq!(read_all(&*here), Err(TransferError::Device(lost())));
        assert_eq!(here.write_state(0, &[0; 4]), gone);
        assert_eq!(peer.copy_state(&*there, &*here, 0, 4), gone);
        assert!(!peer.reaches(&*device));
        let mut steps = [step(&here)];
        assert_eq!(device.run_batch(&mut steps), Err(lost()));
        assert_eq!(steps[0].outcome, StepOutcome::NotStarted);
        assert!(read_all(&*there).is_ok());
        assert!(backend.open(0).unwrap().memory().is_ok(), "opened anew it works");

        drop((steps, here));
        assert_eq!(host.open(0).unwrap().memory().unwrap().available_bytes, 4 << 20);
    }
}

#[test]
fn a_loss_underneath_is_seen() {
    let plan = FaultPlan::new();
    let (host, backend) = wrapped(&plan);
    let device = backend.open(0).unwrap();
    let here = kernel(&*device).unwrap();
    host.open_host(0).unwrap().lose("injected");
    assert_eq!(device.health().check(), Err(lost()));
    assert_eq!(read_all(&*here), Err(TransferError::Device(lost())));
}

#[test]
fn corruption_flips_one_bit() {
    let plan = FaultPlan::new();
    let device = wrapped(&plan).1.open(0).unwrap();
    let (first, second) = (kernel(&*device).unwrap(), kernel(&*device).unwrap());
    let mut wrong = vec![0; 64];
    wrong[0] = 1;
    let corrupt = |operation| plan.arm(FaultRule::new(FaultAction::Corrupt).on(operation));

    corrupt(Operation::ReadState);
    assert_eq!(read_all(&*first).unwrap(), wrong);
    assert_eq!(read_all(&*first).unwrap(), [0; 64]);
    let right = first.chunk_digests(32).unwrap();
    corrupt(Operation::Digests);
    assert_eq!(first.chunk_digests(32).unwrap(), [right[0] ^ 1, right[1]]);
    corrupt(Operation::WriteState);
    first.write_state(0, &[0; 64]).unwrap();
    assert_eq!(read_all(&*first).unwrap(), wrong);
    corrupt(Operation::PeerCopy);
    let peer = device.peer_copy().unwrap();
    peer.copy_state(&*first, &*second, 4, 60).unwrap();
    let mut at_four = vec![0; 64];
    at_four[4] = 1;
    assert_eq!(read_all(&*second).unwrap(), at_four);
    corrupt(Operation::CreateInstance);
    assert_eq!(read_all(&*kernel(&*device).unwrap()).unwrap(), wrong);
}

#[test]
fn the_suite_sees_a_backend_that_lies() {
    let lies = [
        (Operation::ReadState, "reads_and_writes_agree_with_a_model"),
        (Operation::WriteState, "initial_states_are_as_asked"),
        (Operation::CreateInstance, "passes_see_what_came_before"),
        (Operation::Digests, "digests_agree_with_the_definition"),
        (Operation::PeerCopy, "peer_copies_are_exact"),
    ];
    for (operation, topic) in lies {
        let plan = FaultPlan::new();
        let corrupt = FaultRule::new(FaultAction::Corrupt).on(operation).times(u64::MAX);
        plan.arm(corrupt);
        let checked = AssertUnwindSafe(|| conformance::check(topic, || wrapped(&plan).1));
        assert!(catch_unwind(checked).is_err(), "{topic} accepts wrong {operation:?}");
        assert!(plan.fired() > 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A rule disturbs exactly the calls that it names, whatever was called before it was armed.
    #[test]
    fn rules_count_matching_calls_from_arming(
        before in 0u64..4,
        first in 1u64..8,
        times in 0u64..4,
        calls in prop::collection::vec((0usize..2, any::<bool>()), 0..24),
    ) {
        let plan = FaultPlan::new();
        let (_, backend) = wrapped(&plan);
        let devices = [backend.open(0).unwrap(), backend.open(1).unwrap()];
        let kernels = [kernel(&*devices[0]).unwrap(), kernel(&*devices[1]).unwrap()];
        for _ in 0..before {
            devices[1].memory().unwrap();
        }
        let rule = FaultRule::new(FaultAction::Fail(driver())).on(Operation::Memory);
        plan.arm(rule.at_device(1).at_call(first).times(times));
        let mut matching = 0;
        for (ordinal, asks_memory) in calls {
            if !asks_memory {
                prop_assert!(read_all(&*kernels[ordinal]).is_ok());
                continue;
            }
            matching += u64::from(ordinal == 1);
            let disturbed = ordinal == 1 && (first..first + times).contains(&matching);
            prop_assert_eq!(devices[ordinal].memory().is_err(), disturbed);
        }
        prop_assert_eq!(plan.calls(Some(Operation::Memory), Some(1)), before + matching);
    }
}
