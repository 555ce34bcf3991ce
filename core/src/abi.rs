//! The bytes that kernels see: constants, the inbox writer, the outbox reader.
//!
//! The format is described in `docs/kernel-abi.md`; this module is its only encoder and decoder on
//! the host side, shared by all backends.

pub mod inbox;
pub mod outbox;

/// Words of the inbox header and of the outbox header.
pub const HEADER_WORDS: usize = 4;

/// Words of a slot in front of its payload, in both boxes.
pub const SLOT_HEADER_WORDS: usize = 4;

/// Outbox flag: run one more step even if no message comes.
pub const FLAG_RUN_AGAIN: u32 = 1;

/// Outbox flag: the program gives up; bits 8 to 23 hold its own code.
pub const FLAG_FAULT: u32 = 1 << 31;

/// Parameters are padded to a multiple of this many words, and to at least as many.
pub const PARAMETER_ALIGN_WORDS: usize = 4;

/// The size of a slot whose payload is at most `max_message_bytes` bytes, in words.
#[must_use]
pub const fn slot_words(max_message_bytes: u32) -> usize {
    SLOT_HEADER_WORDS + max_message_bytes.div_ceil(4) as usize
}

/// Parameters as a kernel sees them: padded with zeros.
#[must_use]
pub fn padded_parameters(parameters: &[u32]) -> Vec<u32> {
    let words = parameters.len().max(1).next_multiple_of(PARAMETER_ALIGN_WORDS);
    let mut padded = parameters.to_vec();
    padded.resize(words, 0);
    padded
}

/// Copies bytes into words, little-endian, and zeroes what is left of the words.
///
/// # Panics
///
/// When there are more bytes than the words hold.
pub fn bytes_to_words(bytes: &[u8], words: &mut [u32]) {
    assert!(bytes.len() <= words.len() * 4, "the words hold the bytes");
    let (whole, rest) = bytes.as_chunks::<4>();
    for (word, chunk) in words.iter_mut().zip(whole) {
        *word = u32::from_le_bytes(*chunk);
    }
    let mut filled = whole.len();
    if !rest.is_empty() {
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        words[filled] = u32::from_le_bytes(last);
        filled += 1;
    }
    words[filled..].fill(0);
}

/// Copies words into bytes, little-endian; the last word may be cut.
///
/// # Panics
///
/// When there are more bytes than the words hold.
pub fn words_to_bytes(words: &[u32], bytes: &mut [u8]) {
    assert!(bytes.len() <= words.len() * 4, "the words hold the bytes");
    let (whole, rest) = bytes.as_chunks_mut::<4>();
    let filled = whole.len();
    for (chunk, word) in whole.iter_mut().zip(words) {
        *chunk = word.to_le_bytes();
    }
    if !rest.is_empty() {
        let last = words[filled].to_le_bytes();
        rest.copy_from_slice(&last[..rest.len()]);
    }
}
