//! Small programs that the fleet's tests run, and what they should have computed.
#![allow(dead_code, reason = "each test file uses some of them")]

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use hopwise_core::error::StepFault;
use hopwise_core::fleet::Fleet;
use hopwise_core::host::{HostBackend, HostOptions};
use hopwise_core::program::Program;

/// Long enough for the slowest machine; a test that needs it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a test's body with a watchdog: a deadlock is a failure, not a hang.
pub(crate) fn within_time(body: impl FnOnce() + Send + 'static) {
    let (done, finished) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        body();
        done.send(()).expect("the watchdog listens");
    });
    match finished.recv_timeout(PATIENCE * 2) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("the test hangs"),
        _ => thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload)),
    }
}

/// A fleet on host devices with this many workers each.
pub(crate) fn host_fleet(devices: usize, workers: usize) -> Fleet {
    let backend = HostBackend::new(HostOptions::new(devices).with_workers(workers));
    Fleet::builder()
        .backend(&backend)
        .and_then(|builder| builder.build())
        .expect("host devices open")
}

/// Passes every message on, and folds each into its state: word 0 counts, word 1 is a hash that
/// depends on the order.
pub(crate) fn relay() -> Arc<Program> {
    Program::builder("relay")
        .in_port("in", 8)
        .out_port("out", 8)
        .inbox_slots(7)
        .outbox_slots(7)
        .host(|step| {
            for (key, message) in (0..).zip(step.inbox.messages()) {
                step.state[0] += 1;
                step.state[1] = fold(step.state[1], message.tag);
                step.outbox.send(0, key, message.tag, &message.words[..2]);
            }
            Ok(())
        })
        .build()
        .expect("a well-formed program")
}

/// One step of the hash in [`relay`].
pub(crate) fn fold(hash: u32, tag: u32) -> u32 {
    hash.rotate_left(5).wrapping_mul(0x9e37_79b1) ^ tag
}

/// The hash of the tags 1 to `count`.
pub(crate) fn hash_of(count: u32) -> u32 {
    (1..=count).fold(0, fold)
}

/// Does something forbidden when a message with tag 13 comes, else relays.
pub(crate) fn touchy(
    name: &str,
    deed: fn(&mut hopwise_core::program::HostStep<'_>),
) -> Arc<Program> {
    Program::builder(name)
        .in_port("in", 8)
        .out_port("out", 8)
        .outbox_slots(4)
        .inbox_slots(4)
        .host(move |step| {
            let bad = step.inbox.messages().any(|message| message.tag == 13);
            if bad {
                deed(step);
            }
            step.state[0] += 1;
            Ok(())
        })
        .build()
        .expect("a well-formed program")
}

/// A program that returns a fault of its own at tag 13.
pub(crate) fn gives_up() -> Arc<Program> {
    Program::builder("gives-up")
        .in_port("in", 8)
        .host(|step| {
            if step.inbox.messages().any(|message| message.tag == 13) {
                return Err(StepFault::Program { code: 5, reason: "thirteen".to_owned() });
            }
            Ok(())
        })
        .build()
        .expect("a well-formed program")
}

/// The state as words.
pub(crate) fn words(state: &[u8]) -> Vec<u32> {
    state
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")))
        .collect()
}
