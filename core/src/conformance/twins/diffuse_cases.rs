//! Strips of `diffuse` with the messages that may come, and what can be wrong with both.

use proptest::prelude::*;

use crate::programs::diffuse::{self, FROM_ABOVE, MAX_PIXEL};

use super::pair::{Kernel, Letter, Random};

/// Few widths, since each is a program to compile: below, at and above a workgroup.
const WIDTHS: [u32; 5] = [1, 2, 3, 64, 130];

/// A strip in the middle of its work.
#[derive(Clone, Debug)]
pub(super) struct Strip {
    pub(super) width: u32,
    pub(super) rows: u32,
    /// Bit 0: a strip lies above; bit 1: a strip lies below.
    pub(super) neighbours: u32,
    pub(super) iterations: u32,
    pub(super) contrast: u32,
    pub(super) rate: u32,
    /// State words 0 to 3.
    pub(super) header: [u32; 4],
    pub(super) seed: u64,
}

impl Strip {
    pub(super) fn parameters(&self) -> Vec<u32> {
        let pixels = self.width * self.rows;
        vec![pixels, 9, self.neighbours, self.iterations, self.contrast, self.rate]
    }

    pub(super) fn state(&self) -> Vec<u32> {
        let mut random = Random(self.seed);
        let words = (4 + 2 * self.rows) * self.width;
        let pixels = (0..words).map(|_| pixel(&mut random));
        self.header.into_iter().chain([0; 4]).chain(pixels).collect()
    }

    /// The strip as a kernel.
    pub(super) fn kernel(&self, steps: Vec<Vec<Letter>>) -> Kernel {
        let program = diffuse::diffuse(self.width).unwrap();
        Kernel { program, parameters: self.parameters(), state: self.state(), steps }
    }

    /// A row from a side, 0 above and 1 below.
    pub(super) fn row(&self, side: u32, tag: u32) -> Letter {
        let mut random = Random(self.seed ^ u64::from(tag << 1 | side));
        let pixels = (0..self.width).map(|_| pixel(&mut random)).collect();
        Letter::new(FROM_ABOVE + side, tag, pixels)
    }

    fn has(&self, side: u32) -> bool {
        self.neighbours >> side & 1 != 0
    }
}

/// Half of the pixels are black, white or nearly so.
fn pixel(random: &mut Random) -> u32 {
    match random.below(8) {
        0 => 0,
        1 => 1,
        2 => MAX_PIXEL,
        3 => MAX_PIXEL - 1,
        _ => random.below(MAX_PIXEL + 1),
    }
}

pub(super) fn strip() -> impl Strategy<Value = Strip> {
    let shape = (prop::sample::select(&WIDTHS[..]), 1..5u32, 0..4u32);
    let contrast = prop_oneof![256..=65_280u32, 256..2_000u32];
    let settings = (1..6u32, contrast, 1..=512u32);
    (shape, settings, any::<[u32; 3]>(), any::<bool>(), any::<u64>()).prop_map(
        |((width, rows, neighbours), (iterations, contrast, rate), progress, first, seed)| {
            let iteration = if first { 0 } else { progress[0] % (iterations + 1) };
            let received = |side: u32| {
                let ahead = progress[side as usize + 1] % 3;
                let rows = (iteration + ahead).min(iterations);
                if neighbours >> side & 1 == 0 { 0 } else { rows }
            };
            let header = [iteration, u32::from(!first), received(0), received(1)];
            Strip { width, rows, neighbours, iterations, contrast, rate, header, seed }
        },
    )
}

/// What is wrong with a message.
#[derive(Clone, Debug)]
pub(super) enum Wrong {
    Port(u32),
    /// Added to the tag that is due.
    Tag(u32),
    Length(u32),
    Pixel(prop::sample::Index),
}

fn wrong() -> impl Strategy<Value = Wrong> {
    prop_oneof![
        (0..4u32).prop_map(Wrong::Port),
        prop_oneof![Just(u32::MAX), Just(1), any::<u32>()].prop_map(Wrong::Tag),
        prop_oneof![0..600u32, any::<u32>()].prop_map(Wrong::Length),
        any::<prop::sample::Index>().prop_map(Wrong::Pixel),
    ]
}

fn spoil(letter: &mut Letter, wrong: &Wrong) {
    match wrong {
        Wrong::Port(port) => letter.port = *port,
        Wrong::Tag(difference) => letter.tag = letter.tag.wrapping_add(*difference),
        Wrong::Length(length_bytes) => letter.length_bytes = *length_bytes,
        Wrong::Pixel(index) => {
            let pixel = index.index(letter.words.len());
            letter.words[pixel] += MAX_PIXEL + 1;
        }
    }
}

/// One message to come, from a side, right or wrong.
type Coming = (bool, Option<Wrong>);

/// The messages of steps, in which all comes in order that is not meant to be wrong.
fn letters(strip: &Strip, steps: &[Vec<Coming>]) -> Vec<Vec<Letter>> {
    let [mut iteration, mut announced, mut next @ ..] = strip.header;
    let mut all = Vec::new();
    for coming in steps {
        let mut letters = Vec::new();
        for (below, wrong) in coming {
            let side = u32::from(*below);
            let tag = next[side as usize];
            let may_come = strip.has(side) && tag < strip.iterations && tag <= iteration + 1;
            if !may_come && wrong.is_none() {
                continue;
            }
            let mut letter = strip.row(side, tag);
            next[side as usize] += 1;
            wrong.iter().for_each(|wrong| spoil(&mut letter, wrong));
            letters.push(letter);
        }
        let has_row = |side: u32| !strip.has(side) || next[side as usize] > iteration;
        let is_ready = announced == 1 && iteration < strip.iterations && has_row(0) && has_row(1);
        iteration += u32::from(is_ready);
        announced = 1;
        all.push(letters);
    }
    all
}

fn coming() -> impl Strategy<Value = Vec<Vec<Coming>>> {
    let wrong = prop_oneof![25 => Just(None), 1 => wrong().prop_map(Some)];
    prop::collection::vec(prop::collection::vec((any::<bool>(), wrong), 0..=4), 1..7)
}

/// Any strip, mostly right.
pub(super) fn any_kernel() -> impl Strategy<Value = Kernel> {
    let small_or_any = || prop_oneof![0..8u32, any::<u32>()];
    let parameter = prop_oneof![
        20 => Just(None),
        1 => (0..6usize, small_or_any()).prop_map(Some),
    ];
    let header = prop_oneof![
        10 => Just(None),
        1 => (0..8usize, small_or_any()).prop_map(Some),
    ];
    let bright = prop_oneof![10 => Just(None), 1 => any::<prop::sample::Index>().prop_map(Some)];
    let length = prop_oneof![20 => Just(0), 1 => -8..9isize];
    (strip(), coming(), parameter, header, bright, length).prop_map(
        |(strip, coming, parameter, header, bright, length)| {
            let mut kernel = strip.kernel(letters(&strip, &coming));
            if let Some((word, value)) = parameter {
                kernel.parameters[word] = value;
            }
            if let Some((word, value)) = header {
                kernel.state[word] = value;
            }
            if let Some(index) = bright {
                let word = 8 + index.index(kernel.state.len() - 8);
                kernel.state[word] += MAX_PIXEL + 1;
            }
            let words = kernel.state.len().saturating_add_signed(length);
            kernel.state.resize(words.max(1), 0);
            kernel
        },
    )
}
