//! Payloads of a batch that are fetched from where they are, and those that stay on the device.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hopwise_core::abi::{HEADER_WORDS, SLOT_HEADER_WORDS};
use hopwise_core::device::{PayloadWay, Step, StepOutcome};
use hopwise_core::error::DeviceError;
use hopwise_core::message::DevicePayload;

use super::Bench;
use super::plan::Plan;
use crate::context::Entered;
use crate::core::DeviceCore;
use crate::payload::KeptPayload;
use crate::peer::PeerPath;

/// A payload of a step that has a copy on a device, held until the batch has ended.
pub(super) struct HeldPayload {
    position: usize,
    received: usize,
    message: u32,
    bytes: usize,
    copy: Arc<dyn DevicePayload>,
}

/// The payloads of the steps that have a copy on a device.
pub(super) fn held_payloads(steps: &[Step]) -> Vec<HeldPayload> {
    let mut held = Vec::new();
    for (position, step) in steps.iter().enumerate() {
        for (received, payload) in step.payloads.received.iter().enumerate() {
            let (message, bytes) = (payload.message, payload.payload.len());
            // Whole words are fetched; a payload that ends within a word comes with the rest.
            let copy = payload.payload.on_device().filter(|_| bytes >= 4 && bytes % 4 == 0);
            held.extend(copy.map(|copy| {
                let copy = Arc::clone(copy);
                HeldPayload { position, received, message, bytes, copy }
            }));
        }
    }
    held
}

/// A payload that is fetched from where it is instead of being uploaded.
pub(super) struct Fetched<'a> {
    position: usize,
    received: usize,
    payload: &'a KeptPayload,
    path: PeerPath,
    /// Where it belongs in the batch's memory.
    at: usize,
    bytes: usize,
}

/// The payloads that can be fetched from where they are, in the order of their places.
pub(super) fn fetched<'a>(
    plan: &Plan<'_>,
    core: &DeviceCore,
    held: &'a [HeldPayload],
) -> Vec<Fetched<'a>> {
    let mut all = Vec::new();
    for held in held {
        let planned = plan.planned.iter().find(|planned| planned.position == held.position);
        let kept = held.copy.as_any().downcast_ref::<KeptPayload>();
        let Some((planned, payload)) = planned.zip(kept) else { continue };
        let Some(path) = payload.path_to(core) else { continue };
        let slot_words = planned.instance.program.program.inbox_slot_words();
        let word = HEADER_WORDS + held.message as usize * slot_words + SLOT_HEADER_WORDS;
        let (position, received, bytes) = (held.position, held.received, held.bytes);
        let at = planned.inbox_at + word * 4;
        all.push(Fetched { position, received, payload, path, at, bytes });
    }
    all.sort_unstable_by_key(|fetched| fetched.at);
    all
}

/// Tells each received payload how it came. What was fetched from a GPU that is lost by now may be
/// anything: nobody knows what the step made of it.
pub(super) fn note_ways(steps: &mut [Step], fetched: &[Fetched<'_>], ways: Vec<PayloadWay>) {
    for fetched in fetched.iter().filter(|fetched| !fetched.payload.is_there()) {
        steps[fetched.position].outcome = StepOutcome::Unknown;
    }
    for received in steps.iter_mut().flat_map(|step| &mut step.payloads.received) {
        received.way = Some(PayloadWay::Host);
    }
    for (fetched, way) in fetched.iter().zip(ways) {
        steps[fetched.position].payloads.received[fetched.received].way = Some(way);
    }
}

impl Bench {
    /// Puts into the stream what the kernels receive: what is fetched from where it is, and the rest
    /// in one upload, or in the pieces between. What cannot be fetched after all is uploaded.
    pub(super) fn bring(
        &self,
        entered: &Entered<'_>,
        plan: &Plan<'_>,
        fetched: &[Fetched<'_>],
    ) -> Result<Vec<PayloadWay>, DeviceError> {
        let mut ways = Vec::with_capacity(fetched.len());
        let mut uploaded = 0;
        for Fetched { payload, path, at, bytes, .. } in fetched {
            let to = self.arena.address() + *at as u64;
            // SAFETY: the place lies in the arena, which is this batch's; the payload is held until
            // the batch has ended.
            let way = unsafe { payload.fetch(path, entered, &self.stream, to, *bytes as u64) };
            match way {
                Ok(way) => {
                    self.upload_range(entered, uploaded..*at)?;
                    uploaded = at + bytes;
                    ways.push(way);
                }
                Err(error) if !entered.context.health().is_working() => return Err(error),
                // A GPU that does not respond may still write to this place.
                Err(error) if payload.may_go_on() || path.may_go_on() => {
                    self.is_tainted.store(true, Ordering::Relaxed);
                    return Err(error);
                }
                Err(_) => ways.push(PayloadWay::Host),
            }
        }
        self.upload_range(entered, uploaded..plan.upload_bytes)?;
        Ok(ways)
    }

    fn upload_range(&self, entered: &Entered<'_>, range: Range<usize>) -> Result<(), DeviceError> {
        if range.is_empty() {
            return Ok(());
        }
        let to = self.arena.address() + range.start as u64;
        let from = self.upload.pointer().wrapping_byte_add(range.start);
        // SAFETY: arena and page-locked memory are that large, belong to this batch, and are not
        // touched until the stream has passed.
        unsafe { self.stream.upload(entered, to, from, range.len()) }
    }

    /// Keeps copies of large payloads on the device. The steps are applied: what fails now costs the
    /// copies only, unless it is the device.
    pub(super) fn keep_payloads(
        &self,
        entered: &Entered<'_>,
        core: &Arc<DeviceCore>,
        plan: &Plan<'_>,
        steps: &mut [Step],
    ) -> Result<(), DeviceError> {
        let mut is_any = false;
        for planned in &plan.planned {
            let step = &mut steps[planned.position];
            let program = &planned.instance.program.program;
            let slot_words = program.outbox_slot_words();
            let sent = step.outbox[0].min(program.outbox_slots());
            let most_bytes = (slot_words - SLOT_HEADER_WORDS) * 4;
            for (slot, words) in (0..sent).zip(step.outbox[HEADER_WORDS..].chunks_exact(slot_words))
            {
                let bytes = words[3];
                if bytes as usize > most_bytes || !core.payloads.keeps(bytes) {
                    continue;
                }
                let at = planned.slots_at + (slot as usize * slot_words + SLOT_HEADER_WORDS) * 4;
                let from = self.arena.address() + at as u64;
                // SAFETY: the slot lies in the arena, which is kept until the stream has passed.
                let copy = unsafe { KeptPayload::copied(core, entered, &self.stream, from, bytes) };
                step.payloads.kept.extend(copy.map(|copy| (slot, copy)));
                is_any = true;
            }
        }
        if !is_any {
            return Ok(());
        }
        let ended = self.stream.wait(entered).or_else(|_| self.stream.drain(entered));
        if ended.is_err() {
            steps.iter_mut().for_each(|step| step.payloads.kept.clear());
        }
        ended
    }
}
