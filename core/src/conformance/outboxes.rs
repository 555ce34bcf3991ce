//! What kernels send, and how a wrong outbox stops a kernel.

use super::programs::{self, Command, OBEY_OUTBOX_SLOTS};
use super::subject::{Incoming, Kernel, Subject, output, to_bytes};
use crate::abi::outbox::SentMessage;
use crate::error::StepFault;

pub(super) fn keys_order_messages(subject: &Subject) {
    let mut kernel = subject.kernel(&programs::obey(), &[0; 2]);
    for (narrow, wide) in [(3, 5), (0, 8), (8, 0), (0, 0), (1, 1)] {
        let messages = [order(Command::Send, wide, 1), order(Command::Send, narrow, 0)];
        let output = kernel.run(subject, false, &messages).expect("the messages fit");
        let expected: Vec<_> = (0..narrow).map(|key| sent(0, key)).collect();
        let expected = expected.into_iter().chain((0..wide).map(|key| sent(1, key)));
        assert_eq!(output.messages, expected.collect::<Vec<_>>());
        assert!(!output.run_again);
    }
}

pub(super) fn run_again_is_carried(subject: &Subject) {
    let mut kernel = subject.kernel(&programs::obey(), &[0; 2]);
    let messages = [order(Command::RunAgain, 0, 0), order(Command::Add, 5, 0)];
    let output = kernel.run(subject, false, &messages).expect("nothing is sent");
    assert!(output.run_again);
    let output = kernel.run(subject, true, &[]).expect("nothing is sent");
    assert!(!output.run_again, "the host clears the flag before each step");
    assert_eq!(kernel.state(), [5, 2]);
}

pub(super) fn faults_stop_only_their_kernel(subject: &Subject) {
    for (orders, is_expected) in faults() {
        let mut kernels: Vec<_> =
            (0..5).map(|_| subject.kernel(&programs::obey(), &[0; 2])).collect();
        let healthy = [order(Command::Add, 1, 0), order(Command::Send, 2, 0)];
        let messages = |position: usize| if position % 2 == 1 { &orders[..] } else { &healthy[..] };
        let mut steps: Vec<_> = kernels
            .iter_mut()
            .enumerate()
            .map(|(position, kernel)| kernel.step(false, messages(position)))
            .collect();
        subject.run(&mut steps).expect("a fault is none of the device");
        for (position, (kernel, step)) in kernels.iter().zip(&steps).enumerate() {
            let output = output(&kernel.program, step);
            if position % 2 == 1 {
                let fault = output.expect_err("the kernel was told to do wrong");
                assert!(is_expected(&fault), "{orders:?} gave {fault:?}");
                let mut readable = [0; 8];
                kernel.instance.read_state(0, &mut readable).expect("the state can be read");
            } else {
                assert_eq!(output.expect("this kernel did no wrong").messages.len(), 2);
            }
        }
        drop(steps);
        neighbours_go_on(subject, &mut kernels);
    }
}

fn neighbours_go_on(subject: &Subject, kernels: &mut [Kernel]) {
    for kernel in kernels.iter_mut().step_by(2) {
        assert_eq!(kernel.state(), [1, 1]);
        let messages = [order(Command::Add, 10, 0)];
        let output = kernel.run(subject, false, &messages).expect("nothing is sent");
        assert!(output.messages.is_empty());
        assert_eq!(kernel.state(), [11, 2]);
    }
}

type IsExpected = fn(&StepFault) -> bool;

/// Orders to do wrong, and the fault that each must give.
fn faults() -> Vec<(Vec<Incoming>, IsExpected)> {
    let raw = |port, length| order(Command::SendRaw, port, length);
    vec![
        (vec![order(Command::Send, OBEY_OUTBOX_SLOTS + 3, 0)], |fault| {
            *fault == StepFault::OutboxOverflow { sent: 11, slots: OBEY_OUTBOX_SLOTS }
        }),
        (vec![raw(1, 8), raw(2, 4)], |fault| matches!(fault, StepFault::MalformedMessage { .. })),
        (vec![raw(u32::MAX, 4)], |fault| {
            matches!(fault, StepFault::MalformedMessage { slot: 0, .. })
        }),
        (vec![raw(0, 5)], |fault| matches!(fault, StepFault::MalformedMessage { slot: 0, .. })),
        (vec![raw(1, u32::MAX)], |fault| {
            matches!(fault, StepFault::MalformedMessage { slot: 0, .. })
        }),
        (vec![raw(1, 4), raw(0, 4), raw(1, 8)], |fault| {
            *fault == StepFault::EqualKeys { port: "wide".to_owned(), key: 0 }
        }),
        (vec![order(Command::Send, 2, 0), order(Command::Fault, 777, 0)], |fault| {
            matches!(fault, StepFault::Program { code: 777, .. })
        }),
    ]
}

fn order(command: Command, first: u32, second: u32) -> Incoming {
    Incoming::words(0, &[command as u32, first, second])
}

fn sent(port: u32, key: u32) -> SentMessage {
    SentMessage { port, key, tag: key ^ 0x55, payload: to_bytes(&[key * 7]), slot: 0 }
}
