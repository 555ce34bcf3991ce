//! Fleets, programs and checks that the tests of this crate share.
#![allow(dead_code, reason = "each test file uses some of them")]

use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use hopwise_core::backend::Backend;
use hopwise_core::coordinator::{LoadBalancingStrategy, MultiGpuConfig};
use hopwise_core::fleet::{Endpoint, Fleet, HostSender, KernelSpec, MessageTotals};
use hopwise_core::host::{HostBackend, HostOptions};
use hopwise_core::id::KernelId;
use hopwise_core::message::Message;
use hopwise_core::program::Program;

/// Long enough for the slowest machine; a test that needs it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a test's body with a watchdog: a deadlock is a failure, not a hang.
pub(crate) fn within_time(body: impl FnOnce() + Send + 'static) {
    let (done, finished) = mpsc::channel();
    let thread = thread::spawn(move || {
        body();
        done.send(()).expect("the watchdog listens");
    });
    match finished.recv_timeout(PATIENCE * 2) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("the test hangs"),
        _ => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
    }
}

/// Waits until something holds: threads let go of memory a moment after they have said so.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what} never happened");
        thread::sleep(Duration::from_millis(1));
    }
}

/// A fleet that fills its devices one after the other, with so many kernels each.
pub(crate) fn filling_fleet(backend: &dyn Backend, kernels: usize) -> Fleet {
    let config = MultiGpuConfig::builder()
        .load_balancing(LoadBalancingStrategy::FirstAvailable)
        .max_kernels_per_device(kernels)
        .build();
    let builder = Fleet::builder().backend(backend).expect("host devices open").config(config);
    builder.build().expect("threads start")
}

/// A fleet on host devices with one worker each.
pub(crate) fn host_fleet(devices: usize) -> Fleet {
    let backend = HostBackend::new(HostOptions::new(devices).with_workers(1));
    let builder = Fleet::builder().backend(&backend).expect("host devices open");
    builder.build().expect("threads start")
}

/// Counts its messages in word 0, folds their order into word 1, scatters them over the rest of its
/// state, and passes every message on.
pub(crate) fn recorder() -> Arc<Program> {
    Program::builder("recorder")
        .in_port("in", 8)
        .out_port("out", 8)
        .inbox_slots(5)
        .outbox_slots(5)
        .host(|step| {
            for (key, message) in (0..).zip(step.inbox.messages()) {
                record(step.state, message.tag);
                step.outbox.send(0, key, message.tag, &message.words[..2]);
            }
            Ok(())
        })
        .build()
        .expect("a well-formed program")
}

/// What one message does to a recorder's state.
fn record(state: &mut [u32], tag: u32) {
    state[0] += 1;
    state[1] = state[1].rotate_left(5).wrapping_mul(0x9e37_79b1) ^ tag;
    let slot = 2 + tag.wrapping_mul(0x85eb_ca6b) as usize % (state.len() - 2);
    state[slot] = state[slot].wrapping_mul(31).wrapping_add(tag);
}

/// Steps for ever once started, until a message comes.
pub(crate) fn spinner() -> Arc<Program> {
    Program::builder("spinner")
        .in_port("stop", 4)
        .host(|step| {
            step.state[0] = step.state[0].wrapping_add(1);
            if step.inbox.is_empty() {
                step.outbox.run_again();
            }
            Ok(())
        })
        .build()
        .expect("a well-formed program")
}

/// A state that differs everywhere: count and order hash zero, then noise.
pub(crate) fn noise(words: usize) -> Vec<u32> {
    let mut state: Vec<u32> =
        (0..).map(|index: u32| index.wrapping_mul(0x9e37_79b9)).take(words).collect();
    state[..2].fill(0);
    state
}

pub(crate) fn to_bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A recorder with an endpoint behind it and what it ought to compute.
pub(crate) struct Recorder {
    pub(crate) kernel: KernelId,
    pub(crate) sender: HostSender,
    out: Endpoint,
    words: usize,
}

impl Recorder {
    pub(crate) fn launch(fleet: &Fleet, device: usize, words: usize) -> Self {
        Self::launch_spec(fleet, spec_on(device, words), words)
    }

    /// On whatever device the strategy chooses. It asks for nothing, so a drain can move it.
    pub(crate) fn launch_anywhere(fleet: &Fleet, words: usize) -> Self {
        Self::launch_spec(fleet, spec(words), words)
    }

    pub(crate) fn launch_spec(fleet: &Fleet, spec: KernelSpec, words: usize) -> Self {
        let kernel = fleet.launch(spec).expect("room");
        let out = fleet.endpoint("out", 16);
        fleet.connect_endpoint(&kernel, "out", &out).expect("the port exists");
        let sender = fleet.sender("test", &kernel, "in").expect("the port exists");
        Self { kernel, sender, out, words }
    }

    /// Sends the tags `first..=last`.
    pub(crate) fn send(&self, first: u32, last: u32) {
        for tag in first..=last {
            self.sender.send(Message::from_words(tag, &[tag, !tag])).expect("the kernel lives");
        }
    }

    /// Receives the tags `first..=last`, in this order.
    pub(crate) fn receive(&self, first: u32, last: u32) {
        for tag in first..=last {
            let envelope = self.out.recv_timeout(PATIENCE).expect("the kernel lives");
            assert_eq!(envelope.message, Message::from_words(tag, &[tag, !tag]));
            assert_eq!(envelope.sequence, u64::from(tag));
        }
    }

    /// After the tags `1..=last`: the state is what they make of it, and nothing was lost.
    pub(crate) fn check(&self, fleet: &Fleet, last: u32) {
        let mut expected = noise(self.words);
        (1..=last).for_each(|tag| record(&mut expected, tag));
        let state = fleet.read_state(&self.kernel).expect("the kernel lives");
        assert!(state == to_bytes(&expected), "the state of {} is wrong", self.kernel);
        assert!(self.out.try_recv().is_err(), "more messages than were sent");
    }
}

pub(crate) fn spec(words: usize) -> KernelSpec {
    KernelSpec::new("recorder", recorder(), 4 * words)
        .with_state(to_bytes(&noise(words)))
        .with_mailbox_capacity(64)
}

pub(crate) fn spec_on(device: usize, words: usize) -> KernelSpec {
    let mut spec = spec(words);
    spec.options = spec.options.with_preferred_devices([device]);
    spec
}

/// Memory in use, device by device.
pub(crate) fn used_bytes(fleet: &Fleet, devices: usize) -> Vec<u64> {
    let used = |index| {
        let memory = fleet.device(index).ok()?.memory().ok()?;
        Some(memory.total_bytes - memory.available_bytes)
    };
    (0..devices).map(|index| used(index).unwrap_or(0)).collect()
}

/// Every kernel has one owner, and nothing of a migration is left: no hold, no reservation, no
/// twin. All kernels of the fleet have the same size.
pub(crate) fn check_settled(fleet: &Fleet, devices: usize) {
    let coordinator = fleet.coordinator();
    let statuses = fleet.statuses();
    for status in &statuses {
        assert_eq!(coordinator.get_kernel_device(&status.kernel), Some(status.device));
        assert!(!status.held, "{} is held", status.kernel);
    }
    for device in coordinator.get_all_status() {
        let index = device.index();
        let owned = statuses.iter().filter(|status| status.device == index).count();
        assert_eq!((device.kernel_count, device.reserved), (owned, 0), "device {index}");
    }
    let own = |index| statuses.iter().filter(move |status| status.device == index).count() as u64;
    eventually("twins and sources are freed", || {
        let used = used_bytes(fleet, devices);
        let each = used.iter().sum::<u64>() / statuses.len().max(1) as u64;
        (0..).zip(&used).all(|(index, used)| *used == own(index) * each)
    });
}

/// Every message was delivered once and in order.
pub(crate) fn check_ledgers(fleet: &Fleet) {
    fleet.wait_idle(PATIENCE).expect("nothing hangs");
    let totals = MessageTotals::of(&fleet.ledgers());
    assert!(totals.is_clean(), "{totals:?}");
}
