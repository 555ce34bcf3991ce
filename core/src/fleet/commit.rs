//! The two ends of a step: taking its messages, and committing what it did in one action.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::kernel::{KernelCell, KernelPhase, RunState};
use super::mailbox::{Parcel, Waiters};
use super::runtime::Runtime;
use super::worker::DeviceRuntime;
use crate::abi::outbox::{SentMessage, StepOutput};
use crate::abi::{inbox, outbox};
use crate::device::{Step, StepOutcome};
use crate::error::{DeviceError, StepFault};
use crate::message::Message;

/// How often a step that a device did not start is tried before its kernel is stopped.
const MOST_ATTEMPTS: u32 = 3;

/// What a worker remembers of a step while it runs.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) cell: Arc<KernelCell>,
    /// Senders for whom there is room now.
    pub(crate) waiters: Waiters,
}

impl Runtime {
    /// Takes a kernel's messages and prepares its step, or finds that there is none to run.
    pub(crate) fn begin_step(
        &self,
        device: &DeviceRuntime,
        cell: &Arc<KernelCell>,
        spare: &mut Vec<(Vec<u32>, Vec<u32>)>,
    ) -> Option<(Ticket, Step)> {
        let mut run = cell.run.lock();
        if run.queued_on != Some(device.index) {
            return None; // an old entry: the kernel has been handed over, held or stopped since
        }
        run.queued_on = None;
        let mut parcels = std::mem::take(&mut run.in_flight);
        let mut waiters = Waiters::default();
        if run.can_run() {
            waiters = cell.mailbox.take(cell.program.inbox_slots() as usize, &mut parcels);
        }
        if parcels.is_empty() && !(run.can_run() && run.again) {
            self.settle(cell, &mut run);
            return None;
        }
        run.step_number += 1;
        run.asked = std::mem::take(&mut run.again);
        let (mut inbox, mut outbox) = spare.pop().unwrap_or_default();
        inbox::begin(&mut inbox, cell.program.inbox_slot_words(), run.step_number, run.asked);
        for parcel in &parcels {
            let channel = &parcel.channel;
            let payload = parcel.message.payload.as_bytes();
            let tag = parcel.message.tag;
            inbox::push(&mut inbox, channel.to.in_port, tag, channel.id.low_word(), payload);
        }
        outbox::begin(&mut outbox, &cell.program);
        run.in_flight = parcels;
        run.phase = KernelPhase::Running;
        let instance = Arc::clone(&run.home.instance);
        self.settle(cell, &mut run);
        drop(run);
        let step = Step { instance, inbox, outbox, outcome: StepOutcome::NotStarted };
        Some((Ticket { cell: Arc::clone(cell), waiters }, step))
    }

    /// Concludes a step by its outcome. `failure` is what the batch as a whole reported.
    pub(crate) fn end_step(
        &self,
        device: &Arc<DeviceRuntime>,
        ticket: &Ticket,
        step: &Step,
        failure: Option<&DeviceError>,
    ) {
        let cell = &ticket.cell;
        match &step.outcome {
            _ if failure.is_some_and(DeviceError::is_fatal) => {
                let cause = failure.map(ToString::to_string).unwrap_or_default();
                self.lose_kernel(cell, device.index, &cause);
            }
            StepOutcome::Applied => match outbox::read(&step.outbox, &cell.program) {
                Ok(output) => self.commit(device, cell, output),
                Err(fault) => self.fail_kernel(cell, fault),
            },
            StepOutcome::Faulted(fault) => self.fail_kernel(cell, fault.clone()),
            StepOutcome::NotStarted => self.retry(cell, failure),
            StepOutcome::Unknown => {
                let reason = failure.map(|error| format!(": {error}")).unwrap_or_default();
                let cause = format!("nobody knows whether its last step was applied{reason}");
                self.lose_kernel(cell, device.index, &cause);
            }
        }
    }

    /// Releases the inbox and makes the outbox the kernel's pending output, in one action.
    fn commit(&self, device: &DeviceRuntime, cell: &Arc<KernelCell>, output: StepOutput) {
        let mut run = cell.run.lock();
        if run.phase != KernelPhase::Running {
            return; // lost while the step ran: its messages are back in the mailbox
        }
        for parcel in run.in_flight.drain(..) {
            parcel.channel.note_delivered();
        }
        run.asked = false;
        let unbound = number(cell, &mut run, output.messages);
        run.again |= output.run_again;
        run.attempts = 0;
        cell.retries.store(false, Ordering::Relaxed);
        run.phase = KernelPhase::Ready;
        cell.steps.fetch_add(1, Ordering::Relaxed);
        device.steps.fetch_add(1, Ordering::Relaxed);
        self.steps.fetch_add(1, Ordering::Relaxed);
        let now_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        cell.last_step_ms.store(now_ms, Ordering::Relaxed);
        let delivers = !run.pending.is_empty();
        self.settle(cell, &mut run);
        drop(run);
        self.dead_letters.add_unbound(cell, unbound);
        if delivers {
            self.deliver_pending(cell);
        }
    }

    /// Returns a step that did not begin to where it was, to be tried again in a batch of its own,
    /// and stops the kernel when that happened too often.
    fn retry(&self, cell: &Arc<KernelCell>, failure: Option<&DeviceError>) {
        let mut run = cell.run.lock();
        if run.phase != KernelPhase::Running {
            return;
        }
        run.attempts += 1;
        if run.attempts < MOST_ATTEMPTS {
            run.undo_step(&cell.mailbox);
            run.step_number -= 1;
            cell.retries.store(true, Ordering::Relaxed);
            run.phase = KernelPhase::Ready;
            self.settle(cell, &mut run);
            return;
        }
        drop(run);
        let error = failure.cloned().unwrap_or_else(|| DeviceError::Driver {
            message: format!("the device did not start the step in {MOST_ATTEMPTS} attempts"),
        });
        self.fail_kernel(cell, StepFault::Device(error));
    }
}

/// Numbers what a step sent and appends it to the pending output. Returns what was sent on ports
/// that are bound to no channel.
fn number(cell: &KernelCell, run: &mut RunState, sent: Vec<SentMessage>) -> Vec<SentMessage> {
    let outputs = cell.outputs.read();
    let mut unbound = Vec::new();
    for message in sent {
        match &outputs[message.port as usize] {
            Some(channel) => run.pending.push_back(Parcel {
                sequence: channel.next_sequence(),
                channel: Arc::clone(channel),
                message: Message::new(message.tag, message.payload),
            }),
            None => unbound.push(message),
        }
    }
    unbound
}
