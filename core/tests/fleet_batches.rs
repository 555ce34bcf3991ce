//! Many messages at once, in and out, and large payloads that nobody copies.

#[path = "support/fleet_programs.rs"]
mod support;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use hopwise_core::fleet::{
    DeliveryReason, Fleet, KernelSpec, MessageTotals, ReceiveError, SendReason,
};
use hopwise_core::id::KernelId;
use hopwise_core::message::{Message, Payload, SHARED_BYTES};
use hopwise_core::program::Program;
use proptest::prelude::*;
use support::{PATIENCE, host_fleet, relay, within_time};

fn numbered(tags: impl IntoIterator<Item = u32>) -> VecDeque<Message> {
    tags.into_iter().map(|tag| Message::from_words(tag, &[])).collect()
}

fn tags(messages: &VecDeque<Message>) -> Vec<u32> {
    messages.iter().map(|message| message.tag).collect()
}

fn launch_relay(fleet: &Fleet, capacity: usize) -> KernelId {
    let spec = KernelSpec::new("relay", relay(), 8).with_mailbox_capacity(capacity);
    fleet.launch(spec).expect("room")
}

#[test]
fn what_finds_no_room_stays_in_the_queue_in_its_order() {
    within_time(|| {
        let fleet = host_fleet(1, 1);
        let kernel = launch_relay(&fleet, 4);
        let sender = fleet.sender("test", &kernel, "in").unwrap();
        let held = fleet.hold(&kernel, PATIENCE).unwrap();
        let mut queue = numbered(1..=10);
        let error = sender.try_send_all(&mut queue).unwrap_err();
        assert_eq!((error.left, &error.reason), (6, &SendReason::Full));
        assert_eq!(tags(&queue), [5, 6, 7, 8, 9, 10]);
        let error = sender.send_all_timeout(&mut queue, Duration::from_millis(10)).unwrap_err();
        assert_eq!((error.left, &error.reason), (6, &SendReason::Full));
        held.release();
        sender.send_all(&mut queue).unwrap();
        assert!(queue.is_empty());
        fleet.wait_idle(PATIENCE).unwrap();
        let totals = MessageTotals::of(&fleet.ledgers());
        assert_eq!((totals.sent, totals.delivered), (10, 10));
        sender.send_all(&mut queue).unwrap(); // of nothing
    });
}

#[test]
fn a_message_that_is_refused_stops_a_batch_and_stays_with_those_behind_it() {
    within_time(|| {
        let fleet = host_fleet(1, 1);
        let kernel = launch_relay(&fleet, 100);
        let sender = fleet.sender("test", &kernel, "in").unwrap();
        let mut queue = numbered(1..=5);
        queue[2] = Message::from_words(3, &[0; 100]);
        let error = sender.send_all(&mut queue).unwrap_err();
        assert!(matches!(error.reason, SendReason::TooLarge { length_bytes: 400, .. }));
        assert_eq!((error.left, tags(&queue)), (3, vec![3, 4, 5]));
        queue[0] = Message::default().with_time_to_live(Duration::ZERO);
        let error = sender.send_all(&mut queue).unwrap_err();
        assert_eq!(error.reason, SendReason::Closed(DeliveryReason::Expired));
        assert_eq!(error.left, 3);
        queue.pop_front();
        sender.send_all(&mut queue).unwrap();
        fleet.wait_idle(PATIENCE).unwrap();
        assert_eq!(MessageTotals::of(&fleet.ledgers()).delivered, 4);
        fleet.remove(&kernel).unwrap();
        let mut queue = numbered(1..=3);
        let error = sender.send_all(&mut queue).unwrap_err();
        assert!(matches!(error.reason, SendReason::Closed(DeliveryReason::Removed { .. })));
        assert_eq!((error.left, tags(&queue)), (3, vec![1, 2, 3]));
    });
}

#[test]
fn a_receiver_takes_as_many_as_it_asks_for_into_a_list_it_uses_again() {
    within_time(|| {
        let fleet = host_fleet(1, 1);
        let out = fleet.endpoint("out", 100);
        let sender = fleet.sender_to_endpoint("test", &out);
        let mut received = Vec::new();
        assert_eq!(out.drain_into(&mut received, 10), Err(ReceiveError::Empty));
        let time = Duration::from_millis(5);
        assert_eq!(out.drain_into_timeout(&mut received, 10, time), Err(ReceiveError::Empty));
        sender.send_all(&mut numbered(1..=10)).unwrap();
        assert_eq!(out.drain_into(&mut received, 4), Ok(4));
        assert_eq!(out.drain_into_timeout(&mut received, 100, PATIENCE), Ok(6));
        let numbers: Vec<_> = received.iter().map(|envelope| envelope.sequence).collect();
        assert_eq!(numbers, (1..=10).collect::<Vec<_>>());
        received.clear();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                sender.send_all(&mut numbered(11..=12)).unwrap();
            });
            assert!(out.drain_into_timeout(&mut received, 100, PATIENCE).unwrap() >= 1);
        });
        drop(fleet);
        while out.drain_into(&mut received, 100).is_ok() {}
        assert_eq!(received.len(), 2, "what was sent before the end is received after it");
        let closed = Err(ReceiveError::Closed(DeliveryReason::ShuttingDown));
        assert_eq!(out.drain_into(&mut received, 1), closed);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    /// Threads that share a sender, batches of any size, little room: numbers without gaps, each
    /// thread's messages in its order, all of them once.
    #[test]
    fn threads_that_share_a_sender_cannot_disorder_its_channel(
        sizes in prop::collection::vec(prop::collection::vec(1u32..40, 1..20), 1..4),
        capacity in 1usize..20,
        most in 1usize..30,
    ) {
        within_time(move || {
            let fleet = host_fleet(1, 1);
            let out = fleet.endpoint("out", capacity);
            let sender = fleet.sender_to_endpoint("test", &out);
            let total: usize = sizes.iter().flatten().map(|size| *size as usize).sum();
            std::thread::scope(|scope| {
                for (thread, sizes) in (0..).zip(&sizes) {
                    let sender = &sender;
                    scope.spawn(move || {
                        let mut next = 0..u32::MAX;
                        for size in sizes {
                            let batch = next.by_ref().take(*size as usize);
                            let message = |number| Message::from_words(thread, &[number]);
                            sender.send_all(&mut batch.map(message).collect()).unwrap();
                        }
                    });
                }
                let mut received = Vec::new();
                while received.len() < total {
                    out.drain_into_timeout(&mut received, most, PATIENCE).unwrap();
                }
                let mut next = vec![0; sizes.len()];
                for (number, envelope) in (1..).zip(&received) {
                    assert_eq!(envelope.sequence, number);
                    let expected = &mut next[envelope.message.tag as usize];
                    assert_eq!(envelope.message.payload.to_words(), [*expected]);
                    *expected += 1;
                }
            });
        });
    }
}

/// Sends on what it receives, without a copy where there is none.
fn forwarder(max_message_bytes: u32) -> Arc<Program> {
    Program::builder("forwarder")
        .in_port("in", max_message_bytes)
        .out_port("out", max_message_bytes)
        .inbox_slots(4)
        .outbox_slots(4)
        .host(|step| {
            for (key, message) in (0..).zip(step.inbox.messages()) {
                match message.payload() {
                    Some(payload) => step.outbox.send_payload(0, key, message.tag, payload),
                    None => {
                        let payload = Payload::from(message.to_bytes());
                        step.outbox.send_payload(0, key, message.tag, &payload);
                    }
                }
            }
            Ok(())
        })
        .build()
        .expect("a well-formed program")
}

/// Two forwarders on two devices, and an endpoint.
fn forwarders(fleet: &Fleet, max_message_bytes: u32) -> [KernelId; 2] {
    let launch = || {
        fleet.launch(KernelSpec::new("forwarder", forwarder(max_message_bytes), 4)).expect("room")
    };
    let kernels = [launch(), launch()];
    fleet.connect(&kernels[0], "out", &kernels[1], "in").expect("ports");
    kernels
}

#[test]
fn a_large_payload_is_the_same_memory_from_end_to_end() {
    within_time(|| {
        let bytes = 64 * 1024;
        let fleet = host_fleet(2, 1);
        let kernels = forwarders(&fleet, bytes);
        let devices = kernels.map(|kernel| fleet.status(&kernel).unwrap().device);
        assert_ne!(devices[0], devices[1]);
        let out = fleet.endpoint("out", 4);
        fleet.connect_endpoint(&kernels[1], "out", &out).unwrap();
        let sender = fleet.sender("test", &kernels[0], "in").unwrap();
        let payload = Payload::from(vec![42; bytes as usize]);
        for round in 0..4 {
            if round == 2 {
                let request = fleet.request_migration(&kernels[1], devices[0]).unwrap();
                let twin = fleet.create_twin(&request).unwrap();
                let held = fleet.hold(&kernels[1], PATIENCE).unwrap();
                fleet.hand_over(held, twin, &request).unwrap();
            }
            sender.send(Message::new(round, payload.clone())).unwrap();
            let received = out.recv_timeout(PATIENCE).unwrap().message;
            assert_eq!(received.payload, payload);
            assert_eq!(received.payload.as_bytes().as_ptr(), payload.as_bytes().as_ptr());
        }
    });
}

#[test]
fn payloads_of_every_length_arrive_as_they_were() {
    within_time(|| {
        let max_bytes = u32::try_from(SHARED_BYTES).unwrap() + 64;
        let fleet = host_fleet(2, 1);
        let kernels = forwarders(&fleet, max_bytes);
        let out = fleet.endpoint("out", 4);
        fleet.connect_endpoint(&kernels[1], "out", &out).unwrap();
        let sender = fleet.sender("test", &kernels[0], "in").unwrap();
        let around = |length: usize| length.saturating_sub(5)..=length + 5;
        let limits = [0, 32, SHARED_BYTES, max_bytes as usize - 5];
        for length in limits.into_iter().flat_map(around) {
            let bytes: Vec<u8> = (1..=251).cycle().take(length).collect();
            for payload in
                [Payload::from(bytes.clone()), Payload::from(Arc::from(bytes.as_slice()))]
            {
                sender.send(Message::new(0, payload.clone())).unwrap();
                assert_eq!(out.recv_timeout(PATIENCE).unwrap().message.payload, payload);
            }
        }
        assert!(MessageTotals::of(&fleet.ledgers()).is_clean());
    });
}
