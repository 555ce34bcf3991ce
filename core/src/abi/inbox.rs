//! The inbox: written by the host, read by kernels.

use super::{HEADER_WORDS, SLOT_HEADER_WORDS, bytes_to_words, words_to_bytes};
use crate::device::ReceivedPayload;
use crate::message::Payload;

/// Starts an inbox in `words`, reusing its memory: a header and no message.
pub fn begin(words: &mut Vec<u32>, slot_words: usize, step_number: u64, started: bool) {
    words.clear();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a slot is far below 2^32 words; of the step number the ABI carries the low half"
    )]
    words.extend_from_slice(&[0, slot_words as u32, step_number as u32, u32::from(started)]);
}

/// Appends one message. Allocates only when `words` has never been as long.
///
/// # Panics
///
/// When the payload exceeds the slot: channels are checked when they are bound.
pub fn push(words: &mut Vec<u32>, in_port: u32, tag: u32, channel_low: u32, payload: &[u8]) {
    let start = words.len();
    push_without_payload(words, in_port, tag, channel_low, payload.len());
    bytes_to_words(payload, &mut words[start + SLOT_HEADER_WORDS..]);
}

/// Appends one message to an inbox that has room for headers only, because all of its payloads are
/// read where they are. It was begun with slots of [`SLOT_HEADER_WORDS`].
pub(crate) fn push_header(
    words: &mut Vec<u32>,
    in_port: u32,
    tag: u32,
    channel_low: u32,
    length_bytes: usize,
) {
    debug_assert_eq!(words[1] as usize, SLOT_HEADER_WORDS, "the slots have no payload");
    let length_bytes = u32::try_from(length_bytes).expect("a payload fits its slot");
    words.extend_from_slice(&[in_port, tag, length_bytes, channel_low]);
    words[0] += 1;
}

/// Appends one message whose payload words stay zero, for whoever fills them in later.
///
/// # Panics
///
/// When the payload exceeds the slot: channels are checked when they are bound.
pub fn push_without_payload(
    words: &mut Vec<u32>,
    in_port: u32,
    tag: u32,
    channel_low: u32,
    length_bytes: usize,
) {
    let slot_words = words[1] as usize;
    assert!(length_bytes.div_ceil(4) + SLOT_HEADER_WORDS <= slot_words, "a payload fits its slot");
    let start = words.len();
    words.resize(start + slot_words, 0);
    let slot = &mut words[start..];
    slot[0] = in_port;
    slot[1] = tag;
    slot[2] = u32::try_from(length_bytes).expect("a payload fits its slot");
    slot[3] = channel_low;
    words[0] += 1;
}

/// A reader of an inbox, cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct InboxView<'a> {
    words: &'a [u32],
    /// Payloads that were left out, in the order of their messages.
    left_out: &'a [ReceivedPayload],
}

/// One message of an inbox.
#[derive(Clone, Copy, Debug)]
pub struct InboxMessage<'a> {
    /// Index of the in-port it came through.
    pub in_port: u32,
    /// The sender's tag.
    pub tag: u32,
    /// Low word of the sender's channel.
    pub channel_low: u32,
    /// Length of the payload in bytes.
    pub length_bytes: u32,
    /// The payload, zero-padded to the slot size.
    pub words: &'a [u32],
    shared: Option<&'a Payload>,
}

impl<'a> InboxMessage<'a> {
    /// The payload where it is shared and `words` lie in it: to be kept, or sent on without a copy.
    #[must_use]
    pub fn payload(&self) -> Option<&'a Payload> {
        self.shared
    }

    /// The payload as bytes: a copy.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.length_bytes as usize];
        words_to_bytes(self.words, &mut bytes);
        bytes
    }
}

impl<'a> InboxView<'a> {
    /// Reads an inbox that [`begin`] and [`push`] wrote.
    ///
    /// # Panics
    ///
    /// When the words are shorter than their own header says.
    #[must_use]
    pub fn new(words: &'a [u32]) -> Self {
        let needed = HEADER_WORDS + words[0] as usize * words[1] as usize;
        assert!(words.len() >= needed, "an inbox is as long as its header says");
        Self { words, left_out: &[] }
    }

    /// Reads an inbox of which these payloads were left out: they are read where they are.
    pub(crate) fn with_left_out(words: &'a [u32], left_out: &'a [ReceivedPayload]) -> Self {
        Self { left_out, ..Self::new(words) }
    }

    /// The words as they are, header and slots.
    #[must_use]
    pub fn words(&self) -> &'a [u32] {
        self.words
    }

    /// Number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words[0] as usize
    }

    /// Whether there is no message.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Step number, low 32 bits.
    #[must_use]
    pub fn step_number(&self) -> u32 {
        self.words[2]
    }

    /// Whether the step was asked for by *start* or *run again*.
    #[must_use]
    pub fn is_started(&self) -> bool {
        self.words[3] != 0
    }

    /// The messages in order of delivery.
    pub fn messages(self) -> impl Iterator<Item = InboxMessage<'a>> {
        let slot_words = self.words[1] as usize;
        let mut left_out = self.left_out.iter().peekable();
        let slots = self.words[HEADER_WORDS..].chunks_exact(slot_words).take(self.len());
        (0..).zip(slots).map(move |(number, slot)| {
            let here = left_out.next_if(|received| received.message == number);
            let shared = here.map(|received| &received.payload);
            InboxMessage {
                in_port: slot[0],
                tag: slot[1],
                length_bytes: slot[2],
                channel_low: slot[3],
                words: shared.and_then(Payload::as_words).unwrap_or(&slot[SLOT_HEADER_WORDS..]),
                shared,
            }
        })
    }
}
