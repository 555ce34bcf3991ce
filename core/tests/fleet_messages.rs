//! Messages through a fleet: order, exactly once, back-pressure, dead letters, ledgers.

#[path = "support/fleet_programs.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use hopwise_core::fleet::{
    DeliveryReason, Fleet, KernelPhase, KernelSpec, MessageFault, MessageFaultKind, MessageTotals,
    Party, ReceiveError, SendReason,
};
use hopwise_core::host::{HostBackend, HostOptions};
use hopwise_core::id::KernelId;
use hopwise_core::message::Message;
use support::{PATIENCE, hash_of, host_fleet, relay, touchy, within_time, words};

/// A chain of relays, the last one bound to an endpoint.
fn chain(fleet: &Fleet, length: usize, capacity: usize) -> Vec<KernelId> {
    let launch = |index| {
        let spec = KernelSpec::new(format!("relay-{index}"), relay(), 8);
        fleet.launch(spec.with_mailbox_capacity(capacity)).expect("room")
    };
    let kernels: Vec<_> = (0..length).map(launch).collect();
    for pair in kernels.windows(2) {
        fleet.connect(&pair[0], "out", &pair[1], "in").expect("both ports exist");
    }
    kernels
}

#[test]
fn a_chain_keeps_order_and_every_message_with_tiny_mailboxes() {
    within_time(|| {
        for (devices, workers) in [(1, 1), (1, 3), (3, 2)] {
            let fleet = host_fleet(devices, workers);
            let kernels = chain(&fleet, 5, 2);
            let out = fleet.endpoint("out", 3);
            fleet.connect_endpoint(&kernels[4], "out", &out).unwrap();
            let sender = fleet.sender("test", &kernels[0], "in").unwrap();
            let count = 2000;
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for tag in 1..=count {
                        sender.send(Message::from_words(tag, &[tag, !tag])).unwrap();
                    }
                });
                for tag in 1..=count {
                    let envelope = out.recv_timeout(PATIENCE).unwrap();
                    assert_eq!(envelope.message, Message::from_words(tag, &[tag, !tag]));
                    assert_eq!(envelope.sequence, u64::from(tag));
                }
            });
            fleet.wait_idle(PATIENCE).unwrap();
            for kernel in &kernels {
                let state = words(&fleet.read_state(kernel).unwrap());
                assert_eq!(state, [count, hash_of(count)]);
            }
            let totals = MessageTotals::of(&fleet.ledgers());
            assert_eq!((totals.sent, totals.waiting), (6 * u64::from(count), 0));
            assert!(totals.is_clean(), "{totals:?}");
            let report = fleet.shutdown(PATIENCE);
            assert!(report.abandoned.is_empty() && report.threads_left_behind == 0);
        }
    });
}

#[test]
fn a_full_mailbox_gives_the_message_back_or_waits() {
    within_time(|| {
        let fleet = host_fleet(1, 1);
        let kernel = chain(&fleet, 1, 2)[0];
        let held = fleet.hold(&kernel, PATIENCE).unwrap();
        let sender = fleet.sender("test", &kernel, "in").unwrap();
        for tag in 1..=2 {
            sender.try_send(Message::from_words(tag, &[0, 0])).unwrap();
        }
        let third = Message::from_words(3, &[0, 0]);
        let error = sender.try_send(third.clone()).unwrap_err();
        assert_eq!((error.message, error.reason), (third.clone(), SendReason::Full));
        let error = sender.send_timeout(third.clone(), Duration::from_millis(20)).unwrap_err();
        assert_eq!(error.reason, SendReason::Full);
        std::thread::scope(|scope| {
            let blocked = scope.spawn(|| sender.send(third));
            std::thread::sleep(Duration::from_millis(20));
            assert!(!blocked.is_finished());
            held.release();
            blocked.join().unwrap().unwrap();
        });
        let big = sender.try_send(Message::new(0, vec![0; 9])).unwrap_err();
        assert!(big.to_string().contains("9 bytes for in-port `in`, which allows 8"), "{big}");
        fleet.wait_idle(PATIENCE).unwrap();
        assert_eq!(words(&fleet.read_state(&kernel).unwrap())[0], 3);
    });
}

#[test]
fn blocked_senders_wake_when_the_kernel_fails_or_goes() {
    within_time(|| {
        let fleet = host_fleet(1, 2);
        let program = touchy("panics", |_| panic!("thirteen"));
        let spec = KernelSpec::new("panics", program, 4).with_mailbox_capacity(1);
        let failing = fleet.launch(spec.clone()).unwrap();
        let removed = fleet.launch(spec).unwrap();
        let (to_failing, to_removed) = (
            fleet.sender("a", &failing, "in").unwrap(),
            fleet.sender("b", &removed, "in").unwrap(),
        );
        let (hold_failing, hold_removed) =
            (fleet.hold(&failing, PATIENCE).unwrap(), fleet.hold(&removed, PATIENCE).unwrap());
        to_failing.send(Message::from_words(13, &[])).unwrap();
        to_removed.send(Message::from_words(1, &[])).unwrap();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                // The first goes in when the fatal message is taken out, the second blocks.
                to_failing
                    .send(Message::from_words(1, &[]))
                    .and_then(|()| to_failing.send(Message::from_words(2, &[])))
            });
            let second = scope.spawn(|| to_removed.send(Message::from_words(2, &[])));
            std::thread::sleep(Duration::from_millis(20));
            hold_failing.release();
            let error = first.join().unwrap().unwrap_err();
            let SendReason::Closed(DeliveryReason::Failed { fault, .. }) = error.reason else {
                panic!("{:?}", error.reason)
            };
            assert!(fault.to_string().contains("thirteen"), "{fault}");
            hold_removed.release();
            second.join().unwrap().unwrap();
        });
        fleet.wait_idle(PATIENCE).unwrap();
        let status = fleet.status(&failing).unwrap();
        assert!(matches!(status.phase, KernelPhase::Failed(_)));
        assert!(status.mailbox_depth >= 1, "the faulted step's message is kept");
        assert_eq!(fleet.remove(&failing).unwrap().dead_letters, status.mailbox_depth);
        let error = to_failing.send(Message::default()).unwrap_err();
        assert!(matches!(error.reason, SendReason::Closed(DeliveryReason::Removed { .. })));
    });
}

#[test]
fn a_circle_of_full_mailboxes_is_named() {
    within_time(|| {
        let fleet = host_fleet(2, 1);
        let kernels = chain(&fleet, 2, 1);
        fleet.connect(&kernels[1], "out", &kernels[0], "in").unwrap();
        let holds: Vec<_> =
            kernels.iter().map(|kernel| fleet.hold(kernel, PATIENCE).unwrap()).collect();
        let senders: Vec<_> =
            kernels.iter().map(|kernel| fleet.sender("test", kernel, "in").unwrap()).collect();
        senders.iter().for_each(|sender| sender.send(Message::from_words(1, &[])).unwrap());
        // Each kernel takes one message; two more fill both mailboxes before the output arrives.
        std::thread::scope(|scope| {
            for sender in &senders {
                scope.spawn(|| {
                    for _ in 0..6 {
                        let _ = sender
                            .send_timeout(Message::from_words(2, &[]), Duration::from_millis(200));
                    }
                });
            }
            drop(holds);
        });
        let error = fleet.wait_idle(Duration::from_millis(100)).unwrap_err();
        assert_eq!(error.cycle.len(), 2, "{error}");
        assert!(error.to_string().contains("deadlock: relay-0, relay-1 wait for each other"));
        let report = fleet.shutdown(Duration::ZERO);
        assert_eq!(report.abandoned.len(), 2);
    });
}

#[test]
fn what_cannot_be_delivered_is_a_dead_letter_with_its_reason() {
    within_time(|| {
        let fleet = host_fleet(1, 1);
        let kernel = chain(&fleet, 1, 8)[0];
        let sender = fleet.sender("test", &kernel, "in").unwrap();
        sender.send(Message::from_words(1, &[])).unwrap();
        fleet.wait_idle(PATIENCE).unwrap();
        let out = fleet.endpoint("short-lived", 1);
        fleet.connect_endpoint(&kernel, "out", &out).unwrap();
        for tag in 2..=4 {
            sender.send(Message::from_words(tag, &[])).unwrap();
        }
        let error = fleet.wait_idle(Duration::from_millis(50)).unwrap_err();
        assert!(matches!(&error.waiting[0].on, Party::Host { name } if name == "short-lived"));
        assert!(error.cycle.is_empty());
        drop(out);
        fleet.wait_idle(PATIENCE).unwrap();
        let (total, letters) = fleet.dead_letters();
        assert_eq!(total, 4);
        assert!(matches!(letters[0].reason, DeliveryReason::Unbound { .. }));
        assert_eq!(letters[0].message.tag, 1);
        let tags: Vec<_> = letters[1..].iter().map(|letter| letter.message.tag).collect();
        assert_eq!(tags, [2, 3, 4]);
        assert!(matches!(letters[3].reason, DeliveryReason::EndpointClosed { .. }));
        let totals = MessageTotals::of(&fleet.ledgers());
        assert_eq!((totals.dead_lettered, totals.lost, totals.waiting), (3, 0, 0));
    });
}

#[test]
fn injected_faults_show_in_the_ledgers() {
    within_time(|| {
        let kinds =
            [MessageFaultKind::Lose, MessageFaultKind::Duplicate, MessageFaultKind::Reorder];
        for kind in kinds {
            let backend = HostBackend::new(HostOptions::new(2).with_workers(1));
            let fault = MessageFault { kind, nth: 5 };
            let builder = Fleet::builder().backend(&backend).unwrap().message_fault(fault);
            let fleet = builder.build().unwrap();
            let kernels = chain(&fleet, 2, 64);
            let out = fleet.endpoint("out", 64);
            fleet.connect_endpoint(&kernels[1], "out", &out).unwrap();
            let sender = fleet.sender("test", &kernels[0], "in").unwrap();
            for tag in 1..=20 {
                sender.send(Message::from_words(tag, &[])).unwrap();
            }
            fleet.wait_idle(PATIENCE).unwrap();
            while out.try_recv().is_ok() {}
            let totals = MessageTotals::of(&fleet.ledgers());
            let seen = (totals.lost, totals.duplicated, totals.out_of_order);
            match kind {
                MessageFaultKind::Lose => assert_eq!(seen, (1, 0, 0)),
                MessageFaultKind::Duplicate => assert_eq!(seen, (0, 1, 0)),
                MessageFaultKind::Reorder => assert_eq!(seen, (0, 0, 1)),
            }
            assert!(!totals.is_clean());
        }
    });
}

#[test]
fn futures_send_and_receive_without_an_executor_of_ours() {
    within_time(|| {
        let fleet = host_fleet(1, 1);
        let kernel = chain(&fleet, 1, 1)[0];
        let out = fleet.endpoint("out", 1);
        fleet.connect_endpoint(&kernel, "out", &out).unwrap();
        let sender = fleet.sender("test", &kernel, "in").unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for tag in 1..=100 {
                    block_on(sender.send_async(Message::from_words(tag, &[]))).unwrap();
                }
            });
            for tag in 1..=100 {
                assert_eq!(block_on(out.recv_async()).unwrap().message.tag, tag);
            }
        });
        assert_eq!(out.try_recv(), Err(ReceiveError::Empty));
    });
}

/// Parks the thread until the future is ready.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread, AtomicBool);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.1.store(true, Ordering::SeqCst);
            self.0.unpark();
        }
    }
    let unpark = Arc::new(Unpark(std::thread::current(), AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&unpark));
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        while !unpark.1.swap(false, Ordering::SeqCst) {
            std::thread::park();
        }
    }
}
