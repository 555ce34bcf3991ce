//! Reading, writing and digesting state.

use proptest::prelude::*;

use super::programs;
use super::subject::{Subject, property, to_bytes, to_words};
use crate::device::{Device, InitialState, InstanceRequest, KernelInstance};
use crate::digest;
use crate::error::TransferError;

/// Size of a large state, where the device has room: beyond one binding of software Vulkan.
const LARGE_STATE_BYTES: u64 = 192 << 20;

pub(super) fn initial_states_are_as_asked(subject: &Subject) {
    property(24, words(1..300), |words| {
        let bytes = to_bytes(&words);
        let zeroed = create(&*subject.device, bytes.len() as u64, InitialState::Zeroed);
        prop_assert_eq!(zeroed.state_bytes(), bytes.len() as u64);
        prop_assert!(read_all(&*zeroed).iter().all(|byte| *byte == 0));
        let given = create(&*subject.device, bytes.len() as u64, InitialState::Bytes(&bytes));
        prop_assert_eq!(&read_all(&*given), &bytes);
        let open = create(&*subject.device, bytes.len() as u64, InitialState::Undefined);
        open.write_state(0, &bytes).expect("the whole state can be written");
        prop_assert_eq!(&read_all(&*open), &bytes);
        Ok(())
    });
}

pub(super) fn reads_and_writes_agree_with_a_model(subject: &Subject) {
    let any_range = || (any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let accesses = prop::collection::vec((any_range(), any_range(), any::<u8>()), 1..12);
    property(24, (words(1..300), accesses), |(words, accesses)| {
        let mut model = to_bytes(&words);
        let size = model.len() as u64;
        let instance = create(&*subject.device, size, InitialState::Bytes(&model));
        for (written, read, seed) in accesses {
            let range = range_of(written, words.len());
            let bytes: Vec<u8> = (0..range.len()).map(|index| pattern(index, seed)).collect();
            model[range.clone()].copy_from_slice(&bytes);
            instance.write_state(range.start as u64, &bytes).expect("the range is right");
            let range = range_of(read, words.len());
            let mut found = vec![0xa5; range.len()];
            instance.read_state(range.start as u64, &mut found).expect("the range is right");
            prop_assert_eq!(&found, &model[range]);
        }
        prop_assert_eq!(&read_all(&*instance), &model);
        Ok(())
    });
}

pub(super) fn wrong_ranges_are_refused(subject: &Subject) {
    let state_bytes = 64;
    let bytes: Vec<u8> = (0..64).collect();
    let instance = create(&*subject.device, state_bytes, InitialState::Bytes(&bytes));
    for (offset_bytes, length_bytes) in [(2, 4), (1, 0), (0, 6), (60, 3), (66, 4)] {
        let refusal = TransferError::Misaligned { offset_bytes, length_bytes };
        refuses(&*instance, offset_bytes, length_bytes, &refusal);
    }
    for (offset_bytes, length_bytes) in
        [(64, 4), (60, 8), (0, 68), (68, 0), (1 << 32, 4), (u64::MAX - 3, 4), (u64::MAX - 3, 0)]
    {
        let refusal = TransferError::OutOfRange { offset_bytes, length_bytes, state_bytes };
        refuses(&*instance, offset_bytes, length_bytes, &refusal);
    }
    for offset_bytes in [0, 32, 64] {
        assert_eq!(instance.read_state(offset_bytes, &mut []), Ok(()), "nothing can be read");
        assert_eq!(instance.write_state(offset_bytes, &[]), Ok(()), "nothing can be written");
    }
    assert_eq!(read_all(&*instance), bytes, "a refused write changes nothing");
}

pub(super) fn digests_agree_with_the_definition(subject: &Subject) {
    property(24, (words(1..600), 1..700u64), |(words, chunk_words)| {
        let bytes = to_bytes(&words);
        let size = bytes.len() as u64;
        let instance = create(&*subject.device, size, InitialState::Bytes(&bytes));
        let found = instance.chunk_digests(chunk_words * 4).expect("the chunk size is right");
        prop_assert_eq!(found, digest::state_digests(&words, chunk_words * 4));
        let found = instance.chunk_digests(4).expect("the chunk size is right");
        prop_assert_eq!(found, digest::state_digests(&words, 4), "one word a chunk");
        Ok(())
    });
    let instance = create(&*subject.device, 64, InitialState::Zeroed);
    for chunk_bytes in [0, 1, 6, u64::MAX] {
        let refused = instance.chunk_digests(chunk_bytes);
        assert_eq!(refused, Err(TransferError::ChunkSize { chunk_bytes }));
    }
    let whole = instance.chunk_digests(u64::MAX - 3).expect("a chunk may exceed the state");
    assert_eq!(whole, digest::state_digests(&[0; 16], 64));
}

pub(super) fn large_states_have_wide_offsets(subject: &Subject) {
    let memory = subject.device.memory().expect("the device works");
    let room = (memory.available_bytes / 2).min(subject.device.limits().max_state_bytes);
    let size = LARGE_STATE_BYTES.min(room) / 4096 * 4096;
    let chunk_bytes = 1 << 20;
    if size < chunk_bytes {
        eprintln!("large states not tried: there is room for {size} bytes only");
        return;
    }
    let instance = create(&*subject.device, size, InitialState::Zeroed);
    let marks = [0, size / 2 - 4, (size * 2 / 3) / 4 * 4, size - 8];
    for (mark, seed) in marks.into_iter().zip(1u32..) {
        instance.write_state(mark, &to_bytes(&[seed, !seed])).expect("the range is right");
    }
    for (mark, seed) in marks.into_iter().zip(1u32..) {
        let mut found = [0; 8];
        instance.read_state(mark, &mut found).expect("the range is right");
        assert_eq!(to_words(&found), [seed, !seed], "at byte {mark} of {size}");
    }
    let found = instance.chunk_digests(chunk_bytes).expect("the chunk size is right");
    for (chunk, found) in found.iter().enumerate() {
        let start = chunk as u64 * chunk_bytes;
        let mut bytes = vec![0; usize::try_from(chunk_bytes.min(size - start)).unwrap_or(0)];
        instance.read_state(start, &mut bytes).expect("the range is right");
        let expected = digest::chunk_digest(&to_words(&bytes));
        assert_eq!(*found, expected, "chunk {chunk} of {size} bytes");
    }
    assert_eq!(found.len() as u64, size.div_ceil(chunk_bytes));
}

fn refuses(instance: &dyn KernelInstance, offset: u64, length: u64, refusal: &TransferError) {
    let mut bytes = vec![0xee; usize::try_from(length).expect("the lengths tried are small")];
    assert_eq!(instance.write_state(offset, &bytes).as_ref(), Err(refusal));
    assert_eq!(instance.read_state(offset, &mut bytes).as_ref(), Err(refusal));
    assert!(bytes.iter().all(|byte| *byte == 0xee), "a refused read gives nothing");
}

fn create(
    device: &dyn Device,
    state_bytes: u64,
    initial: InitialState<'_>,
) -> std::sync::Arc<dyn KernelInstance> {
    let compiled = device.compile(&programs::fold()).expect("the suite's programs fit");
    let request = InstanceRequest { parameters: &[], state_bytes, initial };
    device.create_instance(&compiled, &request).expect("there is room")
}

fn read_all(instance: &dyn KernelInstance) -> Vec<u8> {
    let length = usize::try_from(instance.state_bytes()).expect("a test's state is small");
    let mut bytes = vec![0xa5; length];
    instance.read_state(0, &mut bytes).expect("the state can be read");
    bytes
}

fn words(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(any::<u32>(), count)
}

/// A range of whole words, in bytes.
fn range_of(
    (from, to): (prop::sample::Index, prop::sample::Index),
    words: usize,
) -> std::ops::Range<usize> {
    let (from, to) = (from.index(words + 1), to.index(words + 1));
    from.min(to) * 4..from.max(to) * 4
}

#[expect(clippy::cast_possible_truncation, reason = "a pattern of bytes")]
fn pattern(index: usize, seed: u8) -> u8 {
    (index as u8).wrapping_mul(31) ^ seed
}
