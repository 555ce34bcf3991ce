//! Digests of chunks of state, the same on every backend (`docs/kernel-abi.md`).

/// Bytes of state that one digest covers, unless a caller asks for another size.
pub const DEFAULT_CHUNK_BYTES: u64 = 256 << 10;

/// The digest of one chunk, its words given in order.
///
/// Finds accidents, not attacks. Costs four multiplications a word for each half.
///
/// ```
/// use hopwise_core::digest::chunk_digest;
///
/// assert_ne!(chunk_digest(&[1, 2]), chunk_digest(&[2, 1]));
/// assert_ne!(chunk_digest(&[0]), chunk_digest(&[0, 0]));
/// ```
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "the index wraps at 32 bits by definition")]
pub fn chunk_digest(words: &[u32]) -> u64 {
    let (mut low, mut high) = (0u32, 0u32);
    for (index, &word) in words.iter().enumerate() {
        let index = index as u32;
        let first = mix(word.wrapping_add(0x9e37_79b9)) ^ index.wrapping_mul(0x85eb_ca77);
        let second = mix(word ^ 0x27d4_eb2f).wrapping_add(index.wrapping_mul(0x1656_67b1));
        low = low.wrapping_add(mix(first));
        high = high.wrapping_add(mix(second));
    }
    (u64::from(high) << 32) | u64::from(low)
}

/// The digests of a whole state, chunk after chunk.
///
/// # Panics
///
/// When `chunk_bytes` is zero or not a multiple of four.
#[must_use]
pub fn state_digests(words: &[u32], chunk_bytes: u64) -> Vec<u64> {
    assert!(chunk_bytes > 0 && chunk_bytes.is_multiple_of(4), "chunks are whole words");
    let chunk_words = usize::try_from(chunk_bytes / 4).unwrap_or(usize::MAX);
    words.chunks(chunk_words).map(chunk_digest).collect()
}

/// The 32-bit finaliser of `MurmurHash3` (Austin Appleby, public domain).
const fn mix(mut hash: u32) -> u32 {
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_values_hold_for_ever() {
        // The finaliser's published fixed point and test value.
        assert_eq!(mix(0), 0);
        assert_eq!(mix(1), 0x514e_28b7);
        assert_eq!(state_digests(&[1, 2, 3], 8).len(), 2);
    }

    proptest! {
        #[test]
        fn any_single_change_or_swap_shows(
            words in prop::collection::vec(any::<u32>(), 1..200),
            at in any::<prop::sample::Index>(),
            with in any::<prop::sample::Index>(),
            value in any::<u32>(),
        ) {
            let (at, with) = (at.index(words.len()), with.index(words.len()));
            let mut changed = words.clone();
            changed[at] = value;
            prop_assert_eq!(chunk_digest(&changed) == chunk_digest(&words), changed == words);
            let mut swapped = words.clone();
            swapped.swap(at, with);
            prop_assert_eq!(chunk_digest(&swapped) == chunk_digest(&words), swapped == words);
            let mut longer = words.clone();
            longer.push(0);
            prop_assert_ne!(chunk_digest(&longer), chunk_digest(&words));
        }
    }
}
