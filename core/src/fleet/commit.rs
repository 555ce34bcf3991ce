//! The two ends of a step: taking its messages, and committing what it did in one action.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::kernel::{KernelCell, KernelPhase, RunState};
use super::mailbox::{Parcel, Waiters};
use super::router::RoutingDecision;
use super::runtime::Runtime;
use super::worker::DeviceRuntime;
use crate::abi::outbox::{SentMessage, StepOutput};
use crate::abi::{inbox, outbox};
use crate::device::{PayloadWay, ReceivedPayload, Step, StepOutcome, StepPayloads};
use crate::device_info::DeviceInfo;
use crate::error::{DeviceError, StepFault};
use crate::message::{DevicePayload, Message, Payload};

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
        let received = fill_inbox(device, &parcels, &mut inbox);
        outbox::begin(&mut outbox, &cell.program);
        run.in_flight = parcels;
        run.phase = KernelPhase::Running;
        let instance = Arc::clone(&run.home.instance);
        self.settle(cell, &mut run);
        drop(run);
        let mut step = Step::new(instance, inbox, outbox);
        step.payloads.received = received;
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
                Ok(output) => self.commit(device, cell, output, &step.payloads),
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
    fn commit(
        &self,
        device: &DeviceRuntime,
        cell: &Arc<KernelCell>,
        output: StepOutput,
        payloads: &StepPayloads,
    ) {
        let ways = self.ways(payloads);
        let mut run = cell.run.lock();
        if run.phase != KernelPhase::Running {
            return; // lost while the step ran: its messages are back in the mailbox
        }
        for (message, parcel) in (0..).zip(run.in_flight.drain(..)) {
            parcel.channel.note_delivered();
            if parcel.message.payload.on_device().is_some() {
                let way = ways.iter().find(|(received, _)| *received == message);
                parcel.channel.note_route(way.map_or(RoutingDecision::HostMediated, |way| way.1));
            }
        }
        run.asked = false;
        let unbound = number(cell, &mut run, output.messages, &payloads.kept);
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

    /// How the payloads came that the device filled in, as routes between devices of the fleet.
    fn ways(&self, payloads: &StepPayloads) -> Vec<(u32, RoutingDecision)> {
        let decision = |received: &ReceivedPayload| match &received.way {
            Some(PayloadWay::SameDevice) => RoutingDecision::SameDevice,
            Some(PayloadWay::Direct) => RoutingDecision::DirectP2P,
            Some(PayloadWay::Relayed { relay }) => {
                RoutingDecision::MultiHop { relay: self.device_in_domain(relay) }
            }
            Some(PayloadWay::Host) | None => RoutingDecision::HostMediated,
        };
        payloads.received.iter().map(|received| (received.message, decision(received))).collect()
    }

    /// The first device of a failure domain.
    fn device_in_domain(&self, domain: &str) -> Option<usize> {
        let devices = self.all_devices().into_iter();
        let is_in = |info: &DeviceInfo| info.failure_domain.as_deref() == Some(domain);
        devices.filter(|device| is_in(device.device.info())).map(|device| device.index).next()
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

/// Writes the messages of a step. Payloads that are on a device are left out where the step's device
/// fills them in.
fn fill_inbox(
    device: &DeviceRuntime,
    parcels: &[Parcel],
    inbox: &mut Vec<u32>,
) -> Vec<ReceivedPayload> {
    let takes_device_payloads = device.device.takes_device_payloads();
    let mut received = Vec::new();
    for (message, parcel) in (0..).zip(parcels) {
        let (channel, tag) = (&parcel.channel, parcel.message.tag);
        let (port, low_word) = (channel.to.in_port, channel.id.low_word());
        let payload = &parcel.message.payload;
        if takes_device_payloads && payload.on_device().is_some() {
            inbox::push_without_payload(inbox, port, tag, low_word, payload.len());
            received.push(ReceivedPayload { message, payload: payload.clone(), way: None });
        } else {
            inbox::push(inbox, port, tag, low_word, payload.as_bytes());
        }
    }
    received
}

/// Numbers what a step sent and appends it to the pending output. Returns what was sent on ports
/// that are bound to no channel.
fn number(
    cell: &KernelCell,
    run: &mut RunState,
    sent: Vec<SentMessage>,
    kept: &[(u32, Arc<dyn DevicePayload>)],
) -> Vec<SentMessage> {
    let outputs = cell.outputs.read();
    let mut unbound = Vec::new();
    for message in sent {
        match &outputs[message.port as usize] {
            Some(channel) => {
                let mut payload = Payload::from(message.payload);
                if let Some((_, copy)) = kept.iter().find(|(slot, _)| *slot == message.slot) {
                    payload = payload.with_copy_on_device(Arc::clone(copy));
                }
                run.pending.push_back(Parcel {
                    sequence: channel.next_sequence(),
                    channel: Arc::clone(channel),
                    message: Message::new(message.tag, payload),
                });
            }
            None => unbound.push(message),
        }
    }
    unbound
}
