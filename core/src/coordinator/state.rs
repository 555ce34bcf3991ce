//! The states of a device, and which may follow which.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a device is fit for.
///
/// ```text
///            +--------> degraded
///            v             |
///         active <---------+            any state --unregister--> leaving
///            |  ^
///            |  +--- probation <---+
///            v           |         |
///       unresponsive <---+         |
///            |           v         |
///            +--------> lost ------+     (unresponsive --> probation, too)
/// ```
///
/// | state | selected | named as a target | relays | its kernels |
/// |---|---|---|---|---|
/// | active | yes | yes | yes | run |
/// | degraded | no | yes | yes | run |
/// | on probation | no | no | no | stay mapped |
/// | leaving | no | no | no | run until they are moved |
/// | unresponsive, lost | no | no | no | are lost, but stay mapped |
///
/// A degraded device works, only worse than it should. Nothing new is put on it by selection or
/// planning; whoever names it in `assign_kernel` or `request_migration` gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DeviceState {
    /// Works and can be selected.
    Active,
    /// Works worse than it should. Not selected, but may be named.
    Degraded,
    /// Unregistered; kernels remain on it. It stays so until they are gone.
    Leaving,
    /// A step outlived its limit; nobody knows what the device does.
    Unresponsive,
    /// Gone; its memory cannot be read.
    Lost,
    /// Opened again after a loss, not yet trusted.
    Probation,
}

impl DeviceState {
    /// Whether selection may return a device in this state.
    #[must_use]
    pub fn is_selectable(self) -> bool {
        self == Self::Active
    }

    /// Whether kernels can be assigned or migrated to a device in this state by naming it.
    #[must_use]
    pub fn accepts_kernels(self) -> bool {
        matches!(self, Self::Active | Self::Degraded)
    }

    /// Whether messages between two other devices may pass through a device in this state.
    #[must_use]
    pub fn relays(self) -> bool {
        self.accepts_kernels()
    }

    /// Whether a health source may report `next` of a device in this state. Reporting the present
    /// state again is allowed. Leaving is entered and left through unregistering alone.
    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        match (self, next) {
            (Self::Leaving, _) | (_, Self::Leaving) => false,
            (now, next) if now == next => true,
            (Self::Active, next) => next != Self::Probation,
            (Self::Degraded, next) => next != Self::Probation,
            (Self::Unresponsive, next) => matches!(next, Self::Lost | Self::Probation),
            (Self::Lost, next) => next == Self::Probation,
            (Self::Probation, next) => next != Self::Degraded,
        }
    }
}

impl fmt::Display for DeviceState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Active => "active",
            Self::Degraded => "degraded",
            Self::Leaving => "leaving",
            Self::Unresponsive => "unresponsive",
            Self::Lost => "lost",
            Self::Probation => "on probation",
        })
    }
}
