//! One kernel of a fleet: its mailbox, where it lives, what it is doing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, RwLock};
use serde::{Deserialize, Serialize};

use super::channel::Channel;
use super::error::FleetError;
use super::lanes::Parcel;
use super::mailbox::Mailbox;
use super::router::Outlet;
use super::worker::DeviceRuntime;
use crate::coordinator::{KernelPriority, LaunchOptions};
use crate::device::KernelInstance;
use crate::error::StepFault;
use crate::id::KernelId;
use crate::program::Program;

/// Messages that a mailbox holds unless the spec says otherwise.
pub const DEFAULT_MAILBOX_CAPACITY: usize = 1024;

/// What a kernel is launched from.
#[derive(Clone, Debug)]
pub struct KernelSpec {
    /// Display name.
    pub name: String,
    /// What it runs.
    pub program: Arc<Program>,
    /// Parameter words; missing ones are zero.
    pub parameters: Vec<u32>,
    /// What the state holds at first. Its length is the state's length: a positive multiple of 4.
    pub state: Vec<u8>,
    /// Where it may run, and its declared priority.
    pub options: LaunchOptions,
    /// Most messages in its mailbox.
    pub mailbox_capacity: usize,
    /// Whether the first step runs without a message.
    pub start: bool,
}

impl KernelSpec {
    /// A kernel with this much zeroed state, that waits for messages.
    #[must_use]
    pub fn new(name: impl Into<String>, program: Arc<Program>, state_bytes: usize) -> Self {
        Self {
            name: name.into(),
            program,
            parameters: Vec::new(),
            state: vec![0; state_bytes],
            options: LaunchOptions::default(),
            mailbox_capacity: DEFAULT_MAILBOX_CAPACITY,
            start: false,
        }
    }

    /// Sets the parameter words.
    #[must_use]
    pub fn with_parameters(mut self, parameters: Vec<u32>) -> Self {
        self.parameters = parameters;
        self
    }

    /// Sets the initial state, and with it the state's length.
    #[must_use]
    pub fn with_state(mut self, state: Vec<u8>) -> Self {
        self.state = state;
        self
    }

    /// Says where the kernel may run.
    #[must_use]
    pub fn with_options(mut self, options: LaunchOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the mailbox's capacity in messages.
    #[must_use]
    pub fn with_mailbox_capacity(mut self, messages: usize) -> Self {
        self.mailbox_capacity = messages;
        self
    }

    /// Asks for a first step without a message.
    #[must_use]
    pub fn started(mut self) -> Self {
        self.start = true;
        self
    }
}

/// What a kernel is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KernelPhase {
    /// It can run, and waits for a reason to.
    Ready,
    /// A step runs.
    Running,
    /// A fault stopped it.
    Failed(StepFault),
    /// Its device is gone. It stays mapped, its messages are kept.
    Lost {
        /// What took the device down.
        cause: String,
    },
    /// It was removed.
    Removed,
}

/// A kernel at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelStatus {
    /// The kernel.
    pub kernel: KernelId,
    /// The index of the device it lives on.
    pub device: usize,
    /// What it is doing.
    pub phase: KernelPhase,
    /// Whether it is held at a step boundary.
    pub held: bool,
    /// Steps that it has committed since it was launched.
    pub steps: u64,
    /// How long ago its last step was committed, to the millisecond: the age of its state.
    /// `None` before the first.
    pub since_last_step: Option<Duration>,
    /// Messages in its mailbox.
    pub mailbox_depth: usize,
    /// Messages that it sent and that found no room yet.
    pub pending_output: usize,
    /// Size of its state in bytes.
    pub state_bytes: u64,
}

/// What left with a removed kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedKernel {
    /// The kernel.
    pub kernel: KernelId,
    /// Messages of its mailbox that went to the dead letters.
    pub dead_letters: usize,
}

/// The shared record of one kernel. Lock order: `run`, then a mailbox's lock; never two `run` locks.
#[derive(Debug)]
pub(crate) struct KernelCell {
    pub(crate) id: KernelId,
    pub(crate) program: Arc<Program>,
    pub(crate) parameters: Vec<u32>,
    pub(crate) state_bytes: u64,
    pub(crate) priority: KernelPriority,
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) run: Mutex<RunState>,
    /// Notified when a step has ended.
    pub(crate) quiet: Condvar,
    /// The way out of each out-port.
    pub(crate) outputs: RwLock<Vec<Option<Arc<Outlet>>>>,
    /// A copy of the home's device index, read without the lock.
    pub(crate) home_device: AtomicUsize,
    /// The device did not start its last step: it is tried again in a batch of its own.
    pub(crate) retries: AtomicBool,
    pub(crate) steps: AtomicU64,
    /// Milliseconds between the fleet's start and the last committed step.
    pub(crate) last_step_ms: AtomicU64,
}

/// Where a kernel lives.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    pub(crate) runtime: Arc<DeviceRuntime>,
    pub(crate) instance: Arc<dyn KernelInstance>,
}

/// Committed output of one channel that found no room.
#[derive(Debug)]
pub(crate) struct PendingOutput {
    pub(crate) outlet: Arc<Outlet>,
    /// Never empty.
    pub(crate) parcels: VecDeque<Parcel>,
}

/// Everything about a kernel that changes while it runs.
#[derive(Debug)]
pub(crate) struct RunState {
    pub(crate) phase: KernelPhase,
    pub(crate) home: Home,
    pub(crate) held: bool,
    /// The device in whose queue the kernel stands. Queue entries are hints; this is the truth.
    pub(crate) queued_on: Option<usize>,
    /// A step was asked for by *start* or *run again*.
    pub(crate) again: bool,
    /// Number of the last step that began.
    pub(crate) step_number: u64,
    /// The running step was asked for by *start* or *run again*.
    pub(crate) asked: bool,
    /// Messages that the running step works on; they go back to the mailbox if it did not happen.
    pub(crate) in_flight: VecDeque<Parcel>,
    /// The channels that lead to the kernel, by the number that its messages carry.
    pub(crate) sources: Vec<Arc<Channel>>,
    /// Committed output that is not delivered yet. While there is some, no step runs.
    pub(crate) pending: Vec<PendingOutput>,
    /// Failed attempts at the present step.
    pub(crate) attempts: u32,
    /// Whether the kernel is counted as busy.
    pub(crate) counted: bool,
}

impl RunState {
    pub(crate) fn new(home: Home, start: bool) -> Self {
        Self {
            phase: KernelPhase::Ready,
            home,
            held: false,
            queued_on: None,
            again: start,
            step_number: 0,
            asked: false,
            in_flight: VecDeque::new(),
            sources: Vec::new(),
            pending: Vec::new(),
            attempts: 0,
            counted: false,
        }
    }

    /// Whether a step can run, given a reason to.
    pub(crate) fn can_run(&self) -> bool {
        self.phase == KernelPhase::Ready && !self.held && self.pending.is_empty()
    }

    /// Whether something about the kernel is still under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.queued_on.is_some()
            || self.phase == KernelPhase::Running
            || !self.pending.is_empty()
            || self.held
    }

    /// Whether there is something that the kernel would do if it could.
    pub(crate) fn has_work(&self, mailbox: &Mailbox) -> bool {
        self.again || mailbox.len() > 0
    }

    /// Messages of the pending output.
    pub(crate) fn pending_messages(&self) -> usize {
        self.pending.iter().map(|output| output.parcels.len()).sum()
    }

    /// Gives what the running step took back to the kernel.
    pub(crate) fn undo_step(&mut self, mailbox: &Mailbox) {
        mailbox.put_back(std::mem::take(&mut self.in_flight));
        self.again |= std::mem::take(&mut self.asked);
    }

    pub(crate) fn device(&self) -> usize {
        self.home.runtime.index
    }
}

impl KernelCell {
    /// The kernel now; `running_for` is how long the fleet has existed.
    pub(crate) fn status(&self, running_for: Duration) -> KernelStatus {
        let run = self.run.lock();
        let steps = self.steps.load(Ordering::Relaxed);
        let last_step = Duration::from_millis(self.last_step_ms.load(Ordering::Relaxed));
        KernelStatus {
            kernel: self.id,
            device: run.device(),
            phase: run.phase.clone(),
            held: run.held,
            steps,
            since_last_step: (steps > 0).then(|| running_for.saturating_sub(last_step)),
            mailbox_depth: self.mailbox.len(),
            pending_output: run.pending_messages(),
            state_bytes: self.state_bytes,
        }
    }

    pub(crate) fn home_device(&self) -> usize {
        self.home_device.load(Ordering::Relaxed)
    }

    /// Why a kernel in this phase cannot be worked with; `Ok` while it can.
    pub(crate) fn usable(&self, phase: &KernelPhase) -> Result<(), FleetError> {
        let kernel = self.id;
        match phase {
            KernelPhase::Ready | KernelPhase::Running => Ok(()),
            KernelPhase::Failed(fault) => Err(FleetError::Failed { kernel, fault: fault.clone() }),
            KernelPhase::Lost { cause } => Err(FleetError::Lost { kernel, cause: cause.clone() }),
            KernelPhase::Removed => Err(FleetError::UnknownKernel { kernel }),
        }
    }
}
