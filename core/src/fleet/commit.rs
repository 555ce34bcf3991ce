//! The two ends of a step: taking its messages, and committing what it did in one action.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::channel::Channel;
use super::effects::Effects;
use super::kernel::{KernelCell, KernelPhase, RunState};
use super::lanes::Parcel;
use super::router::{Outlet, RoutingDecision};
use super::runtime::Runtime;
use super::worker::{DeviceRuntime, Keep};
use crate::abi::outbox::SentSlot;
use crate::abi::{SLOT_HEADER_WORDS, inbox, outbox};
use crate::device::{PayloadWay, ReceivedPayload, Step, StepOutcome, StepPayloads};
use crate::device_info::DeviceInfo;
use crate::error::{DeviceError, StepFault};
use crate::message::{Message, Payload, SHARED_BYTES};

/// How often a step that a device did not start is tried before its kernel is stopped.
const MOST_ATTEMPTS: u32 = 3;

/// What a worker remembers of a step while it runs.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) cell: Arc<KernelCell>,
    /// What taking the step's messages asks for.
    pub(crate) effects: Effects,
}

/// Memory that a worker uses again for every step.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) boxes: Vec<(Vec<u32>, Vec<u32>)>,
    slots: Vec<SentSlot>,
    parcels: VecDeque<Parcel>,
}

impl Runtime {
    /// Takes a kernel's messages and prepares its step, or finds that there is none to run.
    pub(crate) fn begin_step(
        &self,
        device: &DeviceRuntime,
        cell: &Arc<KernelCell>,
        scratch: &mut Scratch,
    ) -> Option<(Ticket, Step)> {
        let mut run = cell.run.lock();
        if run.queued_on != Some(device.index) {
            return None; // an old entry: the kernel has been handed over, held or stopped since
        }
        run.queued_on = None;
        let mut parcels = std::mem::take(&mut run.in_flight);
        let mut effects = Effects::default();
        if run.can_run() {
            let most = cell.program.inbox_slots() as usize;
            effects = cell.mailbox.take(most, &mut parcels, &mut run.sources);
        }
        if parcels.is_empty() && !(run.can_run() && run.again) {
            self.settle(cell, &mut run);
            drop(run);
            self.follow(effects);
            return None;
        }
        run.step_number += 1;
        run.asked = std::mem::take(&mut run.again);
        let (mut inbox, mut outbox) = scratch.boxes.pop().unwrap_or_default();
        let received = fill_inbox(device, cell, &run, &parcels, &mut inbox);
        outbox::begin(&mut outbox, &cell.program);
        run.in_flight = parcels;
        run.phase = KernelPhase::Running;
        let instance = Arc::clone(&run.home.instance);
        self.settle(cell, &mut run);
        drop(run);
        let mut step = Step::new(instance, inbox, outbox);
        step.payloads.received = received;
        Some((Ticket { cell: Arc::clone(cell), effects }, step))
    }

    /// Concludes a step by its outcome; says whether the worker may go on with the kernel at once.
    /// `failure` is what the batch as a whole reported.
    pub(crate) fn end_step(
        &self,
        device: &Arc<DeviceRuntime>,
        ticket: &Ticket,
        step: &mut Step,
        end: &BatchEnd<'_>,
        scratch: &mut Scratch,
    ) -> Keep {
        let cell = &ticket.cell;
        match &step.outcome {
            _ if end.failure.is_some_and(DeviceError::is_fatal) => {
                let cause = end.failure.map(ToString::to_string).unwrap_or_default();
                self.lose_kernel(cell, device.index, &cause);
            }
            StepOutcome::Applied => {
                match outbox::read_slots(&step.outbox, &cell.program, &mut scratch.slots) {
                    Ok(again) => return self.commit(device, cell, step, again, end, scratch),
                    Err(fault) => self.fail_kernel(cell, fault),
                }
            }
            StepOutcome::Faulted(fault) => self.fail_kernel(cell, fault.clone()),
            StepOutcome::NotStarted => self.retry(cell, end.failure),
            StepOutcome::Unknown => {
                let reason = end.failure.map(|error| format!(": {error}")).unwrap_or_default();
                let cause = format!("nobody knows whether its last step was applied{reason}");
                self.lose_kernel(cell, device.index, &cause);
            }
        }
        Keep::No
    }

    /// Releases the inbox, makes the outbox the kernel's output and delivers what of it finds room,
    /// in one action.
    fn commit(
        &self,
        device: &Arc<DeviceRuntime>,
        cell: &Arc<KernelCell>,
        step: &mut Step,
        run_again: bool,
        end: &BatchEnd<'_>,
        scratch: &mut Scratch,
    ) -> Keep {
        let mut run = cell.run.lock();
        if run.phase != KernelPhase::Running {
            return Keep::No; // lost while the step ran: its messages are back in the mailbox
        }
        self.release_inbox(&mut run, &step.payloads);
        run.asked = false;
        let mut effects = Effects::default();
        let unbound = self.send_output(cell, &mut run, step, scratch, &mut effects);
        run.again |= run_again;
        run.attempts = 0;
        cell.retries.store(false, Ordering::Relaxed);
        run.phase = KernelPhase::Ready;
        cell.steps.fetch_add(1, Ordering::Relaxed);
        device.steps.fetch_add(1, Ordering::Relaxed);
        let since_start = end.at.saturating_duration_since(self.started).as_millis();
        let now_ms = u64::try_from(since_start).unwrap_or(u64::MAX);
        cell.last_step_ms.store(now_ms, Ordering::Relaxed);
        let keep = device.keep(cell, &mut run, end.is_free);
        self.settle(cell, &mut run);
        drop(run);
        if !unbound.is_empty() {
            self.dead_letters.add_unbound(cell, unbound);
        }
        if !effects.is_empty() {
            self.follow(effects);
        }
        keep
    }

    /// Counts the messages of a committed step as delivered, and which way their bytes came.
    fn release_inbox(&self, run: &mut RunState, payloads: &StepPayloads) {
        let RunState { in_flight, sources, .. } = run;
        let ways = self.ways(payloads);
        for (message, parcel) in (0..).zip(&*in_flight) {
            if parcel.message.payload.on_device().is_some() {
                let way = ways.iter().find(|(received, _)| *received == message);
                let way = way.map_or(RoutingDecision::HostMediated, |way| way.1);
                sources[parcel.source as usize].note_route(way, 1);
            }
        }
        for of_one in in_flight.chunk_by(|first, second| first.source == second.source) {
            sources[of_one[0].source as usize].note_delivered(of_one.len() as u64);
        }
        in_flight.clear();
    }

    /// Numbers what a step sent and delivers what finds room. Returns what was sent on ports that
    /// are bound to no channel.
    fn send_output(
        &self,
        cell: &Arc<KernelCell>,
        run: &mut RunState,
        step: &mut Step,
        scratch: &mut Scratch,
        effects: &mut Effects,
    ) -> Vec<(u32, Message)> {
        let mut unbound = Vec::new();
        if scratch.slots.is_empty() {
            return unbound;
        }
        let outputs = cell.outputs.read();
        let Scratch { slots, parcels, .. } = scratch;
        for of_port in slots.chunk_by(|first, second| first.port == second.port) {
            let port = of_port[0].port;
            let messages = of_port.iter().map(|sent| message(sent, step, cell));
            match &outputs[port as usize] {
                Some(outlet) => {
                    pack(outlet, messages, parcels);
                    effects.append(self.send(outlet, parcels, cell, run));
                }
                None => unbound.extend(messages.map(|message| (port, message))),
            }
        }
        unbound
    }

    /// How the payloads came that the device filled in, as routes between devices of the fleet.
    fn ways(&self, payloads: &StepPayloads) -> Vec<(u32, RoutingDecision)> {
        if payloads.received.is_empty() {
            return Vec::new();
        }
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

/// How a batch ended.
#[derive(Debug)]
pub(crate) struct BatchEnd<'a> {
    pub(crate) at: Instant,
    /// What the batch as a whole reported.
    pub(crate) failure: Option<&'a DeviceError>,
    /// Whether the worker has nothing else to do yet.
    pub(crate) is_free: bool,
}

/// Writes the messages of a step. Payloads are left out where the step's device fills them in, or
/// its kernels read them where they are.
fn fill_inbox(
    device: &DeviceRuntime,
    cell: &KernelCell,
    run: &RunState,
    parcels: &[Parcel],
    inbox: &mut Vec<u32>,
) -> Vec<ReceivedPayload> {
    let slot_words = cell.program.inbox_slot_words();
    let in_place = |payload: &Payload| {
        device.reads_in_place
            && payload.len() >= SHARED_BYTES
            && payload.as_words().is_some_and(|words| words.len() + SLOT_HEADER_WORDS == slot_words)
    };
    let left_out = |payload: &Payload| {
        in_place(payload) || device.keeps_payloads && payload.on_device().is_some()
    };
    // Slots without room for a payload need not be cleared.
    let headers_only = !parcels.is_empty()
        && device.reads_in_place
        && parcels.iter().all(|parcel| in_place(&parcel.message.payload));
    let slot_words = if headers_only { SLOT_HEADER_WORDS } else { slot_words };
    inbox::begin(inbox, slot_words, run.step_number, run.asked);
    let mut received = Vec::new();
    for (number, parcel) in (0..).zip(parcels) {
        let (channel, Message { tag, payload, .. }) =
            (&run.sources[parcel.source as usize], &parcel.message);
        let (port, low_word) = (channel.in_port, channel.id.low_word());
        if !left_out(payload) {
            inbox::push(inbox, port, *tag, low_word, payload.as_bytes());
            continue;
        }
        if headers_only {
            inbox::push_header(inbox, port, *tag, low_word, payload.len());
        } else {
            inbox::push_without_payload(inbox, port, *tag, low_word, payload.len());
        }
        received.push(ReceivedPayload { message: number, payload: payload.clone(), way: None });
    }
    received
}

/// One message of an outbox.
fn message(sent: &SentSlot, step: &Step, cell: &KernelCell) -> Message {
    let StepPayloads { shared, kept, .. } = &step.payloads;
    let shared = shared.iter().find(|(slot, _)| *slot == sent.slot);
    let mut payload = match shared {
        Some((_, payload)) => payload.clone(),
        None => {
            let words = sent.payload(&step.outbox, &cell.program);
            Payload::from_slot(words, sent.length_bytes as usize)
        }
    };
    if let Some((_, copy)) = kept.iter().find(|(slot, _)| *slot == sent.slot) {
        payload = payload.with_copy_on_device(Arc::clone(copy));
    }
    Message::new(sent.tag, payload)
}

/// Numbers messages of one channel.
fn pack(
    outlet: &Outlet,
    messages: impl ExactSizeIterator<Item = Message>,
    into: &mut VecDeque<Parcel>,
) {
    let (channel, options): (&Channel, _) = (&outlet.channel, outlet.options);
    let first = channel.next_sequences(options.priority, messages.len() as u64);
    into.extend((first..).zip(messages).map(|(sequence, message)| {
        let mut message = message.with_priority(options.priority);
        if let Some(time) = options.time_to_live {
            message = message.with_time_to_live(time);
        }
        Parcel { sequence, source: outlet.source, message }
    }));
}
