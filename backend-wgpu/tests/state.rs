//! State beyond one binding.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "support/kernels.rs"]
mod kernels;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hopwise_backend_wgpu::WgpuOptions;
use hopwise_core::conformance::within;
use hopwise_core::device::{Device, InitialState, InstanceRequest, StepOutcome};
use hopwise_core::digest;
use hopwise_core::error::InstanceError;
use kernels::{Kernel, open, over_state, to_bytes};

/// More than one binding of software Vulkan.
const LARGE_BYTES: u64 = 256 << 20;

#[test]
fn a_state_of_256_mib_is_moved_in_ranges_and_digested_on_the_device() {
    move_in_ranges(WgpuOptions::new());
}

/// Each range takes more slices than the staging ring holds.
#[test]
fn a_state_of_256_mib_is_moved_in_ranges_through_staging_buffers() {
    move_in_ranges(WgpuOptions::new().with_staged_transfers());
}

/// Writes, digests, changes and reads a state whose every word differs with its place.
fn move_in_ranges(options: WgpuOptions) {
    let Some(device) = open(options.with_memory_bytes(LARGE_BYTES + (1 << 20))) else { return };
    let program = over_state("scramble", "hw_set_state(i, hw_state(i) * 3u + i);").build().unwrap();
    let mut kernel = Kernel::new(&*device, &program, LARGE_BYTES, InitialState::Undefined);
    let mut words: Vec<u32> = (0..67_108_864u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
    // Ranges that are no multiple of any size inside, so that their borders fall everywhere.
    let range_words = 5_000_011;
    for (range, words) in (0..).zip(words.chunks(range_words)) {
        let offset = range * range_words as u64 * 4;
        kernel.instance.write_state(offset, &to_bytes(words)).unwrap();
    }
    // Chunks of which one lies in two segments: every 80th is compared, that one among them.
    let chunk_words = 3 << 10;
    let found = kernel.instance.chunk_digests(chunk_words as u64 * 4).unwrap();
    assert_eq!(found.len(), words.len().div_ceil(chunk_words));
    for (chunk, found) in found.iter().enumerate().skip(10_922 % 80).step_by(80) {
        let words = &words[chunk * chunk_words..words.len().min((chunk + 1) * chunk_words)];
        assert_eq!(*found, digest::chunk_digest(words), "chunk {chunk}");
    }

    kernel.run(&*device).unwrap();
    for (i, word) in (0..).zip(&mut words) {
        *word = word.wrapping_mul(3).wrapping_add(i);
    }
    let mut offset = 0;
    for words in words.chunks(range_words) {
        assert!(kernel.words(offset, words.len()) == words, "from byte {offset}");
        offset += words.len() as u64 * 4;
    }
    let chunk_bytes = digest::DEFAULT_CHUNK_BYTES;
    let found = kernel.instance.chunk_digests(chunk_bytes).unwrap();
    assert!(found == digest::state_digests(&words, chunk_bytes));
}

#[test]
fn atomic_state_works_across_segments() {
    let Some(device) = open(WgpuOptions::new().with_memory_bytes(LARGE_BYTES)) else { return };
    let segment_bytes = 128 << 20;
    let program = over_state(
        "atomic",
        "if (i >= 64u) { return; }
        let last = hw_state_words() - 1u;
        hw_state_add(0u, 1u);
        hw_state_max(last, i);
        hw_state_or(last - 1u, 1u << (i % 32u));
        hw_state_add(last + 1u, 1u);",
    );
    let program = program.build().unwrap();
    let state_bytes = segment_bytes + 8;
    let mut kernel = Kernel::new(&*device, &program, state_bytes, InitialState::Zeroed);
    kernel.run(&*device).unwrap();
    assert_eq!(kernel.words(0, 2), [64, 0]);
    assert_eq!(kernel.words(state_bytes - 12, 3), [0, u32::MAX, 63]);
}

#[test]
fn a_state_beyond_all_bindings_is_refused_by_the_name_of_the_limit() {
    let Some(device) = open(WgpuOptions::new().with_memory_bytes(1 << 40)) else { return };
    let program = over_state("idle", "hw_set_state(i, 0u);").build().unwrap();
    let compiled = device.compile(&program).unwrap();
    let state_bytes = device.limits().max_state_bytes + 4;
    let request = InstanceRequest { parameters: &[], state_bytes, initial: InitialState::Zeroed };
    let refusal = device.create_instance(&compiled, &request).unwrap_err();
    assert!(matches!(refusal, InstanceError::StateTooLarge { .. }), "{refusal}");
    assert!(refusal.to_string().contains("max_state_bytes"), "{refusal}");
}

#[test]
fn a_kernel_that_is_read_for_long_holds_up_no_other() {
    let options = WgpuOptions::new().with_memory_bytes(LARGE_BYTES);
    let Some(device) = open(options.with_transfer_wait(Duration::from_millis(1))) else { return };
    let program = over_state("count", "if (i < 4u) { hw_set_state(i, hw_state(i) + 1u); }");
    let program = program.build().unwrap();
    let mut read = Kernel::new(&*device, &program, LARGE_BYTES / 2, InitialState::Zeroed);
    let mut other = Kernel::new(&*device, &program, 16, InitialState::Zeroed);
    let (instance, is_done) = (Arc::clone(&read.instance), Arc::new(AtomicBool::new(false)));
    let done = Arc::clone(&is_done);
    let reader = std::thread::spawn(move || {
        let mut bytes = vec![0; 128 << 20];
        while !done.load(Ordering::Relaxed) {
            // Busy when a step has just begun: that is an answer too.
            let _ = instance.read_state(0, &mut bytes);
        }
    });
    let (applied, left_out) = within(Duration::from_secs(60), move || {
        let (mut applied, mut left_out) = (0, 0);
        while applied < 5 || left_out < 5 {
            let mut steps = [read.step(), other.step()];
            let result = device.run_batch(&mut steps);
            assert_eq!(steps[1].outcome, StepOutcome::Applied);
            if steps[0].outcome == StepOutcome::Applied {
                result.unwrap();
                applied += 1;
            } else {
                assert_eq!(steps[0].outcome, StepOutcome::NotStarted);
                let message = result.unwrap_err().to_string();
                assert!(message.contains("step 0 of the batch could not begin"), "{message}");
                left_out += 1;
            }
        }
        is_done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
        assert_eq!(read.words(0, 4), [applied; 4]);
        assert_eq!(other.words(0, 4), [applied + left_out; 4]);
        (applied, left_out)
    });
    eprintln!("{applied} steps ran beside the reader, {left_out} were left out");
}
