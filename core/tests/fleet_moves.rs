//! Hand-overs under traffic: whatever the order of moves, nothing is lost, doubled or reordered.

#[path = "support/fleet_programs.rs"]
mod support;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use hopwise_core::fleet::{Fleet, FleetError, KernelSpec, MessageTotals};
use hopwise_core::id::KernelId;
use hopwise_core::message::Message;
use proptest::prelude::*;
use support::{PATIENCE, hash_of, host_fleet, relay, within_time, words};

/// Moves a kernel the plain way: the whole state at once.
fn move_kernel(fleet: &Fleet, kernel: &KernelId, target: usize) -> Result<(), FleetError> {
    let request = fleet.request_migration(kernel, target)?;
    let moved = (|| {
        let twin = fleet.create_twin(&request)?;
        let held = fleet.hold(kernel, PATIENCE)?;
        let mut state = vec![0; usize::try_from(held.instance().state_bytes()).expect("small")];
        held.instance().read_state(0, &mut state)?;
        twin.instance().write_state(0, &state)?;
        fleet.hand_over(held, twin, &request)
    })();
    if moved.is_err() {
        fleet.cancel_migration(&request)?;
    }
    moved
}

/// Sends `count` messages through three relays while `movers` threads move kernels about.
fn traffic_and_moves(devices: usize, workers: usize, count: u32, moves: &[(usize, usize)]) {
    let fleet = host_fleet(devices, workers);
    let kernels: Vec<_> = (0..3)
        .map(|index| {
            let spec = KernelSpec::new(format!("relay-{index}"), relay(), 8);
            fleet.launch(spec.with_mailbox_capacity(3)).expect("room")
        })
        .collect();
    for pair in kernels.windows(2) {
        fleet.connect(&pair[0], "out", &pair[1], "in").expect("ports");
    }
    let out = fleet.endpoint("out", 4);
    fleet.connect_endpoint(&kernels[2], "out", &out).expect("a port");
    let sender = fleet.sender("test", &kernels[0], "in").expect("a port");
    let done = AtomicBool::new(false);
    let moved = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for tag in 1..=count {
                sender.send(Message::from_words(tag, &[tag, 0])).expect("the relay runs");
            }
        });
        scope.spawn(|| {
            for &(kernel, target) in moves.iter().cycle() {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                // A move to where the kernel is is refused; every other one must succeed.
                let here = fleet.status(&kernels[kernel]).expect("a kernel").device == target;
                let result = move_kernel(&fleet, &kernels[kernel], target);
                assert_eq!(result.is_err(), here, "{result:?}");
                moved.fetch_add(u32::from(!here), Ordering::Relaxed);
            }
        });
        for tag in 1..=count {
            assert_eq!(out.recv_timeout(PATIENCE).expect("a message").message.tag, tag);
        }
        done.store(true, Ordering::Relaxed);
    });
    fleet.wait_idle(PATIENCE).expect("nothing hangs");
    for kernel in &kernels {
        let state = words(&fleet.read_state(kernel).expect("it runs"));
        assert_eq!(state, [count, hash_of(count)]);
        let mapped = fleet.coordinator().get_kernel_device(kernel);
        assert_eq!(mapped, Some(fleet.status(kernel).expect("a kernel").device));
    }
    assert!(MessageTotals::of(&fleet.ledgers()).is_clean());
    assert!(moved.load(Ordering::Relaxed) > 0 || moves.len() < 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn moves_under_traffic_lose_nothing(
        devices in 2usize..4,
        workers in 1usize..3,
        moves in prop::collection::vec((0usize..3, 0usize..2), 2..8),
    ) {
        within_time(move || {
            // At least one of the two moves of a kernel is a real one.
            let mut moves = moves;
            moves.extend([(0, 0), (0, 1)]);
            traffic_and_moves(devices, workers, 300, &moves);
        });
    }
}

#[test]
fn a_mailbox_accepts_while_its_kernel_is_held_and_a_second_hold_is_refused() {
    within_time(|| {
        let fleet = host_fleet(1, 1);
        let kernel = fleet.launch(KernelSpec::new("k", relay(), 8)).unwrap();
        let sender = fleet.sender("test", &kernel, "in").unwrap();
        let held = fleet.hold(&kernel, PATIENCE).unwrap();
        for tag in 1..=5 {
            sender.send(Message::from_words(tag, &[])).unwrap();
        }
        let error = fleet.hold(&kernel, PATIENCE).unwrap_err();
        assert!(matches!(error, FleetError::HeldAlready { .. }));
        let error = fleet.wait_idle(Duration::from_millis(20)).unwrap_err();
        assert_eq!(error.busy, [kernel], "a held kernel is something under way");
        let status = fleet.status(&kernel).unwrap();
        assert_eq!((status.held, status.mailbox_depth, status.steps), (true, 5, 0));
        held.release();
        fleet.wait_idle(PATIENCE).unwrap();
        assert_eq!(words(&fleet.read_state(&kernel).unwrap()), [5, hash_of(5)]);
    });
}

#[test]
fn a_hand_over_with_strangers_is_refused_and_the_source_goes_on() {
    within_time(|| {
        let fleet = host_fleet(2, 1);
        let launch = |name: &str| fleet.launch(KernelSpec::new(name, relay(), 8)).unwrap();
        let (first, second) = (launch("first"), launch("second"));
        let other = |kernel: &KernelId| 1 - fleet.status(kernel).unwrap().device;
        let request = fleet.request_migration(&first, other(&first)).unwrap();
        let foreign = fleet.request_migration(&second, other(&second)).unwrap();
        let twin = fleet.create_twin(&foreign).unwrap();
        let held = fleet.hold(&first, PATIENCE).unwrap();
        let error = fleet.hand_over(held, twin, &request).unwrap_err();
        assert!(matches!(error, FleetError::Mismatch { .. }), "{error}");
        fleet.cancel_migration(&request).unwrap();
        assert!(!fleet.status(&first).unwrap().held);
        let held = fleet.hold(&first, PATIENCE).unwrap();
        let again = fleet.request_migration(&first, other(&first)).unwrap();
        let twin = fleet.create_twin(&again).unwrap();
        let error = fleet.hand_over(held, twin, &request).unwrap_err();
        assert!(
            error.to_string().contains("request") || matches!(error, FleetError::Coordinator(_))
        );
    });
}
