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
    let (filled, rest) = words.split_at_mut(bytes.len().div_ceil(4));
    // The last word may be filled in part only.
    if let Some(last) = filled.last_mut() {
        *last = 0;
    }
    bytemuck::cast_slice_mut(filled)[..bytes.len()].copy_from_slice(bytes);
    from_little_endian(filled);
    rest.fill(0);
}

/// Copies words into bytes, little-endian; the last word may be cut.
///
/// # Panics
///
/// When there are more bytes than the words hold.
pub fn words_to_bytes(words: &[u32], bytes: &mut [u8]) {
    assert!(bytes.len() <= words.len() * 4, "the words hold the bytes");
    if cfg!(target_endian = "little") {
        bytes.copy_from_slice(&bytemuck::cast_slice(words)[..bytes.len()]);
        return;
    }
    for (chunk, word) in bytes.chunks_mut(4).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
    }
}

/// Makes numbers of words whose bytes are in the order of the ABI. Costs nothing where that is the
/// machine's own.
fn from_little_endian(words: &mut [u32]) {
    if cfg!(target_endian = "big") {
        words.iter_mut().for_each(|word| *word = u32::from_le(*word));
    }
}
