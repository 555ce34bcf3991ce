//! `diffuse-<width>`: edge-preserving smoothing of an image that is cut into strips.
//!
//! The method is anisotropic diffusion after P. Perona and J. Malik, "Scale-space and edge detection
//! using anisotropic diffusion", IEEE Transactions on Pattern Analysis and Machine Intelligence
//! 12(7), 1990, with their second conductance `g(d) = K^2 / (K^2 + d^2)`: a difference far below the
//! contrast K is smoothed away, one far above it stays. [`diffuse_pixel`] is the formula, number
//! format included.
//!
//! Each kernel owns a strip of whole rows, from one row to the whole image. In every iteration it
//! needs one row from the strip above and one from the strip below. The image's border is a mirror
//! (Neumann condition): the neighbour of a border pixel outside the image is the pixel itself.
//!
//! [`Strip`] makes parameters and states and reads results; [`Settings`] holds what all strips of
//! an image share. Launch every kernel with *start*.
//!
//! # Parameters
//!
//! | word | meaning | allowed |
//! |---|---|---|
//! | 0 | pixels of the strip | a multiple of the width from one row up to [`MAX_STRIP_PIXELS`] |
//! | 1 | index of the strip, reported in progress messages | any |
//! | 2 | bit 0: a strip lies above; bit 1: a strip lies below | 0 to 3 |
//! | 3 | iterations N | 1 to [`MAX_ITERATIONS`] |
//! | 4 | contrast K, 8 fraction bits | 256 to 65,280 |
//! | 5 | rate, 11 fraction bits | 1 to 512 |
//!
//! # State
//!
//! Exactly 8 + 4 x width + 2 x pixels words. A pixel is a word with 8 fraction bits, at most
//! [`MAX_PIXEL`].
//!
//! | words | meaning |
//! |---|---|
//! | 0 | n, iterations finished; 0 at first |
//! | 1 | 1 once the rows of iteration 0 are sent; 0 at first |
//! | 2 | rows received from above; 0 at first |
//! | 3 | rows received from below; 0 at first |
//! | 4 to 7 | notes from pass to pass; 0 after every step |
//! | width words each | rows received: from above with an even tag, from above odd, from below even, from below odd |
//! | pixels words | image after an even number of iterations, row by row; the input at first |
//! | pixels words | image after an odd number of iterations; zeros at first |
//!
//! # Ports
//!
//! | port | index | payload | tag and key |
//! |---|---|---|---|
//! | in `from_above` | 0 | width words: the last row of the strip above | tag: its iterations |
//! | in `from_below` | 1 | width words: the first row of the strip below | tag: its iterations |
//! | out `to_above` | 0 | width words: the first row of this strip | iterations finished, 0 to N - 1 |
//! | out `to_below` | 1 | width words: the last row of this strip | iterations finished, 0 to N - 1 |
//! | out `progress` | 2 | [`Progress`]: iterations finished, N, index of the strip | iterations finished, 1 to N |
//!
//! Rows are sent only to sides that have a strip. The strip is done when its progress says N of N.
//!
//! # Passes
//!
//! The strip is *ready* when word 1 of the state is 1, n < N, and row n has come from each side that
//! has a strip (the count of rows is above n). A neighbour can be one iteration ahead and no more,
//! since it waits for this strip's rows: two rows a side, chosen by the parity of the tag, suffice.
//!
//! | pass | invocations | what it does |
//! |---|---|---|
//! | receive | width | checks parameters, state and tags; copies the rows received into the state and checks their pixels. If word 1 is 0: begins to send rows 0. If ready: begins to send rows n + 1 unless n + 1 = N, sends progress |
//! | smooth_image | words of state | if n = 0: checks the image's pixels. If ready: image n + 1 from image n and the rows n. Fills the rows that are sent |
//! | commit | 1 | counts the rows received; word 1 = 1; if it was ready: n += 1. Asks to run again if the strip is ready now |
//!
//! The grid of *smooth_image* is not the parameter that says how many pixels there are: however wrong
//! that is, it costs a fault and no time.
//!
//! So a step computes one iteration at most, and what it computes depends on rows alone, never on
//! when they came.
//!
//! # Faults
//!
//! [`STATE`](super::fault_code::STATE), [`PARAMETERS`](super::fault_code::PARAMETERS) and
//! [`MESSAGE`](super::fault_code::MESSAGE) (a row of another length); for a row that is not the next one
//! [`ROW_REPEATED`](super::fault_code::ROW_REPEATED), [`ROW_MISSING`](super::fault_code::ROW_MISSING) and
//! [`ROW_UNEXPECTED`](super::fault_code::ROW_UNEXPECTED);
//! [`PIXEL_RANGE`](super::fault_code::PIXEL_RANGE) for a pixel above [`MAX_PIXEL`] in a row received or,
//! at iteration 0, in the state. Where several things are wrong, the first of this list counts: the
//! parameters, the state's size and header, the state's pixels, the rows in the order of delivery.
//! A strip whose row never comes waits for it.

use std::sync::Arc;

use crate::program::{Grid, Program, ProgramError};

mod error;
mod formula;
mod layout;
mod settings;
mod step;
mod strip;

pub use error::DiffuseError;
pub use formula::{Coefficients, MAX_PIXEL, diffuse_pixel, from_grey, to_grey};
pub use settings::Settings;
pub use strip::{Progress, Strip, split_rows};

/// What comes before the width in the program's name.
pub const NAME_PREFIX: &str = "diffuse-";

/// Largest width of an image, in pixels.
pub const MAX_WIDTH: u32 = 65_536;

/// Most pixels of one strip: its state then has 8 GiB, and its words still have 32-bit indices.
pub const MAX_STRIP_PIXELS: u32 = 1 << 30;

/// Most iterations.
pub const MAX_ITERATIONS: u32 = 1_000_000;

/// Index of the in-port `from_above`.
pub const FROM_ABOVE: u32 = 0;

/// Index of the in-port `from_below`.
pub const FROM_BELOW: u32 = 1;

/// Index of the out-port `to_above`.
pub const TO_ABOVE: u32 = 0;

/// Index of the out-port `to_below`.
pub const TO_BELOW: u32 = 1;

/// Index of the out-port `progress`.
pub const PROGRESS: u32 = 2;

/// Words of parameters.
const PARAMETER_WORDS: u32 = 6;

/// Two rows a side: more cannot come before this strip sends again.
const INBOX_SLOTS: u32 = 4;

/// A row a side and a progress message.
const OUTBOX_SLOTS: u32 = 3;

/// The program for images of this width, called `diffuse-<width>`.
///
/// # Errors
///
/// [`ProgramError::Size`] when the width is not 1 to [`MAX_WIDTH`].
///
/// ```
/// use hopwise_core::programs::diffuse;
///
/// assert_eq!(diffuse::diffuse(512)?.name(), "diffuse-512");
/// assert!(diffuse::diffuse(0).is_err());
/// # Ok::<(), hopwise_core::program::ProgramError>(())
/// ```
pub fn diffuse(width: u32) -> Result<Arc<Program>, ProgramError> {
    let name = format!("{NAME_PREFIX}{width}");
    if !(1..=MAX_WIDTH).contains(&width) {
        return Err(ProgramError::Size {
            program: name,
            what: "the image's width".to_owned(),
            value: width.into(),
            allowed: format!("1 to {MAX_WIDTH}"),
        });
    }
    Program::builder(name)
        .in_port("from_above", width * 4)
        .in_port("from_below", width * 4)
        .out_port("to_above", width * 4)
        .out_port("to_below", width * 4)
        .out_port("progress", strip::PROGRESS_BYTES)
        .inbox_slots(INBOX_SLOTS)
        .outbox_slots(OUTBOX_SLOTS)
        .parameter_words(PARAMETER_WORDS)
        .host(move |host_step| step::step(width, host_step))
        .pass("receive", Grid::Fixed(width))
        .pass("smooth_image", Grid::StateWords)
        .pass("commit", Grid::Fixed(1))
        .wgsl(wgsl(width))
        .cuda_c(cuda_c(width))
        .build()
}

/// The width stands behind the text, so that line numbers in errors are those of the file.
fn cuda_c(width: u32) -> String {
    // The width stands in front; lines of errors are those of the file.
    format!("#define WIDTH {width}u\n#line 1\n{}", include_str!("diffuse/diffuse.cu"))
}

fn wgsl(width: u32) -> String {
    format!("{}\nconst WIDTH: u32 = {width}u;\n", include_str!("diffuse/diffuse.wgsl"))
}
