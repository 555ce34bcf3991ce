//! `diffuse` on both devices.

use proptest::prelude::*;

use crate::programs::diffuse::{MAX_ITERATIONS, MAX_PIXEL, MAX_WIDTH, PROGRESS};
use crate::programs::fault_code;

use super::super::subject::Subject;
use super::diffuse_cases::{Strip, any_kernel};
use super::pair::{Ending, Kernel, Letter, Pair, property};

/// A strip between two others that has announced its rows.
const STRIP: Strip = Strip {
    width: 3,
    rows: 2,
    neighbours: 3,
    iterations: 3,
    contrast: 700,
    rate: 400,
    header: [0, 1, 0, 0],
    seed: 1,
};

pub(super) fn strips_agree(subject: &Subject) {
    let pair = Pair::beside(subject);
    property(96, prop::collection::vec(any_kernel(), 1..8), |kernels| {
        pair.agree(&kernels);
    });
}

pub(super) fn a_strip_works_to_its_end(subject: &Subject) {
    let pair = Pair::beside(subject);
    let strip = Strip { header: [0; 4], ..STRIP };
    let rows = |tag| [strip.row(0, tag), strip.row(1, tag)];
    let [ahead, late] = rows(1);
    let steps = vec![
        vec![],
        [rows(0).to_vec(), vec![ahead]].concat(),
        vec![],
        [vec![late], rows(2).to_vec()].concat(),
        vec![],
        vec![],
    ];
    let endings = pair.agree(&[strip.kernel(steps)]);
    let sent = endings[0].iter().map(|ending| match ending {
        Ending::Applied(output, state) => {
            let ports = output.messages.iter().map(|message| message.port).collect::<Vec<_>>();
            assert_eq!(state[4..8], [0; 4]);
            (ports, output.run_again, state[0])
        }
        Ending::Faulted(fault) => panic!("{fault}"),
    });
    let expected = [
        (vec![0, 1], false, 0),
        (vec![0, 1, PROGRESS], false, 1),
        (vec![], false, 1),
        (vec![0, 1, PROGRESS], true, 2),
        (vec![PROGRESS], false, 3),
        (vec![], false, 3),
    ];
    assert_eq!(sent.collect::<Vec<_>>(), expected);
}

/// Grids of more workgroups than one dimension has, rows longer than software Vulkan loops.
pub(super) fn large_strips_agree(subject: &Subject) {
    let pair = Pair::beside(subject);
    let large = Strip { width: 1500, rows: 1500, neighbours: 0, ..STRIP };
    let wide = Strip { width: MAX_WIDTH, rows: 1, ..STRIP };
    let steps = vec![vec![wide.row(0, 0), wide.row(1, 0), wide.row(1, 1)], vec![]];
    let endings = pair.agree(&[large.kernel(vec![vec![]; 2]), wide.kernel(steps)]);
    let iterations = endings.iter().map(|endings| match &endings[1] {
        Ending::Applied(_, state) => state[0],
        Ending::Faulted(fault) => panic!("{fault}"),
    });
    assert_eq!(iterations.collect::<Vec<_>>(), [2, 1]);
}

/// A state beyond the largest binding of software Vulkan: the second image crosses into another
/// segment.
pub(super) fn strips_agree_across_segments(subject: &Subject) {
    let pair = Pair::beside(subject);
    let strip = Strip { width: 4100, rows: 4100, neighbours: 0, ..STRIP };
    let kernel = strip.kernel(vec![vec![]]);
    assert!(kernel.state.len() * 4 > 128 << 20);
    let endings = pair.agree(&[kernel]);
    assert!(matches!(&endings[0][..], [Ending::Applied(_, state)] if state[0] == 1));
}

pub(super) fn wrong_parameters_and_states_give_the_same_fault(subject: &Subject) {
    let pair = Pair::beside(subject);
    let parameters = [
        (0, 0),
        (0, 4),
        (0, 3 * ((1 << 30) / 3 + 1)),
        (0, u32::MAX),
        (2, 4),
        (3, 0),
        (3, MAX_ITERATIONS + 1),
        (4, 255),
        (4, MAX_PIXEL + 1),
        (5, 0),
        (5, 513),
    ];
    let headers = [
        [4, 1, 3, 3],
        [u32::MAX, 1, 3, 3],
        [0, 2, 0, 0],
        [1, 0, 1, 1],
        [1, 1, 0, 1],
        [1, 1, 1, 4],
        [2, 1, 4, 3],
        [0, 1, 3, 0],
        [0, 1, 0, u32::MAX],
    ];
    let ends = [(3, MAX_ITERATIONS), (4, 256), (4, MAX_PIXEL), (5, 1), (5, 512)];
    for (word, value) in ends {
        let mut kernel = STRIP.kernel(vec![vec![]]);
        kernel.parameters[word] = value;
        assert_eq!(pair.code(kernel), None, "parameter {word} = {value}");
    }
    for (word, value) in parameters {
        let mut kernel = STRIP.kernel(vec![vec![]]);
        kernel.parameters[word] = value;
        let code = pair.code(kernel);
        assert_eq!(code, Some(fault_code::PARAMETERS), "parameter {word} = {value}");
    }
    for header in headers {
        let code = pair.code(Strip { header, ..STRIP }.kernel(vec![vec![]]));
        assert_eq!(code, Some(fault_code::STATE), "{header:?}");
    }
    for words in [1, 4, 5, 7, 8, 31, 33] {
        let state = vec![0; words];
        let code = pair.code(Kernel { state, ..STRIP.kernel(vec![vec![]]) });
        assert_eq!(code, Some(fault_code::STATE), "{words} words");
    }
    let mut bright = STRIP.kernel(vec![vec![]]);
    bright.state[8 + 4 * 3 + 5] = MAX_PIXEL + 1;
    assert_eq!(pair.code(bright), Some(fault_code::PIXEL_RANGE));
}

pub(super) fn wrong_rows_give_the_same_fault_and_the_first_one_counts(subject: &Subject) {
    let pair = Pair::beside(subject);
    let row = |side, tag| STRIP.row(side, tag);
    let short = Letter { length_bytes: 8, ..row(0, 0) };
    let mut bright = row(1, 0);
    bright.words[2] = MAX_PIXEL + 1;
    let cases = [
        (vec![row(0, 0), row(0, 0)], fault_code::ROW_REPEATED),
        (vec![row(1, 1)], fault_code::ROW_MISSING),
        (vec![row(0, 0), row(0, 1), row(0, 2)], fault_code::ROW_UNEXPECTED),
        (vec![short.clone()], fault_code::MESSAGE),
        (vec![Letter { port: 2, ..row(0, 0) }], fault_code::MESSAGE),
        (vec![row(0, 0), bright.clone()], fault_code::PIXEL_RANGE),
        (vec![bright.clone(), short.clone()], fault_code::PIXEL_RANGE),
        (vec![short, bright.clone()], fault_code::MESSAGE),
        (vec![row(1, 1), bright], fault_code::ROW_MISSING),
    ];
    for (letters, expected) in &cases {
        let mut kernel = STRIP.kernel(vec![letters.clone()]);
        assert_eq!(pair.code(kernel.clone()), Some(*expected), "{letters:?}");
        // What is wrong with the image comes before any message.
        kernel.state[8 + 4 * 3] = MAX_PIXEL + 1;
        assert_eq!(pair.code(kernel), Some(fault_code::PIXEL_RANGE), "{letters:?}");
    }
    let alone = Strip { neighbours: 2, ..STRIP }.kernel(vec![vec![STRIP.row(0, 0)]]);
    assert_eq!(pair.code(alone), Some(fault_code::ROW_UNEXPECTED));
    let finished = Strip { header: [3, 1, 3, 3], ..STRIP };
    let late = finished.kernel(vec![vec![], vec![finished.row(0, 3)]]);
    assert_eq!(pair.code(late), Some(fault_code::ROW_UNEXPECTED));
}
