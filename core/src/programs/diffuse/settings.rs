//! What all strips of an image share.

use super::formula::{Coefficients, RATE_BITS};
use super::{DiffuseError, MAX_ITERATIONS};

/// Iterations, contrast and rate, checked and in the program's number format.
///
/// ```
/// use hopwise_core::programs::diffuse::Settings;
///
/// let settings = Settings::new(80, 12.0, 0.2)?;
/// assert_eq!(settings.iterations(), 80);
/// let error = Settings::new(80, 12.0, 0.3).unwrap_err();
/// assert_eq!(error.to_string(), "the rate is 0.3, allowed is 0.0005 to 0.25");
/// # Ok::<(), hopwise_core::programs::diffuse::DiffuseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    iterations: u32,
    contrast: u32,
    rate: u32,
}

impl Settings {
    /// Takes the contrast K in grey levels (1 to 255) and the rate lambda (0.0005 to 0.25), and
    /// rounds them to 8 and 11 fraction bits.
    ///
    /// # Errors
    ///
    /// [`DiffuseError::Setting`] names the value that is outside its range.
    pub fn new(iterations: u32, contrast: f64, rate: f64) -> Result<Self, DiffuseError> {
        let wrong = |setting, value, allowed: &str| DiffuseError::Setting {
            setting,
            value,
            allowed: allowed.to_owned(),
        };
        if !(1..=MAX_ITERATIONS).contains(&iterations) {
            let allowed = format!("1 to {MAX_ITERATIONS}");
            return Err(wrong("the number of iterations", iterations.into(), &allowed));
        }
        if !(1.0..=255.0).contains(&contrast) {
            return Err(wrong("the contrast", contrast, "1 to 255 grey levels"));
        }
        if !(0.0005..=0.25).contains(&rate) {
            return Err(wrong("the rate", rate, "0.0005 to 0.25"));
        }
        let contrast = to_fixed(contrast, 8);
        let rate = to_fixed(rate, RATE_BITS);
        Ok(Self { iterations, contrast, rate })
    }

    /// Number of iterations.
    #[must_use]
    pub fn iterations(&self) -> u32 {
        self.iterations
    }

    /// Contrast and rate for [`diffuse_pixel`](super::diffuse_pixel).
    ///
    /// # Panics
    ///
    /// Never: settings are checked when they are made.
    #[must_use]
    pub fn coefficients(&self) -> Coefficients {
        Coefficients::from_words(self.contrast, self.rate).expect("settings are in range")
    }

    /// The contrast with 8 fraction bits.
    #[must_use]
    pub fn contrast_word(&self) -> u32 {
        self.contrast
    }

    /// The rate with 11 fraction bits.
    #[must_use]
    pub fn rate_word(&self) -> u32 {
        self.rate
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be 0 to 255"
)]
fn to_fixed(value: f64, fraction_bits: u32) -> u32 {
    (value * f64::from(1u32 << fraction_bits)).round() as u32
}
