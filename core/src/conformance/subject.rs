//! What the topics work with: a device, kernels on it, steps and their outputs.

use std::fmt::Debug;
use std::sync::Arc;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

use crate::abi::outbox::{self, StepOutput};
use crate::abi::{bytes_to_words, inbox, words_to_bytes};
use crate::backend::Backend;
use crate::device::{Device, InitialState, InstanceRequest, KernelInstance, Step, StepOutcome};
use crate::device_info::DeviceInfo;
use crate::error::{DeviceError, StepFault};
use crate::program::Program;

/// The device under test, and the backend that lists it.
#[derive(Debug)]
pub struct Subject {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) listed: DeviceInfo,
    pub(super) device: Arc<dyn Device>,
}

impl Subject {
    /// Opens the device that the backend lists as `listed`.
    ///
    /// # Panics
    ///
    /// When it cannot be opened.
    #[must_use]
    pub fn open(backend: Arc<dyn Backend>, listed: DeviceInfo) -> Self {
        let device = backend.open(listed.index).expect("a listed device can be opened");
        Self { backend, listed, device }
    }

    /// A kernel with this state.
    pub(super) fn kernel(&self, program: &Arc<Program>, state: &[u32]) -> Kernel {
        Kernel::new(&*self.device, program, &[], state)
    }

    /// Runs steps in batches as large as the device allows.
    pub(super) fn run(&self, steps: &mut [Step]) -> Result<(), DeviceError> {
        let at_once = self.device.limits().max_batch_kernels;
        steps.chunks_mut(at_once).try_for_each(|batch| self.device.run_batch(batch))
    }
}

/// A kernel under test, outside of any fleet: its steps are made by hand.
#[derive(Debug)]
pub struct Kernel {
    /// What it runs.
    pub program: Arc<Program>,
    /// Its parameters and state on the device.
    pub instance: Arc<dyn KernelInstance>,
    steps: u64,
}

/// A message for a kernel under test.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// Index of the in-port.
    pub port: u32,
    /// The sender's tag.
    pub tag: u32,
    /// The sender's channel, low 32 bits.
    pub channel: u32,
    /// The bytes.
    pub payload: Vec<u8>,
}

impl Incoming {
    /// A message on port 0 made of words.
    #[must_use]
    pub fn words(tag: u32, words: &[u32]) -> Self {
        Self { port: 0, tag, channel: 1, payload: to_bytes(words) }
    }
}

impl Kernel {
    pub(super) fn new(
        device: &dyn Device,
        program: &Arc<Program>,
        parameters: &[u32],
        state: &[u32],
    ) -> Self {
        Self::try_new(device, program, parameters, state).expect("the suite's programs fit")
    }

    /// A kernel with these parameters and this state.
    ///
    /// # Errors
    ///
    /// The text of what the device refused.
    pub fn try_new(
        device: &dyn Device,
        program: &Arc<Program>,
        parameters: &[u32],
        state: &[u32],
    ) -> Result<Self, String> {
        let bytes = to_bytes(state);
        let compiled = device.compile(program).map_err(|error| error.to_string())?;
        let request = InstanceRequest {
            parameters,
            state_bytes: bytes.len() as u64,
            initial: InitialState::Bytes(&bytes),
        };
        let instance = device.create_instance(&compiled, &request);
        let instance = instance.map_err(|error| error.to_string())?;
        Ok(Self { program: Arc::clone(program), instance, steps: 0 })
    }

    /// The next step of the kernel, with these messages.
    #[must_use]
    pub fn step(&mut self, started: bool, messages: &[Incoming]) -> Step {
        self.steps += 1;
        let mut inbox_words = Vec::new();
        inbox::begin(&mut inbox_words, self.program.inbox_slot_words(), self.steps, started);
        for message in messages {
            let Incoming { port, tag, channel, payload } = message;
            inbox::push(&mut inbox_words, *port, *tag, *channel, payload);
        }
        // Slot contents are not cleared between steps, so a kernel may find anything there.
        let mut outbox_words = vec![0xdead_beef; self.program.outbox_words()];
        outbox::begin(&mut outbox_words, &self.program);
        Step::new(Arc::clone(&self.instance), inbox_words, outbox_words)
    }

    /// Runs one step alone and says how it ended.
    pub(super) fn run(
        &mut self,
        subject: &Subject,
        started: bool,
        messages: &[Incoming],
    ) -> Result<StepOutput, StepFault> {
        let mut steps = [self.step(started, messages)];
        subject.run(&mut steps).expect("the device works");
        output(&self.program, &steps[0])
    }

    /// The state as words.
    ///
    /// # Panics
    ///
    /// When it cannot be read.
    #[must_use]
    pub fn state(&self) -> Vec<u32> {
        let length = usize::try_from(self.instance.state_bytes()).expect("a test's state is small");
        let mut bytes = vec![0; length];
        self.instance.read_state(0, &mut bytes).expect("the state can be read");
        to_words(&bytes)
    }
}

/// How a step ended, after its outbox was read.
///
/// # Errors
///
/// What stopped its kernel.
///
/// # Panics
///
/// When the step did not end.
pub fn output(program: &Program, step: &Step) -> Result<StepOutput, StepFault> {
    match &step.outcome {
        StepOutcome::Applied => outbox::read(&step.outbox, program),
        StepOutcome::Faulted(fault) => Err(fault.clone()),
        other => panic!("a batch that went well left a step as {other:?}"),
    }
}

pub(super) fn to_bytes(words: &[u32]) -> Vec<u8> {
    let mut bytes = vec![0; words.len() * 4];
    words_to_bytes(words, &mut bytes);
    bytes
}

pub(super) fn to_words(bytes: &[u8]) -> Vec<u32> {
    let mut words = vec![0; bytes.len() / 4];
    bytes_to_words(bytes, &mut words);
    words
}

/// Tries a law on so many random cases and shows the smallest that breaks it.
pub(super) fn property<S: Strategy>(
    cases: u32,
    strategy: S,
    law: impl Fn(S::Value) -> Result<(), TestCaseError>,
) where
    S::Value: Debug,
{
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    match TestRunner::new(config).run(&strategy, law) {
        Ok(()) => {}
        Err(TestError::Fail(reason, case)) => panic!("{reason}\nsmallest case: {case:#?}"),
        Err(TestError::Abort(reason)) => panic!("too few cases: {reason}"),
    }
}
