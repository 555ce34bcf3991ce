//! A host device and a wgpu device that run the same kernels.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestError, TestRunner};

use hopwise_backend_wgpu::{WgpuBackend, WgpuOptions};
use hopwise_core::abi::outbox::StepOutput;
use hopwise_core::abi::{
    HEADER_WORDS, SLOT_HEADER_WORDS, bytes_to_words, inbox, outbox, words_to_bytes,
};
use hopwise_core::backend::Backend;
use hopwise_core::conformance::within;
use hopwise_core::device::{
    Device, InitialState, InstanceRequest, KernelInstance, Step, StepOutcome,
};
use hopwise_core::error::{DeviceError, StepFault};
use hopwise_core::host::{HostBackend, HostOptions};
use hopwise_core::program::Program;

/// How long one test may take.
const LIMIT: Duration = Duration::from_secs(240);

/// Memory of a wgpu device: room for the largest state.
const MEMORY_BYTES: u64 = 512 << 20;

/// A kernel, and the messages of its steps.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) program: Arc<Program>,
    pub(crate) parameters: Vec<u32>,
    pub(crate) state: Vec<u32>,
    pub(crate) steps: Vec<Vec<Letter>>,
}

/// A message as the inbox says it is, even where that makes no sense.
#[derive(Clone, Debug)]
pub(crate) struct Letter {
    pub(crate) port: u32,
    pub(crate) tag: u32,
    pub(crate) length_bytes: u32,
    pub(crate) words: Vec<u32>,
}

impl Letter {
    /// A message of whole words.
    pub(crate) fn new(port: u32, tag: u32, words: Vec<u32>) -> Self {
        let length_bytes = u32::try_from(words.len() * 4).unwrap();
        Self { port, tag, length_bytes, words }
    }
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ending {
    /// What it sent, and the state after it.
    Applied(StepOutput, Vec<u32>),
    /// The fault, without words: devices carry its code only.
    Faulted(StepFault),
}

impl Ending {
    /// The code of the program's own fault.
    pub(crate) fn code(&self) -> Option<u16> {
        match self {
            Self::Faulted(StepFault::Program { code, .. }) => Some(*code),
            _ => None,
        }
    }
}

/// The two devices.
pub(crate) struct Pair {
    host: Arc<dyn Device>,
    wgpu: Arc<dyn Device>,
}

impl Pair {
    /// Runs a test with a time limit on every adapter, beside a host device; says so where there is
    /// no adapter.
    pub(crate) fn with(test: impl Fn(&Self) + Send + 'static) {
        let backend = WgpuBackend::new(WgpuOptions::new().with_memory_bytes(MEMORY_BYTES));
        let adapters = match backend.enumerate() {
            Ok(adapters) => adapters,
            Err(DeviceError::Unavailable { reason }) => {
                eprintln!("skipped: {reason}");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        within(LIMIT, move || {
            for adapter in adapters {
                let host = HostBackend::new(HostOptions::new(1)).open(0).unwrap();
                let wgpu = backend.open(adapter.index).unwrap();
                test(&Self { host, wgpu });
            }
        });
    }

    /// Runs the kernels on both devices and returns what came of each of their steps.
    pub(crate) fn agree(&self, kernels: &[Kernel]) -> Vec<Vec<Ending>> {
        let expected = run(&*self.host, kernels);
        let found = run(&*self.wgpu, kernels);
        for ((kernel, expected), found) in kernels.iter().zip(&expected).zip(&found) {
            assert_eq!(expected.len(), found.len(), "steps of {}", kernel.program.name());
            for (step, (expected, found)) in expected.iter().zip(found).enumerate() {
                assert_same(expected, found, &format!("{} step {step}", kernel.program.name()));
            }
        }
        expected
    }

    /// Runs one kernel on both devices and returns the code of its fault, if there was one.
    pub(crate) fn code(&self, kernel: Kernel) -> Option<u16> {
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
pub(crate) fn property<S: Strategy>(cases: u32, strategy: S, law: impl Fn(S::Value))
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
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `bound` - 1.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        u32::try_from(self.next() % u64::from(bound)).unwrap()
    }
}
