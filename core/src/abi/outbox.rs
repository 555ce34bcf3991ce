//! The outbox: written by kernels, read by the host.

use super::{
    FLAG_FAULT, FLAG_RUN_AGAIN, HEADER_WORDS, SLOT_HEADER_WORDS, bytes_to_words, words_to_bytes,
};
use crate::error::StepFault;
use crate::message::{Payload, SHARED_BYTES};
use crate::program::Program;

/// Makes `words` an empty outbox for `program`, reusing its memory. Slot contents are not cleared.
pub fn begin(words: &mut Vec<u32>, program: &Program) {
    words.resize(program.outbox_words(), 0);
    words[..HEADER_WORDS].copy_from_slice(&[0, program.outbox_slots(), 0, 0]);
}

/// A writer for host functions: what the prelude's `send` is for other languages.
#[derive(Debug)]
pub struct OutboxWriter<'a> {
    words: &'a mut [u32],
    slot_words: usize,
    /// Payloads that are sent as they are, with the slots that stand for them.
    shared: Option<&'a mut Vec<(u32, Payload)>>,
}

impl<'a> OutboxWriter<'a> {
    /// Writes into an outbox that [`begin`] prepared for `program`.
    #[must_use]
    pub fn new(words: &'a mut [u32], program: &Program) -> Self {
        Self { words, slot_words: program.outbox_slot_words(), shared: None }
    }

    /// As [`new`](Self::new); payloads that can be shared go to `shared` and not into the outbox.
    pub(crate) fn sharing(
        words: &'a mut [u32],
        program: &Program,
        shared: &'a mut Vec<(u32, Payload)>,
    ) -> Self {
        Self { shared: Some(shared), ..Self::new(words, program) }
    }

    /// Takes a slot and returns its payload words, or `None` when the outbox is full; the overflow
    /// is counted and stops the kernel when the step ends.
    /// A length above the slot's payload is written as it is and stops the kernel likewise.
    pub fn slot(&mut self, port: u32, key: u32, tag: u32, length_bytes: u32) -> Option<&mut [u32]> {
        let taken = self.words[0];
        self.words[0] = taken.saturating_add(1);
        if taken >= self.words[1] {
            self.words[2] = self.words[2].saturating_add(1);
            return None;
        }
        let start = HEADER_WORDS + taken as usize * self.slot_words;
        let slot = &mut self.words[start..start + self.slot_words];
        slot[..SLOT_HEADER_WORDS].copy_from_slice(&[port, key, tag, length_bytes]);
        Some(&mut slot[SLOT_HEADER_WORDS..])
    }

    /// Sends whole words.
    pub fn send(&mut self, port: u32, key: u32, tag: u32, payload: &[u32]) {
        let length_bytes = u32::try_from(payload.len() * 4).unwrap_or(u32::MAX);
        if let Some(words) = self.slot(port, key, tag, length_bytes) {
            let fits = payload.len().min(words.len());
            words[..fits].copy_from_slice(&payload[..fits]);
        }
    }

    /// Sends a payload. A large one is shared and not copied: one that the step made, or one that it
    /// received ([`InboxMessage::payload`](super::inbox::InboxMessage::payload)).
    pub fn send_payload(&mut self, port: u32, key: u32, tag: u32, payload: &Payload) {
        let length_bytes = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let number = self.words[0];
        let Some(words) = self.slot(port, key, tag, length_bytes) else { return };
        // A payload that is too long stops the kernel by its length.
        if payload.len() > words.len() * 4 {
            return;
        }
        match &mut self.shared {
            Some(shared) if payload.len() >= SHARED_BYTES => shared.push((number, payload.clone())),
            _ => {
                let start = HEADER_WORDS + number as usize * self.slot_words + SLOT_HEADER_WORDS;
                let end = start + payload.len().div_ceil(4);
                bytes_to_words(payload.as_bytes(), &mut self.words[start..end]);
            }
        }
    }

    /// Asks for one more step.
    pub fn run_again(&mut self) {
        self.words[3] |= FLAG_RUN_AGAIN;
    }
}

/// One message that a step sent, checked against the program's ports. Slots are taken in any order
/// and mean nothing, so two messages are equal whatever slots they were in.
#[derive(Clone, Debug)]
pub struct SentMessage {
    /// Index of the out-port.
    pub port: u32,
    /// The key that orders the step's messages on the port.
    pub key: u32,
    /// Free for the program.
    pub tag: u32,
    /// The payload.
    pub payload: Vec<u8>,
    /// The outbox slot that it was in.
    pub slot: u32,
}

impl PartialEq for SentMessage {
    fn eq(&self, other: &Self) -> bool {
        let parts = |sent: &Self| (sent.port, sent.key, sent.tag);
        parts(self) == parts(other) && self.payload == other.payload
    }
}

impl Eq for SentMessage {}

/// What a step left in its outbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepOutput {
    /// The messages, sorted by port, then key.
    pub messages: Vec<SentMessage>,
    /// Whether the kernel asked for one more step.
    pub run_again: bool,
}

/// One message that a step sent: where it lies, and what was checked of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentSlot {
    pub(crate) port: u32,
    pub(crate) key: u32,
    pub(crate) tag: u32,
    pub(crate) length_bytes: u32,
    pub(crate) slot: u32,
}

impl SentSlot {
    /// The words of the payload, and what is left of the slot.
    pub(crate) fn payload<'a>(&self, words: &'a [u32], program: &Program) -> &'a [u32] {
        let slot_words = program.outbox_slot_words();
        let start = HEADER_WORDS + self.slot as usize * slot_words;
        &words[start + SLOT_HEADER_WORDS..start + slot_words]
    }
}

/// Reads an outbox and checks it.
///
/// # Errors
///
/// The fault that stops the kernel. Nothing of the outbox is to be delivered then.
pub fn read(words: &[u32], program: &Program) -> Result<StepOutput, StepFault> {
    let mut slots = Vec::new();
    let run_again = read_slots(words, program, &mut slots)?;
    let messages = slots.iter().map(|sent| {
        let mut payload = vec![0; sent.length_bytes as usize];
        words_to_bytes(sent.payload(words, program), &mut payload);
        let SentSlot { port, key, tag, slot, .. } = *sent;
        SentMessage { port, key, tag, payload, slot }
    });
    Ok(StepOutput { messages: messages.collect(), run_again })
}

/// Finds the messages of an outbox, sorted by port, then key, and checks them: the one place that
/// trusts nothing a kernel wrote. Returns whether the kernel asked for one more step. Allocates only
/// when `into` has never been as long.
pub(crate) fn read_slots(
    words: &[u32],
    program: &Program,
    into: &mut Vec<SentSlot>,
) -> Result<bool, StepFault> {
    into.clear();
    let [sent, _, overflow, flags, ..] = *words else {
        return Err(malformed(0, "the outbox is shorter than its header".to_owned()));
    };
    let (length, needed) = (words.len(), program.outbox_words());
    if length < needed {
        return Err(malformed(0, format!("the outbox has {length} words, it needs {needed}")));
    }
    if flags & FLAG_FAULT != 0 {
        #[expect(clippy::cast_possible_truncation, reason = "the code is sixteen bits")]
        let code = (flags >> 8) as u16;
        return Err(StepFault::Program { code, reason: String::new() });
    }
    let slots = program.outbox_slots();
    if sent > slots || overflow > 0 {
        let sent = u64::from(sent).max(u64::from(slots) + u64::from(overflow));
        return Err(StepFault::OutboxOverflow { sent, slots });
    }
    let slot_words = program.outbox_slot_words();
    for (index, slot) in (0..sent).zip(words[HEADER_WORDS..].chunks_exact(slot_words)) {
        into.push(read_slot(index, slot, program)?);
    }
    // Host functions mostly send in order, and looking is cheaper than sorting.
    let position = |sent: &SentSlot| (sent.port, sent.key);
    if !into.is_sorted_by_key(position) {
        into.sort_unstable_by_key(position);
    }
    if let Some(pair) = into.windows(2).find(|pair| position(&pair[0]) == position(&pair[1])) {
        let port = program.out_ports()[pair[0].port as usize].name.clone();
        return Err(StepFault::EqualKeys { port, key: pair[0].key });
    }
    Ok(flags & FLAG_RUN_AGAIN != 0)
}

fn read_slot(index: u32, slot: &[u32], program: &Program) -> Result<SentSlot, StepFault> {
    let (port, key, tag, length_bytes) = (slot[0], slot[1], slot[2], slot[3]);
    let Some(declared) = program.out_ports().get(port as usize) else {
        let ports = program.out_ports().len();
        return Err(malformed(index, format!("out-port {port}, the program has {ports}")));
    };
    if length_bytes > declared.max_message_bytes {
        return Err(malformed(
            index,
            format!(
                "{length_bytes} bytes on out-port `{}`, which allows {}",
                declared.name, declared.max_message_bytes
            ),
        ));
    }
    Ok(SentSlot { port, key, tag, length_bytes, slot: index })
}

fn malformed(slot: u32, reason: String) -> StepFault {
    StepFault::MalformedMessage { slot, reason }
}
