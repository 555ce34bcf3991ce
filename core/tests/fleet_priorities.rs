//! Urgent messages go first, each channel keeps its order for each priority, and what has expired is
//! counted among the dead letters.

#[path = "support/fleet_programs.rs"]
mod support;

use std::time::{Duration, Instant};

use hopwise_core::fleet::{
    ChannelOptions, DeliveryReason, Fleet, KernelSpec, MessageTotals, SendReason,
};
use hopwise_core::id::KernelId;
use hopwise_core::message::{Message, Priority};
use proptest::prelude::*;
use support::{PATIENCE, host_fleet, relay, within_time};

const PRIORITIES: [Priority; 4] =
    [Priority::Low, Priority::Normal, Priority::High, Priority::Urgent];

/// Long enough to be over when a test has slept for it, short enough to sleep.
const MOMENT: Duration = Duration::from_millis(20);

fn launch_relay(fleet: &Fleet, capacity: usize) -> KernelId {
    let spec = KernelSpec::new("relay", relay(), 8).with_mailbox_capacity(capacity);
    fleet.launch(spec).expect("room")
}

#[test]
fn a_kernel_gets_the_most_urgent_messages_first() {
    within_time(|| {
        let fleet = host_fleet(1, 1);
        let kernel = launch_relay(&fleet, 100);
        let out = fleet.endpoint("out", 100);
        fleet.connect_endpoint(&kernel, "out", &out).unwrap();
        let sender = fleet.sender("test", &kernel, "in").unwrap();
        let held = fleet.hold(&kernel, PATIENCE).unwrap();
        for round in 0..5 {
            for (level, priority) in (0..).zip(PRIORITIES) {
                let message = Message::from_words(level * 10 + round, &[]);
                sender.send(message.with_priority(priority)).unwrap();
            }
        }
        held.release();
        let tags: Vec<_> = (0..20).map(|_| out.recv().unwrap().message.tag).collect();
        let expected: Vec<_> =
            (0..4).rev().flat_map(|level| (0..5).map(move |round| level * 10 + round)).collect();
        assert_eq!(tags, expected);
    });
}

#[test]
fn a_channel_between_kernels_has_the_priority_it_was_made_with() {
    within_time(|| {
        let fleet = host_fleet(2, 1);
        let [low, high, sink] = [(); 3].map(|()| launch_relay(&fleet, 100));
        let urgent = ChannelOptions::new().with_priority(Priority::Urgent);
        fleet.connect(&low, "out", &sink, "in").unwrap();
        fleet.connect_with(urgent, &high, "out", &sink, "in").unwrap();
        let out = fleet.endpoint("out", 100);
        fleet.connect_endpoint(&sink, "out", &out).unwrap();
        let held = fleet.hold(&sink, PATIENCE).unwrap();
        for (kernel, first) in [(low, 1), (high, 101)] {
            let sender = fleet.sender("test", &kernel, "in").unwrap();
            (first..first + 5).for_each(|tag| sender.send(Message::from_words(tag, &[])).unwrap());
            while fleet.status(&sink).unwrap().mailbox_depth < if first == 1 { 5 } else { 10 } {
                std::thread::yield_now();
            }
        }
        held.release();
        let tags: Vec<_> = (0..10).map(|_| out.recv().unwrap().message.tag).collect();
        assert_eq!(tags, [101, 102, 103, 104, 105, 1, 2, 3, 4, 5]);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    /// Numbers are given for each priority of a channel, without gaps and in order, whoever sends.
    #[test]
    fn numbers_count_each_priority_of_a_channel(
        plans in prop::collection::vec(prop::collection::vec(0usize..4, 1..200), 1..4),
    ) {
        within_time(move || {
            let fleet = host_fleet(1, 1);
            let out = fleet.endpoint("out", 8);
            let sender = fleet.sender_to_endpoint("test", &out);
            let total: usize = plans.iter().map(Vec::len).sum();
            std::thread::scope(|scope| {
                for (thread, plan) in (0..).zip(&plans) {
                    let sender = &sender;
                    scope.spawn(move || {
                        for (position, level) in (0..).zip(plan) {
                            let message = Message::from_words(thread, &[position]);
                            sender.send(message.with_priority(PRIORITIES[*level])).unwrap();
                        }
                    });
                }
                let mut last_number = [0; 4];
                let mut last_of_thread = vec![[None; 4]; plans.len()];
                for _ in 0..total {
                    let envelope = out.recv_timeout(PATIENCE).unwrap();
                    let level = envelope.message.priority as usize;
                    last_number[level] += 1;
                    assert_eq!(envelope.sequence, last_number[level]);
                    let position = envelope.message.payload.to_words()[0];
                    let last = &mut last_of_thread[envelope.message.tag as usize][level];
                    assert!(last.is_none_or(|last| last < position));
                    *last = Some(position);
                }
            });
            fleet.wait_idle(PATIENCE).unwrap();
            assert!(MessageTotals::of(&fleet.ledgers()).is_clean());
        });
    }
}

#[test]
fn a_message_that_expires_in_a_mailbox_is_a_dead_letter() {
    within_time(|| {
        let fleet = host_fleet(1, 1);
        let kernel = launch_relay(&fleet, 100);
        let out = fleet.endpoint("out", 100);
        fleet.connect_endpoint(&kernel, "out", &out).unwrap();
        let sender = fleet.sender("test", &kernel, "in").unwrap();
        let held = fleet.hold(&kernel, PATIENCE).unwrap();
        for tag in 1..=6 {
            let message = Message::from_words(tag, &[]);
            let time = if tag % 2 == 0 { MOMENT } else { PATIENCE };
            sender.send(message.with_time_to_live(time)).unwrap();
        }
        std::thread::sleep(MOMENT * 2);
        held.release();
        fleet.wait_idle(PATIENCE).unwrap();
        let tags: Vec<_> = (0..3).map(|_| out.try_recv().unwrap().message.tag).collect();
        assert_eq!(tags, [1, 3, 5]);
        let (total, letters) = fleet.dead_letters();
        assert_eq!(total, 3);
        assert!(letters.iter().all(|letter| letter.reason == DeliveryReason::Expired));
        let tags: Vec<_> = letters.iter().map(|letter| letter.message.tag).collect();
        assert_eq!(tags, [2, 4, 6]);
        let totals = MessageTotals::of(&fleet.ledgers());
        // Six to the relay, three from it.
        assert_eq!((totals.sent, totals.delivered, totals.dead_lettered), (9, 6, 3));
        assert_eq!((totals.lost, totals.waiting, totals.out_of_order), (0, 0, 0));
    });
}

#[test]
fn a_message_is_not_sent_after_its_deadline_and_does_not_wait_for_room_beyond_it() {
    within_time(|| {
        let fleet = host_fleet(1, 1);
        let kernel = launch_relay(&fleet, 1);
        let sender = fleet.sender("test", &kernel, "in").unwrap();
        let past = Instant::now();
        let late = Message::from_words(1, &[]).with_deadline(past);
        let error = sender.send(late.clone()).unwrap_err();
        assert_eq!(error.reason, SendReason::Closed(DeliveryReason::Expired));
        assert_eq!(error.message, late);
        let held = fleet.hold(&kernel, PATIENCE).unwrap();
        sender.send(Message::from_words(2, &[])).unwrap();
        let waits = Message::from_words(3, &[]).with_time_to_live(MOMENT);
        let error = sender.send(waits.clone()).unwrap_err();
        assert_eq!(error.reason, SendReason::Closed(DeliveryReason::Expired));
        assert_eq!(error.message, waits);
        held.release();
        fleet.wait_idle(PATIENCE).unwrap();
        // A message that was not sent has no number.
        assert_eq!(MessageTotals::of(&fleet.ledgers()).sent, 1);
    });
}

#[test]
fn expired_messages_make_room_for_new_ones() {
    within_time(|| {
        let fleet = host_fleet(1, 1);
        let kernel = launch_relay(&fleet, 2);
        let sender = fleet.sender("test", &kernel, "in").unwrap();
        let held = fleet.hold(&kernel, PATIENCE).unwrap();
        for tag in 1..=2 {
            sender.send(Message::from_words(tag, &[]).with_time_to_live(MOMENT)).unwrap();
        }
        assert_eq!(sender.try_send(Message::default()).unwrap_err().reason, SendReason::Full);
        std::thread::sleep(MOMENT * 2);
        for tag in 3..=4 {
            sender.try_send(Message::from_words(tag, &[])).unwrap();
        }
        let (total, letters) = fleet.dead_letters();
        assert_eq!((total, &letters[0].reason), (2, &DeliveryReason::Expired));
        assert_eq!(fleet.status(&kernel).unwrap().mailbox_depth, 2);
        held.release();
        fleet.wait_idle(PATIENCE).unwrap();
    });
}

#[test]
fn a_channel_with_a_time_to_live_drops_what_nobody_took_in_time() {
    within_time(|| {
        let fleet = host_fleet(2, 1);
        let (first, second) = (launch_relay(&fleet, 100), launch_relay(&fleet, 4));
        let options = ChannelOptions::new().with_time_to_live(MOMENT);
        fleet.connect_with(options, &first, "out", &second, "in").unwrap();
        let out = fleet.endpoint("out", 100);
        fleet.connect_endpoint(&second, "out", &out).unwrap();
        let sender = fleet.sender("test", &first, "in").unwrap();
        let held = fleet.hold(&second, PATIENCE).unwrap();
        // Four lie in the mailbox, six wait outside of it.
        (1..=10).for_each(|tag| sender.send(Message::from_words(tag, &[])).unwrap());
        while fleet.status(&second).unwrap().mailbox_depth < 4 {
            std::thread::yield_now();
        }
        std::thread::sleep(MOMENT * 2);
        held.release();
        fleet.wait_idle(PATIENCE).unwrap();
        let (total, letters) = fleet.dead_letters();
        assert!(letters.iter().all(|letter| letter.reason == DeliveryReason::Expired));
        assert!(total >= 4, "at least those in the mailbox: {total}");
        let mut received = Vec::new();
        while out.drain_into(&mut received, 100).is_ok() {}
        assert_eq!(received.len() as u64 + total, 10);
        // The first message that is sent afterwards arrives.
        received.clear();
        sender.send(Message::from_words(11, &[])).unwrap();
        assert_eq!(out.recv_timeout(PATIENCE).unwrap().message.tag, 11);
        fleet.wait_idle(PATIENCE).unwrap();
        let totals = MessageTotals::of(&fleet.ledgers());
        assert_eq!((totals.lost, totals.waiting, totals.dead_lettered), (0, 0, total));
    });
}
