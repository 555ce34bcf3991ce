//! Tests that the misdeeds are what their names say.

use hopwise_core::fleet::{Fleet, KernelPhase, KernelSpec};
use hopwise_core::host::{HostBackend, HostOptions};
use hopwise_core::message::Message;

use super::*;

/// What becomes of a kernel that misbehaves at its third message.
fn phase_of(name: &str) -> KernelPhase {
    // Printing a panic's backtrace can take longer than the loop should be waited for.
    let limit_ms = if name == "test-loop" { 100 } else { 20_000 };
    let backend = HostBackend::new(HostOptions::new(1));
    let fleet = Fleet::builder().step_limit(Duration::from_millis(limit_ms));
    let fleet = fleet.backend(&backend).unwrap().build().unwrap();
    let spec = KernelSpec::new(name, by_name(name).unwrap(), 4).with_parameters(vec![2]);
    let kernel = fleet.launch(spec).unwrap();
    let replies = fleet.endpoint("replies", 64);
    fleet.connect_endpoint(&kernel, "out", &replies).unwrap();
    let sender = fleet.sender("test", &kernel, "in").unwrap();
    for number in 0..2 {
        sender.send(Message::from_words(number, &[number])).unwrap();
        let reply = replies.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!((reply.message.tag, reply.message.payload.to_words()), (number, vec![number]));
    }
    sender.send(Message::default()).unwrap();
    fleet.wait_idle(Duration::from_secs(30)).unwrap();
    fleet.status(&kernel).unwrap().phase
}

#[test]
fn every_misdeed_stops_its_kernel_with_its_own_fault() {
    let faults = NAMES.map(|name| match phase_of(name) {
        KernelPhase::Failed(fault) => fault.to_string(),
        KernelPhase::Lost { cause } => cause,
        other => panic!("{name} is {other:?}"),
    });
    let words = ["panicked", "longer than its limit of 100 ms", "overflow", "carry key 16"];
    for (fault, word) in faults.iter().zip(words) {
        assert!(fault.contains(word), "{fault} does not say `{word}`");
    }
}

#[test]
fn other_names_are_not_known() {
    assert!(by_name("test-nothing").is_none());
}
