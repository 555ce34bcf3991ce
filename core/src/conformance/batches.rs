//! Batches: the same as single steps, in any grouping, beside transfers.

use std::thread;

use proptest::prelude::*;

use super::programs;
use super::subject::{Incoming, Kernel, Subject, output, property};
use crate::abi::outbox::SentMessage;

/// A message for `fold`: tag and payload.
type Folded = (u32, Vec<u8>);

pub(super) fn batches_equal_single_steps(subject: &Subject) {
    let kernel =
        (prop::collection::vec(any::<u32>(), 3..40), prop::collection::vec(folded(), 0..6));
    property(16, prop::collection::vec(kernel, 1..9), |kernels| {
        let program = programs::fold();
        let create = || -> Vec<_> {
            kernels.iter().map(|(state, _)| subject.kernel(&program, state)).collect()
        };
        let (mut together, mut alone) = (create(), create());
        for _ in 0..2 {
            let mut steps: Vec<_> = together
                .iter_mut()
                .zip(&kernels)
                .map(|(kernel, (_, messages))| kernel.step(false, &incoming(messages)))
                .collect();
            subject.run(&mut steps).expect("the device works");
            for ((step, kernel), (_, messages)) in steps.iter().zip(&mut alone).zip(&kernels) {
                let single = kernel.run(subject, false, &incoming(messages));
                prop_assert_eq!(output(&program, step), single);
            }
        }
        for (together, alone) in together.iter().zip(&alone) {
            prop_assert_eq!(together.state(), alone.state());
        }
        Ok(())
    });
}

pub(super) fn grouping_does_not_matter(subject: &Subject) {
    let messages = prop::collection::vec((folded(), any::<bool>()), 1..32);
    property(16, (messages, 3..40usize), |(messages, words)| {
        let state = vec![0; words];
        let (grouped, ends): (Vec<_>, Vec<_>) = messages.into_iter().unzip();
        let whole = fold_groups(subject, &state, &[&grouped]);
        let mut groups = Vec::new();
        let mut rest = &grouped[..];
        let mut taken = 0;
        for ends_here in ends {
            taken += 1;
            if ends_here {
                let (group, after) = rest.split_at(taken);
                groups.push(group);
                (rest, taken) = (after, 0);
            }
        }
        groups.push(rest);
        prop_assert_eq!(&fold_groups(subject, &state, &groups), &whole);
        prop_assert_eq!(&whole, &model(state, &grouped));
        Ok(())
    });
}

/// Final state, and what was sent on each port, in order.
type Folding = (Vec<u32>, [Vec<Folded>; 2]);

fn fold_groups(subject: &Subject, state: &[u32], groups: &[&[Folded]]) -> Folding {
    let mut kernel = subject.kernel(&programs::fold(), state);
    let mut ports = [Vec::new(), Vec::new()];
    for group in groups {
        let output = kernel.run(subject, group.is_empty(), &incoming(group));
        for SentMessage { port, tag, payload, .. } in output.expect("the messages fit").messages {
            ports[port as usize].push((tag, payload));
        }
    }
    (kernel.state(), ports)
}

/// The definition of `fold`, a second time.
fn model(mut state: Vec<u32>, messages: &[Folded]) -> Folding {
    let mut ports = [Vec::new(), Vec::new()];
    for (tag, payload) in messages {
        let mut padded = payload.clone();
        padded.resize(16, 0);
        let words: Vec<_> = padded
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect();
        let length = u32::try_from(payload.len()).expect("a test's payloads are short");
        let folded = [*tag, length].into_iter().chain(words.iter().copied());
        let hash = folded.fold(state[1], |hash, word| hash.wrapping_mul(31).wrapping_add(word));
        state[0] += 1;
        state[1] = hash;
        let sum = 2 + hash as usize % (state.len() - 2);
        state[sum] = state[sum].wrapping_add(words[0]);
        let mut sent = hash.to_le_bytes().to_vec();
        sent.extend(state[sum].to_le_bytes());
        ports[(hash % 2) as usize].push((state[0], sent));
    }
    (state, ports)
}

/// Reads, writes and digests of one instance while steps of others run.
pub(super) fn transfers_go_on_beside_batches(subject: &Subject) {
    const ROUNDS: u32 = 60;
    let program = programs::fold();
    let mut running: Vec<_> = (0..3).map(|_| subject.kernel(&program, &[0; 64])).collect();
    let resting: Vec<_> = (0..3).map(|_| subject.kernel(&program, &[0; 1024])).collect();
    thread::scope(|scope| {
        for (kernel, seed) in resting.iter().zip(1u8..) {
            scope.spawn(move || rewrite(kernel, seed, ROUNDS));
        }
        for round in 0..ROUNDS {
            let message = [Incoming::words(round, &[round])];
            let mut steps: Vec<_> =
                running.iter_mut().map(|kernel| kernel.step(false, &message)).collect();
            subject.run(&mut steps).expect("the device works");
        }
    });
    let messages: Vec<_> = (0..ROUNDS).map(|round| (round, round.to_le_bytes().to_vec())).collect();
    let (expected, _) = model(vec![0; 64], &messages);
    for kernel in &running {
        assert_eq!(kernel.state(), expected);
    }
}

fn rewrite(kernel: &Kernel, seed: u8, rounds: u32) {
    for round in 0..rounds {
        let value = u32::from(seed) << 16 | round;
        let bytes: Vec<u8> = (0..512u32).flat_map(|_| value.to_le_bytes()).collect();
        let offset = u64::from(round % 2) * 2048;
        kernel.instance.write_state(offset, &bytes).expect("no step of this instance runs");
        let mut found = vec![0; bytes.len()];
        kernel.instance.read_state(offset, &mut found).expect("no step of this instance runs");
        assert_eq!(found, bytes, "round {round}");
        let digests = kernel.instance.chunk_digests(2048).expect("no step of this instance runs");
        let expected = crate::digest::chunk_digest(&[value; 512]);
        assert_eq!(digests[(round % 2) as usize], expected);
    }
}

fn folded() -> impl Strategy<Value = Folded> {
    (any::<u32>(), prop::collection::vec(any::<u8>(), 0..=16))
}

fn incoming(messages: &[Folded]) -> Vec<Incoming> {
    let message = |(tag, payload): &Folded| Incoming {
        port: 0,
        tag: *tag,
        channel: 1,
        payload: payload.clone(),
    };
    messages.iter().map(message).collect()
}
