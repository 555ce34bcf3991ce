//! The formula for one pixel, in 32-bit integers.
//!
//! | quantity | fraction bits | range | why it fits |
//! |---|---|---|---|
//! | pixel, difference d, contrast K | 8 | up to 255 x 2^8 = 65,280; K from 256 | |
//! | 1 / K | 16 | 257 to 65,536 | 2^24 / K, rounded |
//! | \|d\| / K | 8 | up to 65,280 | 65,280 x 65,536 + 2^15 < 2^32 |
//! | conductance g | 15 | 0 to 32,768 | 2^31 / (2^16 + (\|d\| / K)^2); the divisor is below 2^32 whatever d is |
//! | flux g x d | 12 | up to 65,280 x 2^4 | 32,768 x 65,280 < 2^31, then 11 bits are cut |
//! | rate | 11 | up to 512 = 1/4 | |
//! | rate x sum of fluxes | 23 | up to 65,280 x 2^15 in magnitude | 2^4 x 4 x 512 = 2^15; with the rounding half below 2^31 |
//!
//! A pixel never leaves the range of itself and its four neighbours, rounding included: a flux is
//! at most its difference, four quarters of differences stay within the range, and the range ends
//! at whole steps, to which rounding does not add.
//! The conductance is within half a percent of the exact one, plus 2^-15.

/// Fraction bits of a pixel.
const PIXEL_BITS: u32 = 8;

/// White: 255 with 8 fraction bits.
pub const MAX_PIXEL: u32 = 255 << PIXEL_BITS;

/// The contrast and the rate as the formula uses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coefficients {
    inverse_contrast: u32,
    rate: u32,
}

impl Coefficients {
    /// Smallest contrast: one grey level.
    pub const MIN_CONTRAST: u32 = 1 << PIXEL_BITS;

    /// Largest contrast: 255 grey levels.
    pub const MAX_CONTRAST: u32 = MAX_PIXEL;

    /// Largest rate: 1/4, above which the explicit scheme is unstable.
    pub const MAX_RATE: u32 = 1 << (RATE_BITS - 2);

    /// From the parameter words: `contrast` with 8 fraction bits, `rate` with 11.
    /// `None` when one of them is outside its range; a rate of 0 is.
    #[must_use]
    pub fn from_words(contrast: u32, rate: u32) -> Option<Self> {
        let in_range = (Self::MIN_CONTRAST..=Self::MAX_CONTRAST).contains(&contrast)
            && (1..=Self::MAX_RATE).contains(&rate);
        in_range.then(|| Self { inverse_contrast: ((1 << 24) + contrast / 2) / contrast, rate })
    }
}

/// Fraction bits of the rate.
pub(super) const RATE_BITS: u32 = 11;

/// Fraction bits of a flux.
const FLUX_BITS: u32 = 12;

/// Fraction bits of a conductance.
const CONDUCTANCE_BITS: u32 = 15;

/// Bits to cut from rate x flux to get a pixel.
const CHANGE_SHIFT: u32 = RATE_BITS + FLUX_BITS - PIXEL_BITS;

/// The pixel's next value from its own and its neighbours' values.
///
/// All values have 8 fraction bits and are at most [`MAX_PIXEL`]. Larger ones give a meaningless
/// result; nothing panics. Costs four divisions.
///
/// ```
/// use hopwise_core::programs::diffuse::{Coefficients, diffuse_pixel, from_grey};
///
/// // Contrast 10, rate 1/4.
/// let coefficients = Coefficients::from_words(10 << 8, 512).expect("in range");
/// let grey = from_grey(100);
/// // A speck of five levels loses most of its height; a step of 100 levels hardly moves.
/// let speck = diffuse_pixel(from_grey(105), grey, grey, grey, grey, coefficients);
/// assert_eq!(speck, from_grey(101));
/// let edge = diffuse_pixel(grey, grey, grey, grey, from_grey(200), coefficients);
/// assert!(edge < from_grey(101));
/// ```
#[must_use]
pub fn diffuse_pixel(
    centre: u32,
    north: u32,
    south: u32,
    west: u32,
    east: u32,
    coefficients: Coefficients,
) -> u32 {
    let flux = |neighbour| flux(centre, neighbour, coefficients);
    let sum = flux(north).wrapping_add(flux(south)).wrapping_add(flux(west));
    let sum = sum.wrapping_add(flux(east));
    let change = sum.wrapping_mul(coefficients.rate.cast_signed());
    let rounded = change.wrapping_add(1 << (CHANGE_SHIFT - 1)) >> CHANGE_SHIFT;
    centre.wrapping_add_signed(rounded)
}

/// What flows from the neighbour to the centre, 12 fraction bits. The opposite flow is exactly the
/// negative, so fluxes create nothing.
fn flux(centre: u32, neighbour: u32, coefficients: Coefficients) -> i32 {
    let difference = neighbour.wrapping_sub(centre).cast_signed();
    let magnitude = difference.unsigned_abs();
    let scaled = magnitude.wrapping_mul(coefficients.inverse_contrast).wrapping_add(1 << 15) >> 16;
    // `scaled` has 16 bits, so that the divisor neither wraps nor is zero.
    let conductance = (1 << (16 + CONDUCTANCE_BITS)) / ((1 << 16) + scaled * scaled);
    let cut = CONDUCTANCE_BITS + PIXEL_BITS - FLUX_BITS;
    let flux = (conductance.wrapping_mul(magnitude) >> cut).cast_signed();
    if difference < 0 { -flux } else { flux }
}

/// A grey value of 0 to 255 as a pixel.
#[must_use]
pub const fn from_grey(grey: u8) -> u32 {
    (grey as u32) << PIXEL_BITS
}

/// The grey value nearest to a pixel.
#[must_use]
pub fn to_grey(pixel: u32) -> u8 {
    let rounded = pixel.saturating_add(1 << (PIXEL_BITS - 1)) >> PIXEL_BITS;
    u8::try_from(rounded).unwrap_or(u8::MAX)
}
