//! `token_ring` on both devices.

use proptest::prelude::*;

use crate::programs::fault_code;
use crate::programs::token_ring::{self, INBOX_SLOTS, MAX_TOKENS, Parameters, TOKEN, Token};

use super::super::subject::Subject;
use super::pair::{Ending, Kernel, Letter, Pair, property};

fn kernel(parameters: Parameters, state: Vec<u32>, steps: Vec<Vec<Letter>>) -> Kernel {
    let parameters = parameters.to_words().to_vec();
    Kernel { program: token_ring::token_ring(), parameters, state, steps }
}

/// A place in a ring, small or as large as 32 bits allow.
fn place() -> impl Strategy<Value = Parameters> {
    let kernels = prop_oneof![3 => 1..6u32, 1 => 1..=u32::MAX, 1 => Just(u32::MAX)];
    let tokens = prop_oneof![3 => 0..4u32, 1 => Just(MAX_TOKENS)];
    (kernels, any::<u32>(), any::<u32>(), tokens).prop_map(|(kernels, laps, index, tokens)| {
        let laps = 1 + laps % (u32::MAX / kernels).min(5);
        Parameters { kernels, laps, index: index % kernels, tokens }
    })
}

/// A token that may be at this place, before its hop is counted; in a ring of 2^32 - 1 kernels the
/// sum of origin and hops exceeds 32 bits.
fn token_for(place: Parameters, origin: u32, number: u32, lap: u32, checksum: u32) -> Token {
    let kernels = u64::from(place.kernels);
    let origin = u64::from(origin) % kernels;
    let first = (u64::from(place.index) + 2 * kernels - origin - 1) % kernels;
    let hops = first + u64::from(lap % place.laps) * kernels;
    let [origin, hops] = [origin, hops].map(|word| u32::try_from(word).unwrap());
    Token { origin, number, hops, checksum }
}

fn letter(place: Parameters) -> impl Strategy<Value = Letter> {
    let right = any::<[u32; 4]>().prop_map(move |[origin, number, lap, checksum]| {
        let token = token_for(place, origin, number, lap, checksum);
        Letter::new(TOKEN, number ^ lap, token.to_words().to_vec())
    });
    let wrong = (0..6usize, any::<u32>());
    (right, prop_oneof![300 => Just(None), 1 => wrong.prop_map(Some)]).prop_map(
        |(mut letter, wrong)| {
            match wrong {
                None => {}
                Some((word @ 0..4, value)) => letter.words[word] = value,
                Some((4, value)) => letter.port = value,
                Some((_, value)) => letter.length_bytes = value % 24,
            }
            letter
        },
    )
}

fn state() -> impl Strategy<Value = Vec<u32>> {
    let word = || prop_oneof![any::<u32>(), Just(0), Just(u32::MAX)];
    let started = prop_oneof![4 => Just(0), 4 => Just(1), 1 => any::<u32>()];
    let words = prop_oneof![12 => 4..8usize, 1 => 0..4usize];
    (started, words.prop_flat_map(move |words| prop::collection::vec(word(), words)))
        .prop_map(|(started, rest)| [vec![started], rest].concat())
}

fn any_kernel() -> impl Strategy<Value = Kernel> {
    let steps = |place: Parameters| {
        let most = INBOX_SLOTS as usize;
        let letters = prop_oneof![
            prop::collection::vec(letter(place), 0..6),
            prop::collection::vec(letter(place), most..=most),
        ];
        prop::collection::vec(letters, 1..4)
    };
    let kernel = place()
        .prop_flat_map(move |place| (Just(place), state(), steps(place)))
        .prop_map(|(place, state, steps)| kernel(place, state, steps));
    let wrong = prop_oneof![12 => Just(None), 1 => (0..4usize, any::<u32>()).prop_map(Some)];
    (kernel, wrong).prop_map(|(mut kernel, wrong)| {
        if let Some((word, value)) = wrong {
            kernel.parameters[word] = value;
        }
        kernel
    })
}

pub(super) fn rings_agree(subject: &Subject) {
    let pair = Pair::beside(subject);
    property(48, prop::collection::vec(any_kernel(), 1..6), |kernels| {
        pair.agree(&kernels);
    });
}

pub(super) fn a_full_first_step_fills_the_outbox(subject: &Subject) {
    let pair = Pair::beside(subject);
    let place = Parameters { kernels: u32::MAX, laps: 1, index: 5, tokens: MAX_TOKENS };
    let letters = (0..INBOX_SLOTS).map(|number| {
        let token = token_for(place, u32::MAX - 1 - number, number, 0, 3);
        Letter::new(TOKEN, number, token.to_words().to_vec())
    });
    let steps = vec![letters.collect(), Vec::new()];
    let endings = pair.agree(&[kernel(place, vec![0; 5], steps)]);
    let [Ending::Applied(full, state), Ending::Applied(empty, _)] = &endings[0][..] else {
        panic!("{endings:?}");
    };
    assert_eq!(full.messages.len(), (MAX_TOKENS + INBOX_SLOTS) as usize);
    assert_eq!(state[..3], [1, INBOX_SLOTS, 0]);
    assert!(empty.messages.is_empty());
}

pub(super) fn wrong_rings_give_the_same_fault(subject: &Subject) {
    let pair = Pair::beside(subject);
    let place = Parameters { kernels: 3, laps: 2, index: 1, tokens: 2 };
    let too_many = 1 << 31;
    let wrong_places = [
        Parameters { kernels: 0, index: 0, ..place },
        Parameters { index: 3, ..place },
        Parameters { laps: 0, ..place },
        Parameters { laps: too_many, ..place },
        Parameters { kernels: too_many, laps: 2, ..place },
        Parameters { tokens: MAX_TOKENS + 1, ..place },
    ];
    let token = Token { origin: 0, number: 0, hops: 0, checksum: 0 };
    let misrouted = [
        Token { origin: 1, ..token },
        Token { origin: 3, ..token },
        Token { hops: 6, ..token },
        Token { hops: u32::MAX, ..token },
    ];
    let step = |letter: Letter| kernel(place, vec![0; 5], vec![vec![letter]]);
    for place in wrong_places {
        let code = pair.code(kernel(place, vec![0; 2], vec![Vec::new()]));
        assert_eq!(code, Some(fault_code::PARAMETERS), "{place:?}");
    }
    let code = pair.code(kernel(place, vec![0; 4], vec![Vec::new()]));
    assert_eq!(code, Some(fault_code::STATE));
    for token in misrouted {
        let code = pair.code(step(Letter::new(TOKEN, 0, token.to_words().to_vec())));
        assert_eq!(code, Some(fault_code::TOKEN_MISROUTED), "{token:?}");
    }
    let right = Letter::new(TOKEN, 0, token.to_words().to_vec());
    assert_eq!(pair.code(step(right.clone())), None);
    for wrong in [Letter { length_bytes: 12, ..right.clone() }, Letter { port: 1, ..right }] {
        assert_eq!(pair.code(step(wrong)), Some(fault_code::MESSAGE));
    }
}
