//! A sequential interpreter of the kernel ABI: picks a runnable kernel at random, gives it some of
//! its messages, runs the host function, delivers what it sent.

use std::collections::VecDeque;
use std::sync::Arc;

use hopwise_core::abi::inbox::InboxView;
use hopwise_core::abi::outbox::{OutboxWriter, SentMessage};
use hopwise_core::abi::{inbox, outbox, padded_parameters};
use hopwise_core::error::StepFault;
use hopwise_core::program::{HostStep, Program};

/// More steps than any test needs: a program that always runs again is a failure, not a hang.
const STEP_LIMIT: u64 = 200_000;

/// Kernels, their mailboxes, and the wires between them.
#[derive(Clone)]
pub(crate) struct Interpreter {
    pub(crate) kernels: Vec<Kernel>,
    random: Random,
}

/// One kernel.
#[derive(Clone)]
pub(crate) struct Kernel {
    program: Arc<Program>,
    parameters: Vec<u32>,
    pub(crate) state: Vec<u32>,
    pub(crate) mailbox: VecDeque<Letter>,
    asked_to_run: bool,
    steps: u64,
    wires: Vec<Option<(usize, u32)>>,
    /// Everything that was sent, per out-port, wired or not.
    pub(crate) sent: Vec<Vec<Letter>>,
}

/// A message to an in-port, or one that left an out-port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Letter {
    pub(crate) port: u32,
    pub(crate) tag: u32,
    pub(crate) payload: Vec<u8>,
}

impl Letter {
    pub(crate) fn new(port: u32, tag: u32, words: &[u32]) -> Self {
        let payload = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Self { port, tag, payload }
    }

    pub(crate) fn words(&self) -> Vec<u32> {
        let words = self.payload.as_chunks::<4>().0;
        words.iter().map(|word| u32::from_le_bytes(*word)).collect()
    }
}

impl Interpreter {
    /// An interpreter whose choices follow from `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self { kernels: Vec::new(), random: Random(seed) }
    }

    /// Adds a kernel, launched with *start*.
    pub(crate) fn launch(
        &mut self,
        program: Arc<Program>,
        parameters: &[u32],
        state: Vec<u32>,
    ) -> usize {
        let ports = program.out_ports().len();
        self.kernels.push(Kernel {
            program,
            parameters: padded_parameters(parameters),
            state,
            mailbox: VecDeque::new(),
            asked_to_run: true,
            steps: 0,
            wires: vec![None; ports],
            sent: vec![Vec::new(); ports],
        });
        self.kernels.len() - 1
    }

    /// Makes a channel.
    pub(crate) fn wire(&mut self, from: usize, out_port: u32, to: usize, in_port: u32) {
        self.kernels[from].wires[out_port as usize] = Some((to, in_port));
    }

    /// Runs until nothing is runnable, or a kernel faults.
    pub(crate) fn run(&mut self) -> Result<(), StepFault> {
        self.run_tampering(|_, _| {})
    }

    /// Runs, and lets `tamper` change the mailboxes after each step; it is told the step.
    pub(crate) fn run_tampering(
        &mut self,
        mut tamper: impl FnMut(u64, &mut [Kernel]),
    ) -> Result<(), StepFault> {
        for step in 0..STEP_LIMIT {
            let runnable: Vec<usize> = (0..self.kernels.len())
                .filter(|&index| self.kernels[index].is_runnable())
                .collect();
            if runnable.is_empty() {
                return Ok(());
            }
            let index = runnable[self.random.below(runnable.len())];
            self.step(index)?;
            tamper(step, &mut self.kernels);
        }
        panic!("still running after {STEP_LIMIT} steps");
    }

    fn step(&mut self, index: usize) -> Result<(), StepFault> {
        let kernel = &self.kernels[index];
        let most = kernel.mailbox.len().min(kernel.program.inbox_slots() as usize);
        // A step that was asked for may come without messages; any other has at least one.
        let least = usize::from(!kernel.asked_to_run);
        let batch = least + self.random.below(most - least + 1);
        for message in self.kernels[index].run_step(batch)? {
            let kernel = &mut self.kernels[index];
            let SentMessage { port, tag, payload, .. } = message;
            kernel.sent[port as usize].push(Letter { port, tag, payload: payload.clone() });
            if let Some((to, in_port)) = kernel.wires[port as usize] {
                self.kernels[to].mailbox.push_back(Letter { port: in_port, tag, payload });
            }
        }
        Ok(())
    }
}

impl Kernel {
    fn is_runnable(&self) -> bool {
        self.asked_to_run || !self.mailbox.is_empty()
    }

    fn run_step(&mut self, batch: usize) -> Result<Vec<SentMessage>, StepFault> {
        self.steps += 1;
        let (mut inbox_words, mut outbox_words) = (Vec::new(), Vec::new());
        let slot_words = self.program.inbox_slot_words();
        inbox::begin(&mut inbox_words, slot_words, self.steps, self.asked_to_run);
        for letter in self.mailbox.drain(..batch) {
            inbox::push(&mut inbox_words, letter.port, letter.tag, 1, &letter.payload);
        }
        outbox::begin(&mut outbox_words, &self.program);
        let host_function = self.program.host_function().unwrap();
        host_function(&mut HostStep {
            parameters: &self.parameters,
            state: &mut self.state,
            inbox: InboxView::new(&inbox_words),
            outbox: OutboxWriter::new(&mut outbox_words, &self.program),
        })?;
        let output = outbox::read(&outbox_words, &self.program)?;
        self.asked_to_run = output.run_again;
        Ok(output.messages)
    }
}

/// Runs one step of one kernel: for tests of what a step refuses.
pub(crate) fn single_step(
    program: Arc<Program>,
    parameters: &[u32],
    state: Vec<u32>,
    letters: &[Letter],
) -> Result<(), StepFault> {
    let mut interpreter = Interpreter::new(0);
    let index = interpreter.launch(program, parameters, state);
    let kernel = &mut interpreter.kernels[index];
    kernel.mailbox.extend(letters.iter().cloned());
    kernel.run_step(letters.len()).map(|_| ())
}

/// The code of a program's own fault.
pub(crate) fn code<T>(result: Result<T, StepFault>) -> Option<u16> {
    match result {
        Err(StepFault::Program { code, reason }) => {
            assert!(!reason.is_empty(), "a fault has a reason");
            Some(code)
        }
        _ => None,
    }
}

/// The generator `SplitMix64` (Steele, Lea and Flood 2014): the test's choices from one seed.
#[derive(Clone)]
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `bound` - 1.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }
}
