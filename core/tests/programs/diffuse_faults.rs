//! `diffuse` with wrong parameters, wrong states, and rows that are lost, repeated or overtaken.

use proptest::prelude::*;

use hopwise_core::programs::diffuse::{
    self, FROM_ABOVE, FROM_BELOW, MAX_ITERATIONS, MAX_PIXEL, Strip,
};
use hopwise_core::programs::fault_code;

use super::diffuse::{launch, plain_loop, result, state_bytes, task};
use super::interpreter::{Letter, code, single_step};

const WIDTH: u32 = 3;

/// Two rows, neighbours on both sides, three iterations.
const PARAMETERS: [u32; 6] = [2 * WIDTH, 7, 3, 3, 256, 512];

fn fresh_state() -> Vec<u32> {
    vec![0; 8 + 4 * 3 + 2 * 6]
}

fn step_with(parameters: &[u32], state: Vec<u32>, letters: &[Letter]) -> Option<u16> {
    code(single_step(diffuse::diffuse(WIDTH).unwrap(), parameters, state, letters))
}

fn row(port: u32, tag: u32) -> Letter {
    Letter::new(port, tag, &[1, 2, MAX_PIXEL])
}

#[test]
fn parameters_out_of_range_are_a_fault() {
    assert_eq!(step_with(&PARAMETERS, fresh_state(), &[]), None);
    let wrong = [
        (0, 0),
        (0, 4),
        (0, 3 * ((1 << 30) / 3 + 1)),
        (2, 4),
        (3, 0),
        (3, MAX_ITERATIONS + 1),
        (4, 0),
        (4, 255),
        (4, MAX_PIXEL + 1),
        (5, 0),
        (5, 513),
    ];
    for (word, value) in wrong {
        let mut parameters = PARAMETERS;
        parameters[word] = value;
        let code = step_with(&parameters, fresh_state(), &[]);
        assert_eq!(code, Some(fault_code::PARAMETERS), "word {word} = {value}");
    }
    assert_eq!(step_with(&[], fresh_state(), &[]), Some(fault_code::PARAMETERS));
}

#[test]
fn states_that_no_strip_writes_are_a_fault() {
    for words in [1, 31, 33] {
        assert_eq!(step_with(&PARAMETERS, vec![0; words], &[]), Some(fault_code::STATE));
    }
    let headers = [
        [4, 1, 3, 3],
        [u32::MAX, 1, 3, 3],
        [0, 2, 0, 0],
        [1, 0, 1, 1],
        [1, 1, 0, 1],
        [1, 1, 1, 4],
        [0, 1, 3, 0],
        [0, 1, 0, u32::MAX],
    ];
    for header in headers {
        let mut state = fresh_state();
        state[..4].copy_from_slice(&header);
        assert_eq!(step_with(&PARAMETERS, state, &[]), Some(fault_code::STATE), "{header:?}");
    }
    let mut alone = PARAMETERS;
    alone[2] = 0;
    let mut state = fresh_state();
    state[2] = 1;
    assert_eq!(step_with(&alone, state, &[]), Some(fault_code::STATE));
    let mut bright = fresh_state();
    bright[8 + 4 * 3 + 5] = MAX_PIXEL + 1;
    assert_eq!(step_with(&PARAMETERS, bright, &[]), Some(fault_code::PIXEL_RANGE));
}

#[test]
fn rows_that_cannot_be_are_a_fault() {
    let step = |letters: &[Letter]| step_with(&PARAMETERS, fresh_state(), letters);
    assert_eq!(step(&[row(FROM_ABOVE, 0), row(FROM_ABOVE, 1), row(FROM_BELOW, 0)]), None);
    let repeated = [row(FROM_ABOVE, 0), row(FROM_ABOVE, 0)];
    assert_eq!(step(&repeated), Some(fault_code::ROW_REPEATED));
    assert_eq!(step(&[row(FROM_BELOW, 1)]), Some(fault_code::ROW_MISSING));
    let early = [row(FROM_ABOVE, 0), row(FROM_ABOVE, 1), row(FROM_ABOVE, 2)];
    assert_eq!(step(&early), Some(fault_code::ROW_UNEXPECTED));
    let short = [Letter::new(FROM_ABOVE, 0, &[1, 2])];
    assert_eq!(step(&short), Some(fault_code::MESSAGE));
    assert_eq!(step(&[row(2, 0)]), Some(fault_code::MESSAGE));
    let bright = [Letter::new(FROM_BELOW, 0, &[0, MAX_PIXEL + 1, 0])];
    assert_eq!(step(&bright), Some(fault_code::PIXEL_RANGE));

    let mut top = PARAMETERS;
    top[2] = 2;
    let from_nowhere = step_with(&top, fresh_state(), &[row(FROM_ABOVE, 0)]);
    assert_eq!(from_nowhere, Some(fault_code::ROW_UNEXPECTED));

    // After the last iteration no row is left to come.
    let mut finished = fresh_state();
    finished[..4].copy_from_slice(&[3, 1, 3, 3]);
    assert_eq!(step_with(&PARAMETERS, finished.clone(), &[]), None);
    let late = step_with(&PARAMETERS, finished, &[row(FROM_ABOVE, 3)]);
    assert_eq!(late, Some(fault_code::ROW_UNEXPECTED));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Whatever the carrier does to one row: a fault, a strip that waits, or the right image.
    #[test]
    fn no_tampering_gives_a_wrong_image(
        task in task(),
        seed in any::<u64>(),
        at_step in 0..30u64,
        kind in 0..3,
    ) {
        let strips = Strip::split(task.width, task.height, task.height.min(4)).unwrap();
        let mut interpreter = launch(&task, &strips, seed);
        let mut lost_or_repeated = false;
        let outcome = interpreter.run_tampering(|step, kernels| {
            let victim = kernels.iter_mut().find(|kernel| !kernel.mailbox.is_empty());
            if let Some(kernel) = victim
                && step >= at_step
                && !lost_or_repeated
            {
                let last = kernel.mailbox.len() - 1;
                lost_or_repeated = kind < 2;
                match kind {
                    0 => drop(kernel.mailbox.pop_front()),
                    1 => kernel.mailbox.push_back(kernel.mailbox[0].clone()),
                    _ => kernel.mailbox.swap(0, last),
                }
            }
        });
        let iterations = task.settings.iterations();
        let mut finished = strips.iter().enumerate().map(|(index, strip)| {
            strip.iteration(&state_bytes(&interpreter, index)).unwrap() == iterations
        });
        let all_finished = finished.all(|finished| finished);
        prop_assert!(!(lost_or_repeated && outcome.is_ok() && all_finished));
        if outcome.is_ok() && all_finished {
            prop_assert_eq!(result(&interpreter, &strips), plain_loop(&task));
        }
    }
}
