//! `counter` against 64-bit sums.

use proptest::prelude::*;

use hopwise_core::programs::counter::{ADD, QUERY, REPORT, STATE_WORDS, TOTAL};
use hopwise_core::programs::{self, fault_code};

use super::interpreter::{Interpreter, Letter, code, single_step};

fn low(value: u64) -> u32 {
    u32::try_from(value & 0xffff_ffff).unwrap()
}

fn pair(value: u64) -> [u32; 2] {
    [low(value), low(value >> 32)]
}

/// Values near the carry, and any others; `None` is a query.
fn requests() -> impl Strategy<Value = Vec<Option<u64>>> {
    let value = prop_oneof![any::<u64>(), 0xffff_fff0..0x1_0000_0010u64, Just(u64::MAX)];
    prop::collection::vec(prop::option::weighted(0.8, value), 0..150)
}

/// What a counter must answer, from 64-bit arithmetic.
fn expected(requests: &[Option<u64>]) -> (Vec<Letter>, Vec<Letter>, Vec<u32>) {
    let (mut totals, mut reports) = (Vec::new(), Vec::new());
    let (mut sum, mut count) = (0u64, 0u64);
    for (tag, request) in (0..).zip(requests) {
        if let Some(value) = request {
            sum = sum.wrapping_add(*value);
            count += 1;
            totals.push(Letter::new(TOTAL, tag, &pair(sum)));
        } else {
            reports.push(Letter::new(REPORT, tag, &[pair(sum), pair(count)].concat()));
        }
    }
    (totals, reports, [pair(sum), pair(count)].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn sums_are_those_of_64_bits_for_every_grouping(
        requests in requests(),
        seed in any::<u64>(),
        larger in 0usize..3,
    ) {
        let mut interpreter = Interpreter::new(seed);
        let state = vec![0; STATE_WORDS + larger];
        let index = interpreter.launch(programs::counter(), &[], state);
        for (tag, request) in (0..).zip(&requests) {
            let letter = match request {
                Some(value) => Letter::new(ADD, tag, &pair(*value)),
                None => Letter::new(QUERY, tag, &[]),
            };
            interpreter.kernels[index].mailbox.push_back(letter);
        }
        interpreter.run().unwrap();
        let (totals, reports, state) = expected(&requests);
        let kernel = &interpreter.kernels[index];
        prop_assert_eq!(&kernel.sent[TOTAL as usize], &totals);
        prop_assert_eq!(&kernel.sent[REPORT as usize], &reports);
        prop_assert_eq!(&kernel.state[..STATE_WORDS], &state[..]);
        prop_assert!(kernel.state[STATE_WORDS..].iter().all(|word| *word == 0));
    }
}

#[test]
fn counters_can_be_chained() {
    let mut interpreter = Interpreter::new(7);
    let first = interpreter.launch(programs::counter(), &[], vec![0; 4]);
    let second = interpreter.launch(programs::counter(), &[], vec![0; 4]);
    interpreter.wire(first, TOTAL, second, ADD);
    let values = (1..=100).map(|value| Letter::new(ADD, 0, &[value]));
    interpreter.kernels[first].mailbox.extend(values);
    interpreter.run().unwrap();
    assert_eq!(interpreter.kernels[first].state, [5050, 0, 100, 0]);
    // The sum of the first hundred triangular numbers.
    assert_eq!(interpreter.kernels[second].state, [171_700, 0, 100, 0]);
}

#[test]
fn a_short_value_is_padded() {
    let mut interpreter = Interpreter::new(0);
    let index = interpreter.launch(programs::counter(), &[], vec![0; 4]);
    for payload in [vec![], vec![5], vec![1, 1], vec![0, 0, 0, 0, 2]] {
        interpreter.kernels[index].mailbox.push_back(Letter { port: ADD, tag: 0, payload });
    }
    interpreter.run().unwrap();
    assert_eq!(interpreter.kernels[index].state, [5 + 257, 2, 4, 0]);
}

#[test]
fn what_is_wrong_is_a_fault_with_a_code() {
    let counter = programs::counter;
    assert_eq!(code(single_step(counter(), &[], vec![0; 3], &[])), Some(fault_code::STATE));
    let letter = Letter::new(2, 0, &[1]);
    let result = single_step(counter(), &[], vec![0; 4], &[letter]);
    assert_eq!(code(result), Some(fault_code::MESSAGE));
}
