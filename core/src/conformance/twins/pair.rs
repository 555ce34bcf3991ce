//! A host device and another that run the same kernels.

use std::fmt::Debug;
use std::sync::Arc;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestError, TestRunner};

use super::super::subject::Subject;
use crate::abi::outbox::StepOutput;
use crate::abi::{HEADER_WORDS, SLOT_HEADER_WORDS, bytes_to_words, inbox, outbox, words_to_bytes};
use crate::backend::Backend;
use crate::device::{Device, InitialState, InstanceRequest, KernelInstance, Step, StepOutcome};
use crate::error::StepFault;
use crate::host::{HostBackend, HostOptions};
use crate::program::Program;

/// A kernel, and the messages of its steps.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    pub(super) program: Arc<Program>,
    pub(super) parameters: Vec<u32>,
    pub(super) state: Vec<u32>,
    pub(super) steps: Vec<Vec<Letter>>,
}

/// A message as the inbox says it is, even where that makes no sense.
#[derive(Clone, Debug)]
pub(super) struct Letter {
    pub(super) port: u32,
    pub(super) tag: u32,
    pub(super) length_bytes: u32,
    pub(super) words: Vec<u32>,
}

impl Letter {
    /// A message of whole words.
    pub(super) fn new(port: u32, tag: u32, words: Vec<u32>) -> Self {
        let length_bytes = u32::try_from(words.len() * 4).unwrap();
        Self { port, tag, length_bytes, words }
    }
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ending {
    /// What it sent, and the state after it.
    Applied(StepOutput, Vec<u32>),
    /// The fault, without words: devices carry its code only.
    Faulted(StepFault),
}

impl Ending {
    /// The code of the program's own fault.
    pub(super) fn code(&self) -> Option<u16> {
        match self {
            Self::Faulted(StepFault::Program { code, .. }) => Some(*code),
            _ => None,
        }
    }
}

/// The two devices.
pub(super) struct Pair {
    host: Arc<dyn Device>,
    device: Arc<dyn Device>,
}

impl Pair {
    /// The device under test, beside a host device.
    pub(super) fn beside(subject: &Subject) -> Self {
        let host = HostBackend::new(HostOptions::new(1)).open(0).expect("a host device opens");
        Self { host, device: Arc::clone(&subject.device) }
    }

    /// Runs the kernels on both devices and returns what came of each of their steps.
    pub(super) fn agree(&self, kernels: &[Kernel]) -> Vec<Vec<Ending>> {
        let expected = run(&*self.host, kernels);
        let found = run(&*self.device, kernels);
        for ((kernel, expected), found) in kernels.iter().zip(&expected).zip(&found) {
            assert_eq!(expected.len(), found.len(), "steps of {}", kernel.program.name());
            for (step, (expected, found)) in expected.iter().zip(found).enumerate() {
                assert_same(expected, found, &format!("{} step {step}", kernel.program.name()));
            }
        }
        expected
    }

    /// Runs one kernel on both devices and returns the code of its fault, if there was one.
    pub(super) fn code(&self, kernel: Kernel) -> Option<u16> {
        self.agree(&[kernel])[0].last()?.code()
    }
}

/// Says where two endings differ without printing whole states.
fn assert_same(expected: &Ending, found: &Ending, step: &str) {
    if let (Ending::Applied(output, state), Ending::Applied(other_output, other_state)) =
        (expected, found)
    {
        let differs = state.iter().zip(other_state).position(|(one, other)| one != other);
        if let Some(word) = differs {
            panic!("{step}: state word {word} is {}, not {}", other_state[word], state[word]);
        }
        assert!(output == other_output, "{step}: sent {other_output:?}, not {output:?}");
    }
    assert!(expected == found, "{step}: ended as {found:?}, not as {expected:?}");
}

/// Runs all kernels step by step, those of one round in batches; a fault ends its kernel.
fn run(device: &dyn Device, kernels: &[Kernel]) -> Vec<Vec<Ending>> {
    let instances: Vec<_> = kernels.iter().map(|kernel| create(device, kernel)).collect();
    let mut endings = vec![Vec::new(); kernels.len()];
    let rounds = kernels.iter().map(|kernel| kernel.steps.len()).max().unwrap_or(0);
    for round in 0..rounds {
        let running: Vec<_> = (0..kernels.len())
            .filter(|&index| round < kernels[index].steps.len())
            .filter(|&index| !matches!(endings[index].last(), Some(Ending::Faulted(_))))
            .collect();
        let mut steps: Vec<_> = running
            .iter()
            .map(|&index| step(&kernels[index], Arc::clone(&instances[index]), round))
            .collect();
        for batch in steps.chunks_mut(device.limits().max_batch_kernels) {
            device.run_batch(batch).unwrap();
        }
        for (step, index) in steps.iter().zip(running) {
            endings[index].push(ending(&kernels[index].program, step));
        }
    }
    endings
}

fn create(device: &dyn Device, kernel: &Kernel) -> Arc<dyn KernelInstance> {
    let mut bytes = vec![0; kernel.state.len() * 4];
    words_to_bytes(&kernel.state, &mut bytes);
    let compiled = device.compile(&kernel.program).unwrap();
    let request = InstanceRequest {
        parameters: &kernel.parameters,
        state_bytes: bytes.len() as u64,
        initial: InitialState::Bytes(&bytes),
    };
    device.create_instance(&compiled, &request).unwrap()
}

fn step(kernel: &Kernel, instance: Arc<dyn KernelInstance>, round: usize) -> Step {
    let program = &kernel.program;
    let letters = &kernel.steps[round];
    let mut inbox_words = Vec::new();
    let slot_words = program.inbox_slot_words();
    inbox::begin(&mut inbox_words, slot_words, round as u64 + 1, letters.is_empty());
    for letter in letters {
        let slot = inbox_words.len();
        assert_eq!((slot - HEADER_WORDS) % slot_words, 0);
        let fits = letter.words.len().min(slot_words - SLOT_HEADER_WORDS);
        let length = (letter.length_bytes as usize).min(fits * 4);
        let mut payload = vec![0; length];
        words_to_bytes(&letter.words[..fits], &mut payload);
        inbox::push(&mut inbox_words, letter.port, letter.tag, 1, &payload);
        inbox_words[slot + 2] = letter.length_bytes;
    }
    // Slot contents are not cleared between steps, so a kernel may find anything there.
    let mut outbox_words = vec![0xdead_beef; program.outbox_words()];
    outbox::begin(&mut outbox_words, program);
    Step::new(instance, inbox_words, outbox_words)
}

fn ending(program: &Program, step: &Step) -> Ending {
    let output = match &step.outcome {
        StepOutcome::Applied => outbox::read(&step.outbox, program),
        StepOutcome::Faulted(fault) => Err(fault.clone()),
        other => panic!("a batch that went well left a step as {other:?}"),
    };
    match output {
        Ok(output) => Ending::Applied(output, state(&*step.instance)),
        Err(StepFault::Program { code, .. }) => {
            Ending::Faulted(StepFault::Program { code, reason: String::new() })
        }
        Err(fault) => Ending::Faulted(fault),
    }
}

fn state(instance: &dyn KernelInstance) -> Vec<u32> {
    let mut bytes = vec![0; usize::try_from(instance.state_bytes()).unwrap()];
    instance.read_state(0, &mut bytes).unwrap();
    let mut words = vec![0; bytes.len() / 4];
    bytes_to_words(&bytes, &mut words);
    words
}

/// Tries a law on so many random cases and shows the smallest that breaks it.
pub(super) fn property<S: Strategy>(cases: u32, strategy: S, law: impl Fn(S::Value))
where
    S::Value: Debug,
{
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&strategy, |value| {
        law(value);
        Ok(())
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(reason, case)) => panic!("{reason}\nsmallest case: {case:#?}"),
        Err(TestError::Abort(reason)) => panic!("too few cases: {reason}"),
    }
}

/// The generator `SplitMix64` (Steele, Lea and Flood 2014): the content of images from one seed.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `bound` - 1.
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        u32::try_from(self.next() % u64::from(bound)).unwrap()
    }
}
