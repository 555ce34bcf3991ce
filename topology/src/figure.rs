//! Figures that know where they come from.

use std::borrow::Cow;
use std::fmt;

use crate::TopologyError;

#[cfg(test)]
mod tests;

/// A positive, finite number together with its origin, or nothing at all.
///
/// An unknown figure is neither zero nor "no link": it has no value, and never compares as the
/// best one. The unit depends on the place where a figure stands: GB/s (10^9 bytes per second,
/// one direction) for a bandwidth, microseconds for a latency.
///
/// ```
/// use hopwise_topology::{Figure, Quality};
///
/// let bandwidth = Figure::estimated(12.0, "PCIe 3 x16")?;
/// assert_eq!(bandwidth.value(), Some(12.0));
/// assert_eq!(bandwidth.quality(), Quality::Estimated);
/// assert_eq!(Figure::unknown().value(), None);
/// assert!(Figure::measured(0.0, 1_700_000_000).is_err());
/// # Ok::<(), hopwise_topology::TopologyError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Present exactly when the provenance is not `Unknown`.
    value: Option<f64>,
    provenance: Provenance,
}

impl Figure {
    /// A figure that nobody knows.
    pub const fn unknown() -> Self {
        Self { value: None, provenance: Provenance::Unknown }
    }

    /// A figure that follows from a rule rather than from this machine.
    ///
    /// # Errors
    /// [`TopologyError::InvalidFigure`] unless `value` is positive and finite.
    pub fn estimated(
        value: f64,
        rule: impl Into<Cow<'static, str>>,
    ) -> Result<Self, TopologyError> {
        Self::known(value, Provenance::Estimated { rule: rule.into() })
    }

    /// A figure that a tool or driver states about this machine.
    ///
    /// # Errors
    /// [`TopologyError::InvalidFigure`] unless `value` is positive and finite.
    pub fn reported(value: f64, by: impl Into<Cow<'static, str>>) -> Result<Self, TopologyError> {
        Self::known(value, Provenance::Reported { by: by.into() })
    }

    /// A figure measured on this machine, at a time in seconds since 1970 (UTC).
    ///
    /// # Errors
    /// [`TopologyError::InvalidFigure`] unless `value` is positive and finite.
    pub fn measured(value: f64, unix_seconds: u64) -> Result<Self, TopologyError> {
        Self::known(value, Provenance::Measured { unix_seconds })
    }

    fn known(value: f64, provenance: Provenance) -> Result<Self, TopologyError> {
        if value.is_finite() && value > 0.0 {
            Ok(Self { value: Some(value), provenance })
        } else {
            Err(TopologyError::InvalidFigure { value })
        }
    }

    /// The lesser of two figures, with the worse of their origins; unknown if either is.
    pub(crate) fn narrower(&self, other: &Self) -> Self {
        let (narrow, wide) = if other.value < self.value { (other, self) } else { (self, other) };
        narrow.joined(wide, |narrow, _| narrow)
    }

    /// The sum of two figures, with the worse of their origins; unknown if either is, or if the
    /// sum is not finite.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        self.joined(other, |a, b| a + b)
    }

    /// Of two origins of equal quality, that of `self` stands.
    fn joined(&self, other: &Self, join: impl Fn(f64, f64) -> f64) -> Self {
        let Some((a, b)) = self.value.zip(other.value) else { return Self::unknown() };
        let worse = if other.quality() < self.quality() { other } else { self };
        Self::known(join(a, b), worse.provenance.clone()).unwrap_or_default()
    }

    /// The number, or `None` if it is unknown.
    pub const fn value(&self) -> Option<f64> {
        self.value
    }

    /// Where the number comes from.
    pub const fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// How far the number can be trusted.
    pub const fn quality(&self) -> Quality {
        self.provenance.quality()
    }

    /// Whether there is no number.
    pub const fn is_unknown(&self) -> bool {
        self.value.is_none()
    }
}

impl Default for Figure {
    fn default() -> Self {
        Self::unknown()
    }
}

/// The number with the mark of its quality, as [`Quality::mark`] gives it: `~12`, `?`.
impl fmt::Display for Figure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = marked(self.value, self.quality());
        formatter.pad(&text)
    }
}

/// A number of at most three decimals behind the mark of its quality.
pub(crate) fn marked(value: Option<f64>, quality: Quality) -> String {
    let mark = quality.mark();
    match value {
        None => Quality::Unknown.mark().to_owned(),
        // Three decimals would show a small figure as zero, which no figure is.
        Some(value) if value < 0.001 => format!("{mark}{value:.1e}"),
        Some(value) => format!("{mark}{}", (value * 1000.0).round() / 1000.0),
    }
}

/// Where a figure comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Provenance {
    /// Measured on this machine.
    Measured {
        /// When, in seconds since 1970 (UTC).
        unix_seconds: u64,
    },
    /// Stated about this machine by a tool, a driver or a file.
    Reported {
        /// By which one.
        by: Cow<'static, str>,
    },
    /// Derived from general facts about such machines.
    Estimated {
        /// By which rule.
        rule: Cow<'static, str>,
    },
    /// There is no figure.
    Unknown,
}

impl Provenance {
    /// How far a figure of this origin can be trusted.
    pub const fn quality(&self) -> Quality {
        match self {
            Self::Measured { .. } => Quality::Measured,
            Self::Reported { .. } => Quality::Reported,
            Self::Estimated { .. } => Quality::Estimated,
            Self::Unknown => Quality::Unknown,
        }
    }
}

/// How far a figure can be trusted, from worst to best.
///
/// The order is strict: `Unknown < Estimated < Reported < Measured`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quality {
    /// There is no figure.
    Unknown,
    /// From a rule about such machines.
    Estimated,
    /// From a statement about this machine.
    Reported,
    /// From a measurement on this machine.
    Measured,
}

impl Quality {
    /// What stands before a figure wherever one is printed: nothing for a measured figure, `=`
    /// for a reported one, `~` for an estimate; an unknown figure is a lone `?`.
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Unknown => "?",
            Self::Estimated => "~",
            Self::Reported => "=",
            Self::Measured => "",
        }
    }
}
