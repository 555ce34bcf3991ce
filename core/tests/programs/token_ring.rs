//! `token_ring` against a plain queue of tokens, and against a tampering carrier.

use std::collections::VecDeque;

use proptest::prelude::*;

use hopwise_core::programs::token_ring::{
    DONE, INBOX_SLOTS, MAX_TOKENS, NEXT, Parameters, STATE_WORDS, TOKEN, Token,
};
use hopwise_core::programs::{self, fault_code};

use super::interpreter::{Interpreter, Kernel, Letter, code, single_step};

#[derive(Clone, Debug)]
struct Ring {
    laps: u32,
    tokens: Vec<u32>,
}

fn ring() -> impl Strategy<Value = Ring> {
    let tokens = prop::collection::vec(prop_oneof![0..4u32, Just(MAX_TOKENS)], 1..6);
    (1..4u32, tokens).prop_map(|(laps, tokens)| Ring { laps, tokens })
}

fn launch(ring: &Ring, seed: u64) -> Interpreter {
    let mut interpreter = Interpreter::new(seed);
    let kernels = u32::try_from(ring.tokens.len()).unwrap();
    for (index, &tokens) in (0..).zip(&ring.tokens) {
        let parameters = Parameters { kernels, laps: ring.laps, index, tokens };
        interpreter.launch(programs::token_ring(), &parameters.to_words(), vec![0; STATE_WORDS]);
    }
    for index in 0..ring.tokens.len() {
        interpreter.wire(index, NEXT, (index + 1) % ring.tokens.len(), TOKEN);
    }
    interpreter
}

/// The hash of a kernel and the tokens that ended there, as (number, checksum).
type Outcome = (u32, Vec<(u32, u32)>);

fn outcomes(interpreter: &Interpreter) -> Vec<Outcome> {
    let ended = |kernel: &Kernel| {
        let tokens = kernel.sent[DONE as usize].iter().map(token_of);
        tokens.map(|token| (token.number, token.checksum)).collect()
    };
    interpreter.kernels.iter().map(|kernel| (kernel.state[3], ended(kernel))).collect()
}

fn token_of(letter: &Letter) -> Token {
    Token::from_words(letter.words().try_into().unwrap())
}

/// The ring as one queue a kernel, always served one token at a time from kernel 0 on.
fn plain_ring(ring: &Ring) -> Vec<Outcome> {
    let kernels = ring.tokens.len();
    let mut queues: Vec<VecDeque<[u32; 4]>> = vec![VecDeque::new(); kernels];
    for (origin, tokens) in (0..).zip(&ring.tokens) {
        let next = (origin as usize + 1) % kernels;
        queues[next].extend((0..*tokens).map(|number| [origin, number, 0, 0]));
    }
    let fold = |hash: u32, word: u32| (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b1);
    let hops = ring.laps * u32::try_from(kernels).unwrap();
    let mut outcomes = vec![(0, Vec::new()); kernels];
    while let Some(index) = queues.iter().position(|queue| !queue.is_empty()) {
        let mut token = queues[index].pop_front().unwrap();
        token[2] += 1;
        let (hash, ended) = &mut outcomes[index];
        for word in token {
            *hash = fold(*hash, word);
        }
        token[3] = fold(token[3], *hash);
        if token[2] == hops {
            ended.push((token[1], token[3]));
        } else {
            queues[(index + 1) % kernels].push_back(token);
        }
    }
    outcomes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_schedule_gives_the_plain_result_and_every_token_ends(
        ring in ring(),
        seed in any::<u64>(),
    ) {
        let mut interpreter = launch(&ring, seed);
        interpreter.run().unwrap();
        prop_assert_eq!(outcomes(&interpreter), plain_ring(&ring));
        let injected: u32 = ring.tokens.iter().sum();
        for ((kernel, &own), origin) in interpreter.kernels.iter().zip(&ring.tokens).zip(0..) {
            let ended = kernel.sent[DONE as usize].iter().map(token_of).collect::<Vec<_>>();
            let mut numbers = ended.iter().map(|token| token.number).collect::<Vec<_>>();
            numbers.sort_unstable();
            prop_assert_eq!(numbers, (0..own).collect::<Vec<_>>());
            prop_assert!(ended.iter().all(|token| token.origin == origin));
            let received = injected * ring.laps;
            prop_assert_eq!(&kernel.state[..3], [1, received, 0]);
            prop_assert_eq!(kernel.state[4], own);
        }
    }

    #[test]
    fn a_lost_repeated_or_overtaken_token_shows(
        laps in 1..4u32,
        tokens in prop::collection::vec(2..6u32, 2..5),
        seed in any::<u64>(),
        at_step in 0..20u64,
        kind in 0..3,
    ) {
        let ring = Ring { laps, tokens };
        let mut interpreter = launch(&ring, seed);
        let mut tampered = false;
        let result = interpreter.run_tampering(|step, kernels| {
            let victim = kernels.iter_mut().find(|kernel| kernel.mailbox.len() >= 2);
            if let Some(kernel) = victim
                && step >= at_step
                && !tampered
            {
                tampered = true;
                match kind {
                    0 => drop(kernel.mailbox.pop_front()),
                    1 => kernel.mailbox.push_back(kernel.mailbox[0].clone()),
                    _ => kernel.mailbox.swap(0, 1),
                }
            }
        });
        if tampered {
            prop_assert!(result.is_err() || outcomes(&interpreter) != plain_ring(&ring));
        }
    }
}

#[test]
fn a_full_inbox_fits_the_outbox_of_the_first_step() {
    let parameters = Parameters { kernels: 2, laps: 2, index: 0, tokens: MAX_TOKENS };
    let token = Token { origin: 1, number: 0, hops: 0, checksum: 0 };
    let letters = vec![Letter::new(TOKEN, 0, &token.to_words()); INBOX_SLOTS as usize];
    let state = vec![0; STATE_WORDS];
    single_step(programs::token_ring(), &parameters.to_words(), state, &letters).unwrap();
}

#[test]
fn tokens_are_counted_in_64_bits() {
    let mut interpreter = Interpreter::new(0);
    let parameters = Parameters { kernels: 1, laps: 1, index: 0, tokens: 3 };
    let state = vec![1, u32::MAX, 7, 0, u32::MAX];
    let index = interpreter.launch(programs::token_ring(), &parameters.to_words(), state);
    let token = Token { origin: 0, number: 0, hops: 0, checksum: 0 };
    interpreter.kernels[index].mailbox.push_back(Letter::new(TOKEN, 0, &token.to_words()));
    interpreter.run().unwrap();
    // A later step injects nothing.
    assert!(interpreter.kernels[index].sent[NEXT as usize].is_empty());
    assert_eq!(interpreter.kernels[index].state[..3], [1, 0, 8]);
    assert_eq!(interpreter.kernels[index].state[4], 0);
}

#[test]
fn parameters_out_of_range_are_a_fault() {
    let good = Parameters { kernels: 3, laps: 2, index: 2, tokens: 1 };
    assert_eq!(good.hops(), Some(6));
    let wrong = [
        Parameters { kernels: 0, index: 0, ..good },
        Parameters { laps: 0, ..good },
        Parameters { laps: u32::MAX / 2, ..good },
        Parameters { index: 3, ..good },
        Parameters { tokens: MAX_TOKENS + 1, ..good },
    ];
    let step = |parameters: Parameters, words, letters: &[Letter]| {
        let program = programs::token_ring();
        code(single_step(program, &parameters.to_words(), vec![0; words], letters))
    };
    for parameters in wrong {
        assert_eq!(parameters.hops(), None);
        assert_eq!(step(parameters, STATE_WORDS, &[]), Some(fault_code::PARAMETERS));
    }
    assert_eq!(step(good, STATE_WORDS - 1, &[]), Some(fault_code::STATE));
    assert_eq!(step(good, STATE_WORDS, &[]), None);
}

#[test]
fn a_message_that_is_no_token_of_the_ring_is_a_fault() {
    // The largest ring: an origin and the hops together exceed 32 bits.
    let huge = Parameters { kernels: u32::MAX, laps: 1, index: 1, tokens: 0 };
    let small = Parameters { kernels: 3, laps: 2, index: 1, tokens: 0 };
    let step = |parameters: Parameters, words: &[u32]| {
        let letter = Letter::new(TOKEN, 0, words);
        let program = programs::token_ring();
        code(single_step(program, &parameters.to_words(), vec![0; STATE_WORDS], &[letter]))
    };
    assert_eq!(step(small, &[0, 0, 0, 0]), None);
    assert_eq!(step(small, &[2, 0, 4, 0]), None);
    assert_eq!(step(huge, &[u32::MAX - 1, 0, 1, 0]), None);
    assert_eq!(step(small, &[0, 0, 0]), Some(fault_code::MESSAGE));
    for token in [[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 6, 0], [3, 0, 0, 0], [1, 0, u32::MAX, 0]] {
        assert_eq!(step(small, &token), Some(fault_code::TOKEN_MISROUTED), "{token:?}");
    }
}
