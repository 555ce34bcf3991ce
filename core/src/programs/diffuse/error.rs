//! What can be wrong with settings, strips and states.

use thiserror::Error;

/// An image cannot be smoothed that way.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum DiffuseError {
    /// A setting is outside its range.
    #[error("{setting} is {value}, allowed is {allowed}")]
    Setting {
        /// Which setting.
        setting: &'static str,
        /// Its value.
        value: f64,
        /// What is allowed.
        allowed: String,
    },
    /// The image has no pixels or is too wide.
    #[error(
        "an image of {width} x {height} pixels: allowed are widths of 1 to {max_width} and heights from 1"
    )]
    ImageSize {
        /// The image's width.
        width: u32,
        /// The image's height.
        height: u32,
        /// The largest width.
        max_width: u32,
    },
    /// The image cannot be cut into that many strips.
    #[error("cannot cut {height} rows into {strips} strips: ask for 1 to {height}")]
    Strips {
        /// Rows of the image.
        height: u32,
        /// Strips asked for.
        strips: u32,
    },
    /// A strip holds more pixels than one kernel can.
    #[error("a strip of {pixels} pixels: a kernel holds at most {max_pixels}, use more kernels")]
    StripSize {
        /// Pixels of the largest strip.
        pixels: u64,
        /// The limit.
        max_pixels: u32,
    },
    /// The pixels given are not the strip's.
    #[error("{given} pixels given for a strip of {expected}")]
    PixelCount {
        /// Pixels of the strip.
        expected: u64,
        /// Pixels given.
        given: u64,
    },
    /// The state given is not the strip's.
    #[error("{given} bytes of state given for a strip whose state has {expected}")]
    StateSize {
        /// Bytes of the strip's state.
        expected: u64,
        /// Bytes given.
        given: u64,
    },
}
