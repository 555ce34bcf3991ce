//! The two ends of a step: taking its messages, and committing what it did in one action.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::effects::Effects;
use super::kernel::{KernelCell, KernelPhase, RunState};
use super::lanes::Parcel;
use super::output::{self, Output};
use super::router::RoutingDecision;
use super::runtime::Runtime;
use super::worker::{DeviceRuntime, Keep};
use crate::abi::{SLOT_HEADER_WORDS, inbox, outbox};
use crate::device::{PayloadWay, ReceivedPayload, Step, StepOutcome, StepPayloads};
use crate::device_info::DeviceInfo;
use crate::error::{DeviceError, StepFault};
use crate::message::{Message, Payload, SHARED_BYTES};

/// Most steps in a row that are committed together, and how many messages may be gathered before the
/// last of them: what one commit costs is then little beside them, and few wait for it.
const MOST_CHAINED: u32 = 64;
const MOST_GATHERED: usize = 64;

const UNKNOWN: &str = "nobody knows whether its last step was applied";

/// How often a step that a device did not start is tried before its kernel is stopped.
const MOST_ATTEMPTS: u32 = 3;

/// What a worker remembers of a step while it runs.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) cell: Arc<KernelCell>,
    /// What taking the step's messages asks for.
    pub(crate) effects: Effects,
    step_number: u64,
    /// Steps that have begun after the first, without a commit between them.
    chained: u32,
    /// Whether the present step's output has been gathered.
    is_read: bool,
    /// Whether it asked for one more.
    again: bool,
}

impl Ticket {
    /// Gathers what the present step sent, if it was applied. Output that makes no sense is its fault.
    pub(crate) fn read(&mut self, step: &mut Step, output: &mut Output) {
        if self.is_read || step.outcome != StepOutcome::Applied {
            return;
        }
        match output.gather(step, &self.cell.program) {
            Ok(again) => (self.is_read, self.again) = (true, again),
            Err(fault) => step.outcome = StepOutcome::Faulted(fault),
        }
    }

    /// Whether the kernel asked for one more step, which nothing speaks against running at once.
    pub(crate) fn may_chain(&self, step: &Step, output: &Output) -> bool {
        self.is_read
            && self.again
            && output.steps < MOST_CHAINED
            && output.messages < MOST_GATHERED
            && step.payloads.received.is_empty()
            && self.cell.mailbox.len() == 0
    }

    /// Prepares one more step of the kernel.
    pub(crate) fn chain(&mut self, step: &mut Step) {
        let program = &self.cell.program;
        self.chained += 1;
        self.is_read = false;
        let number = self.step_number + u64::from(self.chained);
        inbox::begin(&mut step.inbox, program.inbox_slot_words(), number, true);
        outbox::begin(&mut step.outbox, program);
        step.payloads.shared.clear();
        step.payloads.kept.clear();
        step.outcome = StepOutcome::NotStarted;
    }
}

/// Boxes that a worker uses again.
pub(crate) type Boxes = Vec<(Vec<u32>, Vec<u32>)>;

impl Runtime {
    /// Takes a kernel's messages and prepares its step, or finds that there is none to run.
    pub(crate) fn begin_step(
        &self,
        device: &DeviceRuntime,
        cell: &Arc<KernelCell>,
        boxes: &mut Boxes,
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
        let (mut inbox, mut outbox) = boxes.pop().unwrap_or_default();
        let received = fill_inbox(device, cell, &run, &parcels, &mut inbox);
        outbox::begin(&mut outbox, &cell.program);
        run.in_flight = parcels;
        run.phase = KernelPhase::Running;
        let (instance, step_number) = (Arc::clone(&run.home.instance), run.step_number);
        self.settle(cell, &mut run);
        drop(run);
        let mut step = Step::new(instance, inbox, outbox);
        step.payloads.received = received;
        let cell = Arc::clone(cell);
        let ticket =
            Ticket { cell, effects, step_number, chained: 0, is_read: false, again: false };
        Some((ticket, step))
    }

    /// Concludes the steps of a ticket by the outcome of the last; says whether the worker may go on
    /// with the kernel at once.
    pub(crate) fn end_step(
        &self,
        device: &Arc<DeviceRuntime>,
        ticket: &mut Ticket,
        step: &mut Step,
        end: &BatchEnd<'_>,
        output: &mut Output,
    ) -> Keep {
        ticket.read(step, output);
        let cell = &ticket.cell;
        let is_lost = end.failure.is_some_and(DeviceError::is_fatal);
        if is_lost || step.outcome == StepOutcome::Unknown {
            output.clear();
            let reason = end.failure.map(ToString::to_string);
            let cause = match reason {
                Some(reason) if is_lost => reason,
                Some(reason) => format!("{UNKNOWN}: {reason}"),
                None => UNKNOWN.to_owned(),
            };
            self.lose_kernel(cell, device.index, &cause);
            return Keep::No;
        }
        let keep = if output.steps > 0 {
            self.commit(device, ticket, step, end, output)
        } else {
            Keep::No
        };
        match &step.outcome {
            StepOutcome::Faulted(fault) => self.fail_kernel(cell, fault.clone()),
            StepOutcome::NotStarted => self.retry(cell, end.failure),
            StepOutcome::Applied | StepOutcome::Unknown => {}
        }
        keep
    }

    /// Releases the inbox, makes what was gathered the kernel's output and delivers what of it finds
    /// room, in one action. If the last step was not applied, it is what runs from here on.
    fn commit(
        &self,
        device: &Arc<DeviceRuntime>,
        ticket: &Ticket,
        step: &Step,
        end: &BatchEnd<'_>,
        output: &mut Output,
    ) -> Keep {
        let cell = &ticket.cell;
        let steps = u64::from(output.steps);
        let mut run = cell.run.lock();
        if run.phase != KernelPhase::Running {
            output.clear();
            return Keep::No; // lost while the step ran: its messages are back in the mailbox
        }
        self.release_inbox(&mut run, &step.payloads);
        run.step_number += u64::from(ticket.chained);
        let mut effects = Effects::default();
        let unbound = self.send_output(cell, &mut run, output, &mut effects);
        run.attempts = 0;
        cell.retries.store(false, Ordering::Relaxed);
        cell.steps.fetch_add(steps, Ordering::Relaxed);
        device.steps.fetch_add(steps, Ordering::Relaxed);
        let since_start = end.at.saturating_duration_since(self.started).as_millis();
        let now_ms = u64::try_from(since_start).unwrap_or(u64::MAX);
        cell.last_step_ms.store(now_ms, Ordering::Relaxed);
        let mut keep = Keep::No;
        if step.outcome == StepOutcome::Applied {
            run.asked = false;
            run.again |= ticket.again;
            run.phase = KernelPhase::Ready;
            keep = device.keep(cell, &mut run, end.is_free);
        } else {
            run.asked = true; // as every step of a chain after the first
        }
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
        let mut left = in_flight.iter().map(|parcel| parcel.source).peekable();
        while let Some(source) = left.next() {
            let more = std::iter::from_fn(|| left.next_if_eq(&source)).count();
            sources[source as usize].note_delivered(1 + more as u64);
        }
        in_flight.clear();
    }

    /// Numbers what was gathered and delivers what finds room. Returns what was sent on ports that
    /// are bound to no channel.
    fn send_output(
        &self,
        cell: &Arc<KernelCell>,
        run: &mut RunState,
        output: &mut Output,
        effects: &mut Effects,
    ) -> Vec<(u32, Message)> {
        let mut unbound = Vec::new();
        if output.messages == 0 {
            output.clear();
            return unbound;
        }
        let outputs = cell.outputs.read();
        for (port, parcels) in output.take() {
            match &outputs[port as usize] {
                Some(outlet) => {
                    output::number(parcels, outlet);
                    effects.append(self.send(outlet, parcels, cell, run));
                }
                None => unbound.extend(parcels.drain(..).map(|parcel| (port, parcel.message))),
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
    parcels: &VecDeque<Parcel>,
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
