//! Where things are in parameters and state: the offsets of the tables in the program's page.

use std::ops::Range;

use crate::error::StepFault;
use crate::programs::{fault, fault_code};

use super::formula::Coefficients;
use super::{MAX_ITERATIONS, MAX_STRIP_PIXELS};

/// Header word: iterations finished.
pub(super) const ITERATION: usize = 0;

/// Header word: whether the rows of iteration 0 are sent.
pub(super) const ANNOUNCED: usize = 1;

/// Header word: rows received from above; the next word counts those from below.
pub(super) const ROWS_RECEIVED: usize = 2;

/// Header words that mean something during a step only, on devices that run it in passes.
pub(super) const STEP_WORDS: Range<usize> = 4..HEADER_WORDS;

/// Words of the header.
const HEADER_WORDS: usize = 8;

/// Parameter bit: a strip lies above; the next bit stands for below.
pub(super) const HAS_ABOVE: u32 = 1;

/// Parameter bit: a strip lies below.
pub(super) const HAS_BELOW: u32 = 2;

/// Where a strip's rows and images are in its state, in words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) width: usize,
    pub(super) pixels: usize,
}

impl Layout {
    pub(super) fn new(width: u32, pixels: u32) -> Self {
        Self { width: width as usize, pixels: pixels as usize }
    }

    /// The row received from a side (0 above, 1 below) with a tag of this parity.
    pub(super) fn row(self, side: usize, tag: u32) -> Range<usize> {
        let start = HEADER_WORDS + (2 * side + parity(tag)) * self.width;
        start..start + self.width
    }

    /// The first word of the two images.
    pub(super) fn images(self) -> usize {
        HEADER_WORDS + 4 * self.width
    }

    /// The image after this many iterations.
    pub(super) fn image(self, iteration: u32) -> Range<usize> {
        let start = self.images() + parity(iteration) * self.pixels;
        start..start + self.pixels
    }

    pub(super) fn state_words(self) -> usize {
        self.images() + 2 * self.pixels
    }
}

pub(super) fn parity(number: u32) -> usize {
    (number & 1) as usize
}

/// The parameters of a strip, checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    pub(super) layout: Layout,
    pub(super) strip_index: u32,
    pub(super) neighbours: u32,
    pub(super) iterations: u32,
    pub(super) coefficients: Coefficients,
}

impl Parameters {
    pub(super) fn from_words(width: u32, words: &[u32]) -> Result<Self, StepFault> {
        let Some(&[pixels, strip_index, neighbours, iterations, contrast, rate]) =
            words.first_chunk::<6>()
        else {
            return Err(wrong(format!("{} words, a strip has 6", words.len())));
        };
        if pixels == 0 || !pixels.is_multiple_of(width) || pixels > MAX_STRIP_PIXELS {
            let reason = format!(
                "{pixels} pixels, allowed are multiples of {width} up to {MAX_STRIP_PIXELS}"
            );
            return Err(wrong(reason));
        }
        if neighbours > HAS_ABOVE | HAS_BELOW {
            return Err(wrong(format!("neighbour bits {neighbours}, allowed are 0 to 3")));
        }
        if !(1..=MAX_ITERATIONS).contains(&iterations) {
            return Err(wrong(format!(
                "{iterations} iterations, allowed are 1 to {MAX_ITERATIONS}"
            )));
        }
        let coefficients = Coefficients::from_words(contrast, rate).ok_or_else(|| {
            wrong(format!(
                "contrast {contrast} and rate {rate}, allowed are 256 to 65280, 1 to 512"
            ))
        })?;
        let layout = Layout::new(width, pixels);
        Ok(Self { layout, strip_index, neighbours, iterations, coefficients })
    }

    /// Whether a strip lies on a side (0 above, 1 below).
    pub(super) fn has_neighbour(&self, side: usize) -> bool {
        self.neighbours & (HAS_ABOVE << side) != 0
    }

    /// Whether the next iteration can be computed.
    pub(super) fn is_ready(&self, state: &[u32]) -> bool {
        let iteration = state[ITERATION];
        let has_row = |side| !self.has_neighbour(side) || state[ROWS_RECEIVED + side] > iteration;
        state[ANNOUNCED] == 1 && iteration < self.iterations && has_row(0) && has_row(1)
    }
}

fn wrong(reason: String) -> StepFault {
    fault(fault_code::PARAMETERS, format!("parameters of a strip: {reason}"))
}
