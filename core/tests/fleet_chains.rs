//! Quick steps in a row are committed together; nobody can tell, except by the time they take.

#[path = "support/fleet_programs.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hopwise_core::backend::Backend;
use hopwise_core::error::StepFault;
use hopwise_core::fleet::{Endpoint, Fleet, HostSender, KernelPhase, KernelSpec, MessageTotals};
use hopwise_core::host::{HostBackend, HostDevice, HostOptions};
use hopwise_core::id::KernelId;
use hopwise_core::message::Message;
use hopwise_core::program::Program;
use support::{PATIENCE, host_fleet, within_time, words};

/// Runs again until it has done as many steps as its first parameter says. Each step checks that its
/// number follows the last one's and sends that number. A step whose number is the second parameter
/// fails. The tags of messages that come are added up.
fn stepper() -> Arc<Program> {
    Program::builder("stepper")
        .in_port("in", 4)
        .out_port("out", 4)
        .parameter_words(2)
        .inbox_slots(4)
        .outbox_slots(1)
        .host(|step| {
            let number = step.inbox.step_number();
            if number != step.state[0] + 1 {
                return Err(StepFault::Program { code: 2, reason: "a step is missing".to_owned() });
            }
            if number == step.parameters[1] {
                return Err(StepFault::Program { code: 1, reason: "on purpose".to_owned() });
            }
            step.state[0] = number;
            for message in step.inbox.messages() {
                step.state[1] += message.tag;
            }
            step.outbox.send(0, 0, number, &[number]);
            if number < step.parameters[0] {
                step.outbox.run_again();
            }
            Ok(())
        })
        .build()
        .expect("a well-formed program")
}

/// A stepper that has not started, with its ways in and out.
fn launch(
    fleet: &Fleet,
    steps: u32,
    fails_at: u32,
    capacity: usize,
) -> (KernelId, Endpoint, HostSender) {
    let spec = KernelSpec::new("stepper", stepper(), 8).with_parameters(vec![steps, fails_at]);
    let kernel = fleet.launch(spec).expect("room");
    let out = fleet.endpoint("out", capacity);
    fleet.connect_endpoint(&kernel, "out", &out).expect("a port");
    let sender = fleet.sender("test", &kernel, "in").expect("a port");
    (kernel, out, sender)
}

#[test]
fn every_step_of_a_chain_counts_and_its_messages_keep_their_order() {
    within_time(|| {
        let fleet = host_fleet(1, 1);
        // Less room than a chain has messages: most of them wait at times.
        let (kernel, out, _sender) = launch(&fleet, 10_000, 0, 10);
        fleet.start(&kernel).unwrap();
        for number in 1..=10_000 {
            let envelope = out.recv().unwrap();
            assert_eq!((envelope.message.tag, envelope.sequence), (number, u64::from(number)));
        }
        fleet.wait_idle(PATIENCE).unwrap();
        assert_eq!(fleet.status(&kernel).unwrap().steps, 10_000);
        assert_eq!((fleet.steps(), fleet.device_steps(0).unwrap()), (10_000, 10_000));
        assert!(MessageTotals::of(&fleet.ledgers()).is_clean());
    });
}

#[test]
fn a_fault_in_a_chain_leaves_what_the_steps_before_it_did() {
    within_time(|| {
        for fails_at in [1, 2, 3, 63, 64, 65, 66, 130] {
            let fleet = host_fleet(1, 1);
            let (kernel, out, _sender) = launch(&fleet, 1000, fails_at, 1000);
            fleet.start(&kernel).unwrap();
            let _ = fleet.wait_idle(PATIENCE);
            let status = fleet.status(&kernel).unwrap();
            let KernelPhase::Failed(StepFault::Program { code, .. }) = status.phase else {
                panic!("{:?}", status.phase)
            };
            assert_eq!((code, status.steps), (1, u64::from(fails_at - 1)), "step {fails_at}");
            for number in 1..fails_at {
                assert_eq!(out.try_recv().unwrap().message.tag, number);
            }
            assert!(out.try_recv().is_err());
        }
    });
}

#[test]
fn output_of_a_chain_that_makes_no_sense_is_a_fault_of_its_step() {
    within_time(|| {
        let program = Program::builder("twice")
            .in_port("in", 4)
            .out_port("out", 4)
            .outbox_slots(2)
            .host(|step| {
                let number = step.inbox.step_number();
                (0..1 + u32::from(number == 5)).for_each(|_| step.outbox.send(0, 0, number, &[]));
                step.outbox.run_again();
                Ok(())
            });
        let fleet = host_fleet(1, 1);
        let kernel = fleet.launch(KernelSpec::new("twice", program.build().unwrap(), 4)).unwrap();
        let out = fleet.endpoint("out", 100);
        fleet.connect_endpoint(&kernel, "out", &out).unwrap();
        fleet.start(&kernel).unwrap();
        let _ = fleet.wait_idle(PATIENCE);
        let status = fleet.status(&kernel).unwrap();
        assert!(matches!(status.phase, KernelPhase::Failed(StepFault::EqualKeys { .. })));
        assert_eq!((status.steps, out.depth()), (4, 4));
    });
}

#[test]
fn messages_and_holds_are_not_kept_waiting_by_a_kernel_that_always_runs_again() {
    within_time(|| {
        let fleet = host_fleet(2, 1);
        let (kernel, out, sender) = launch(&fleet, u32::MAX, 0, 64);
        fleet.start(&kernel).unwrap();
        let is_removed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut received = 0;
                loop {
                    match out.recv_timeout(Duration::from_millis(20)) {
                        Ok(envelope) => {
                            received += 1;
                            assert_eq!(envelope.sequence, received);
                        }
                        Err(_) if is_removed.load(Ordering::Acquire) => break,
                        Err(_) => {}
                    }
                }
            });
            for round in 1..=20 {
                sender.send(Message::from_words(1, &[])).unwrap();
                let held = loop {
                    let held = fleet.hold(&kernel, PATIENCE).unwrap();
                    let mut state = [0; 8];
                    held.instance().read_state(0, &mut state).unwrap();
                    if words(&state)[1] == round {
                        break held;
                    }
                };
                held.release();
            }
            fleet.remove(&kernel).unwrap();
            is_removed.store(true, Ordering::Release);
        });
        let totals = MessageTotals::of(&fleet.ledgers());
        assert_eq!((totals.lost, totals.duplicated, totals.out_of_order), (0, 0, 0));
    });
}

#[test]
fn a_device_that_is_lost_in_a_chain_takes_the_whole_chain_with_it() {
    within_time(|| {
        let backend = HostBackend::new(HostOptions::new(1).with_workers(1));
        let device = backend.open(0).unwrap();
        let fleet = Fleet::builder().device(Arc::clone(&device)).build().unwrap();
        let lost = Arc::clone(&device);
        let program =
            Program::builder("doomed").in_port("in", 4).out_port("out", 4).outbox_slots(1).host(
                move |step| {
                    let number = step.inbox.step_number();
                    step.outbox.send(0, 0, number, &[]);
                    step.outbox.run_again();
                    if number == 5 {
                        lost.as_any().downcast_ref::<HostDevice>().unwrap().lose("pulled out");
                    }
                    Ok(())
                },
            );
        let kernel = fleet.launch(KernelSpec::new("doomed", program.build().unwrap(), 4)).unwrap();
        let out = fleet.endpoint("out", 100);
        fleet.connect_endpoint(&kernel, "out", &out).unwrap();
        fleet.sender("test", &kernel, "in").unwrap().send(Message::from_words(1, &[])).unwrap();
        let _ = fleet.wait_idle(Duration::from_secs(5));
        let status = fleet.status(&kernel).unwrap();
        assert!(matches!(status.phase, KernelPhase::Lost { .. }), "{:?}", status.phase);
        // What was not committed has not happened: if the first step was not, its message is back.
        assert_eq!(out.depth() as u64, status.steps);
        assert!(status.steps < 5);
        assert_eq!(status.mailbox_depth, usize::from(status.steps == 0));
        let totals = MessageTotals::of(&fleet.ledgers());
        assert_eq!((totals.lost, totals.duplicated, totals.out_of_order), (0, 0, 0));
    });
}
