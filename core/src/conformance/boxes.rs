//! What kernels see: inbox, parameters, and the passes of a step.

use proptest::prelude::*;

use super::programs::{self, CAPTURED_PARAMETER_WORDS};
use super::subject::{Incoming, Kernel, Subject, property};

/// Words of state for the captured parameters, a length, and a full inbox.
const CAPTURE_WORDS: usize = CAPTURED_PARAMETER_WORDS + 1 + 4 + 8 * 9;

/// Several steps in a row: what an earlier inbox held must not show in a later one.
pub(super) fn inboxes_are_as_documented(subject: &Subject) {
    let step = (any::<bool>(), prop::collection::vec(incoming(), 0..=8));
    property(24, prop::collection::vec(step, 1..4), |steps| {
        let mut kernel = subject.kernel(&programs::capture(), &[7; CAPTURE_WORDS]);
        for ((started, messages), number) in steps.iter().zip(1u32..) {
            let output = kernel.run(subject, *started, messages).expect("nothing is sent");
            prop_assert!(output.messages.is_empty() && !output.run_again);
            let expected = inbox_words(number, *started, messages);
            let state = kernel.state();
            let (length, captured) =
                (state[CAPTURED_PARAMETER_WORDS], &state[CAPTURED_PARAMETER_WORDS + 1..]);
            prop_assert_eq!(length as usize, expected.len());
            let (captured, rest) = captured.split_at(expected.len());
            prop_assert_eq!(captured, expected);
            prop_assert!(rest.iter().all(|word| *word == 0));
        }
        Ok(())
    });
}

pub(super) fn parameters_are_padded(subject: &Subject) {
    let given = [0xffff_ffff, 2, 3, 4, 0x8000_0005];
    for count in 0..=given.len() {
        let program = programs::capture();
        let state = [7; CAPTURE_WORDS];
        let mut kernel = Kernel::new(&*subject.device, &program, &given[..count], &state);
        kernel.run(subject, true, &[]).expect("nothing is sent");
        let mut expected = [0; CAPTURED_PARAMETER_WORDS];
        expected[..count].copy_from_slice(&given[..count]);
        assert_eq!(kernel.state()[..CAPTURED_PARAMETER_WORDS], expected);
    }
}

pub(super) fn passes_see_what_came_before(subject: &Subject) {
    let state = prop::collection::vec(any::<u32>(), 1..400);
    property(24, (state, any::<u32>()), |(mut state, parameter)| {
        state.extend_from_within(..);
        let program = programs::passes();
        let mut kernel = Kernel::new(&*subject.device, &program, &[parameter], &state);
        for _ in 0..2 {
            kernel.run(subject, true, &[]).expect("nothing is sent");
            state = after_passes(&state, parameter);
        }
        prop_assert_eq!(kernel.state(), state);
        Ok(())
    });
}

/// The definition of the passes, each into a fresh copy.
fn after_passes(before: &[u32], parameter: u32) -> Vec<u32> {
    let (n, h) = (before.len(), before.len() / 2);
    let mut first = before.to_vec();
    for i in 0..h {
        first[h + i] = before[i].wrapping_mul(3).wrapping_add(parameter);
    }
    let mut second = first.clone();
    for i in 0..h {
        second[i] = first[i] ^ first[n - 1 - i];
    }
    let mut third = second.clone();
    for i in 0..h {
        third[h + i] = second[h + i].wrapping_add(second[(i + 1) % h]);
    }
    third
}

fn incoming() -> impl Strategy<Value = Incoming> {
    let payload = |most| prop::collection::vec(any::<u8>(), 0..=most);
    let on_port = prop_oneof![
        payload(4).prop_map(|payload| (0, payload)),
        payload(18).prop_map(|payload| (1, payload)),
    ];
    (on_port, any::<u32>(), any::<u32>()).prop_map(|((port, payload), tag, channel)| Incoming {
        port,
        tag,
        channel,
        payload,
    })
}

/// The documented bytes, encoded here a second time, word by word.
fn inbox_words(number: u32, started: bool, messages: &[Incoming]) -> Vec<u32> {
    const SLOT_WORDS: u32 = 4 + 5;
    let count = u32::try_from(messages.len()).expect("a test's messages are few");
    let mut words = vec![count, SLOT_WORDS, number, u32::from(started)];
    for message in messages {
        let length = u32::try_from(message.payload.len()).expect("a test's payloads are short");
        words.extend([message.port, message.tag, length, message.channel]);
        for word in 0..5 {
            let byte =
                |at: usize| u32::from(message.payload.get(word * 4 + at).copied().unwrap_or(0));
            words.push(byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24);
        }
    }
    words
}
