//! `counter` on both devices.

use proptest::prelude::*;

use crate::programs::{counter, fault_code};

use super::super::subject::Subject;
use super::pair::{Ending, Kernel, Letter, Pair, property};

fn kernel(state: Vec<u32>, steps: Vec<Vec<Letter>>) -> Kernel {
    Kernel { program: counter(), parameters: Vec::new(), state, steps }
}

/// Numbers at which sums carry, among any others.
fn word() -> impl Strategy<Value = u32> {
    prop_oneof![2 => any::<u32>(), 1 => 0..3u32, 1 => Just(u32::MAX)]
}

fn letter() -> impl Strategy<Value = Letter> {
    let port = prop_oneof![
        600 => Just(counter::ADD),
        200 => Just(counter::QUERY),
        1 => any::<u32>(),
    ];
    let length = prop_oneof![600 => 0..=8u32, 1 => any::<u32>()];
    let words = prop::collection::vec(word(), 2);
    (port, word(), length, words).prop_map(|(port, tag, length_bytes, words)| Letter {
        port,
        tag,
        length_bytes,
        words,
    })
}

fn any_kernel() -> impl Strategy<Value = Kernel> {
    let words = prop_oneof![12 => 4..8usize, 1 => 1..4usize];
    let state = words.prop_flat_map(|words| prop::collection::vec(word(), words));
    let most = counter::INBOX_SLOTS as usize;
    let letters = prop_oneof![
        prop::collection::vec(letter(), 0..6),
        prop::collection::vec(letter(), most..=most),
    ];
    (state, prop::collection::vec(letters, 1..4)).prop_map(|(state, steps)| kernel(state, steps))
}

pub(super) fn counters_agree(subject: &Subject) {
    let pair = Pair::beside(subject);
    property(48, prop::collection::vec(any_kernel(), 1..6), |kernels| {
        pair.agree(&kernels);
    });
}

pub(super) fn sums_carry_into_the_high_word(subject: &Subject) {
    let pair = Pair::beside(subject);
    let add = Letter::new(counter::ADD, 7, vec![1, 0]);
    let query = Letter::new(counter::QUERY, 8, Vec::new());
    let state = vec![u32::MAX, 4, u32::MAX, u32::MAX, 99];
    let endings = pair.agree(&[kernel(state, vec![vec![add, query]])]);
    let [Ending::Applied(output, state)] = &endings[0][..] else {
        panic!("{endings:?}");
    };
    assert_eq!(output.messages.len(), 2);
    assert_eq!(state, &[0, 5, 0, 0, 99]);
}

pub(super) fn wrong_counters_give_the_same_fault(subject: &Subject) {
    let pair = Pair::beside(subject);
    let step = |letter: Letter| vec![vec![Letter::new(counter::ADD, 1, vec![5, 6]), letter]];
    for words in 1..counter::STATE_WORDS {
        let code = pair.code(kernel(vec![0; words], vec![Vec::new()]));
        assert_eq!(code, Some(fault_code::STATE), "{words} words");
    }
    let long = Letter { length_bytes: 9, ..Letter::new(counter::ADD, 2, vec![1, 2]) };
    assert_eq!(pair.code(kernel(vec![0; 4], step(long))), Some(fault_code::MESSAGE));
    let strange = Letter::new(2, 2, vec![1]);
    assert_eq!(pair.code(kernel(vec![0; 4], step(strange))), Some(fault_code::MESSAGE));
}
