//! The host's side: cutting an image, making states, reading results.

use std::ops::Range;

use crate::abi::bytes_to_words;

use super::layout::{HAS_ABOVE, HAS_BELOW, ITERATION, Layout};
use super::{DiffuseError, MAX_STRIP_PIXELS, MAX_WIDTH, Settings, from_grey, to_grey};

/// Bytes of a progress message.
pub(super) const PROGRESS_BYTES: u32 = 12;

/// Cuts `height` rows into `strips` ranges whose lengths differ by one at most.
///
/// # Errors
///
/// [`DiffuseError::Strips`] when there are no strips or more strips than rows.
///
/// ```
/// use hopwise_core::programs::diffuse::split_rows;
///
/// assert_eq!(split_rows(10, 3)?, [0..3, 3..6, 6..10]);
/// # Ok::<(), hopwise_core::programs::diffuse::DiffuseError>(())
/// ```
pub fn split_rows(height: u32, strips: u32) -> Result<Vec<Range<u32>>, DiffuseError> {
    if strips == 0 || strips > height {
        return Err(DiffuseError::Strips { height, strips });
    }
    #[expect(clippy::cast_possible_truncation, reason = "index / strips is at most 1")]
    let start = |index: u32| (u64::from(height) * u64::from(index) / u64::from(strips)) as u32;
    Ok((0..strips).map(|index| start(index)..start(index + 1)).collect())
}

/// One kernel's share of an image.
///
/// ```
/// use hopwise_core::programs::diffuse::{Settings, Strip};
///
/// let settings = Settings::new(10, 12.0, 0.2)?;
/// let strips = Strip::split(640, 480, 3)?;
/// assert_eq!(strips[1].rows(), 160..320);
/// let state = strips[1].initial_state(&vec![128; 640 * 160])?;
/// assert_eq!(strips[1].iteration(&state)?, 0);
/// assert_eq!(strips[1].grey_pixels(&state)?, vec![128; 640 * 160]);
/// assert_eq!(strips[1].parameters(&settings)[0], 640 * 160);
/// # Ok::<(), hopwise_core::programs::diffuse::DiffuseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strip {
    width: u32,
    index: u32,
    strips: u32,
    rows: Range<u32>,
}

impl Strip {
    /// Cuts an image into strips, from top to bottom.
    ///
    /// # Errors
    ///
    /// [`DiffuseError`]: no pixels or too wide, more strips than rows or none, a strip too large.
    pub fn split(width: u32, height: u32, strips: u32) -> Result<Vec<Self>, DiffuseError> {
        if !(1..=MAX_WIDTH).contains(&width) || height == 0 {
            return Err(DiffuseError::ImageSize { width, height, max_width: MAX_WIDTH });
        }
        let ranges = split_rows(height, strips)?;
        let pixels = u64::from(width) * u64::from(height.div_ceil(strips));
        if pixels > u64::from(MAX_STRIP_PIXELS) {
            return Err(DiffuseError::StripSize { pixels, max_pixels: MAX_STRIP_PIXELS });
        }
        let strip = |(index, rows)| Self { width, index, strips, rows };
        Ok((0..).zip(ranges).map(strip).collect())
    }

    /// Its place in the image, from 0 at the top.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The image's rows that it holds.
    #[must_use]
    pub fn rows(&self) -> Range<u32> {
        self.rows.clone()
    }

    /// Where its pixels are in the whole image, row by row.
    #[must_use]
    pub fn pixel_range(&self) -> Range<usize> {
        let at = |row: u32| row as usize * self.width as usize;
        at(self.rows.start)..at(self.rows.end)
    }

    /// Whether a strip lies above it, so that the ports `from_above` and `to_above` need channels.
    #[must_use]
    pub fn has_above(&self) -> bool {
        self.index > 0
    }

    /// Whether a strip lies below it, so that the ports `from_below` and `to_below` need channels.
    #[must_use]
    pub fn has_below(&self) -> bool {
        self.index + 1 < self.strips
    }

    /// Size of its kernel's state.
    #[must_use]
    pub fn state_bytes(&self) -> u64 {
        self.layout().state_words() as u64 * 4
    }

    /// Its kernel's parameters.
    #[must_use]
    pub fn parameters(&self, settings: &Settings) -> Vec<u32> {
        let above = if self.has_above() { HAS_ABOVE } else { 0 };
        let below = if self.has_below() { HAS_BELOW } else { 0 };
        vec![
            self.pixel_count(),
            self.index,
            above | below,
            settings.iterations(),
            settings.contrast_word(),
            settings.rate_word(),
        ]
    }

    /// Its kernel's first state, from the strip's own grey values, row by row.
    ///
    /// # Errors
    ///
    /// [`DiffuseError::PixelCount`] when the number of pixels is not the strip's.
    pub fn initial_state(&self, grey: &[u8]) -> Result<Vec<u8>, DiffuseError> {
        let layout = self.layout();
        if grey.len() != layout.pixels {
            let (expected, given) = (layout.pixels as u64, grey.len() as u64);
            return Err(DiffuseError::PixelCount { expected, given });
        }
        let mut state = vec![0; layout.state_words() * 4];
        let image = layout.image(0);
        let bytes = &mut state[image.start * 4..image.end * 4];
        for (word, &grey) in bytes.chunks_exact_mut(4).zip(grey) {
            word.copy_from_slice(&from_grey(grey).to_le_bytes());
        }
        Ok(state)
    }

    /// Iterations finished.
    ///
    /// # Errors
    ///
    /// [`DiffuseError::StateSize`] when the state is not this strip's.
    pub fn iteration(&self, state: &[u8]) -> Result<u32, DiffuseError> {
        self.check_size(state)?;
        Ok(words(&state[ITERATION * 4..ITERATION * 4 + 4])[0])
    }

    /// The image after the iterations finished, with 8 fraction bits: what to compare bit for bit.
    ///
    /// # Errors
    ///
    /// [`DiffuseError::StateSize`] when the state is not this strip's.
    pub fn raw_pixels(&self, state: &[u8]) -> Result<Vec<u32>, DiffuseError> {
        let image = self.layout().image(self.iteration(state)?);
        Ok(words(&state[image.start * 4..image.end * 4]))
    }

    /// The image after the iterations finished, rounded to grey values.
    ///
    /// # Errors
    ///
    /// [`DiffuseError::StateSize`] when the state is not this strip's.
    pub fn grey_pixels(&self, state: &[u8]) -> Result<Vec<u8>, DiffuseError> {
        Ok(self.raw_pixels(state)?.into_iter().map(to_grey).collect())
    }

    fn pixel_count(&self) -> u32 {
        self.width * (self.rows.end - self.rows.start)
    }

    fn layout(&self) -> Layout {
        Layout::new(self.width, self.pixel_count())
    }

    fn check_size(&self, state: &[u8]) -> Result<(), DiffuseError> {
        let (expected, given) = (self.state_bytes(), state.len() as u64);
        if expected == given { Ok(()) } else { Err(DiffuseError::StateSize { expected, given }) }
    }
}

fn words(bytes: &[u8]) -> Vec<u32> {
    let mut words = vec![0; bytes.len() / 4];
    bytes_to_words(bytes, &mut words);
    words
}

/// What a strip reports after each iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Iterations finished.
    pub iteration: u32,
    /// Iterations in all.
    pub iterations: u32,
    /// Index of the strip.
    pub strip_index: u32,
}

impl Progress {
    /// Reads a message of the out-port `progress`; `None` when it is none.
    #[must_use]
    pub fn from_payload(payload: &[u8]) -> Option<Self> {
        let words = words(<&[u8; PROGRESS_BYTES as usize]>::try_from(payload).ok()?);
        let &[iteration, iterations, strip_index] = words.first_chunk::<3>()?;
        Some(Self { iteration, iterations, strip_index })
    }

    /// Whether this was the strip's last iteration.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.iteration == self.iterations
    }

    pub(super) fn to_words(self) -> [u32; 3] {
        [self.iteration, self.iterations, self.strip_index]
    }
}
