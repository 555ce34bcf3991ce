//! Why devices were refused, and how the others rank.

use std::fmt;

use serde::Serialize;

use super::{CoordinatorError, DeviceState, Incarnation};
use crate::device_info::{BackendKind, ComputeCapability};
use crate::id::KernelId;

/// Why one device cannot take a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RefusalReason {
    /// No device has the index, which the preferred devices name.
    NotRegistered,
    /// The device is not active.
    State(DeviceState),
    /// A set of preferred devices was given, and the device is not in it.
    NotPreferred,
    /// The options rule the device out.
    Excluded,
    /// The device is driven through another interface.
    Backend {
        /// What the options ask for.
        wanted: BackendKind,
        /// What the device has.
        found: BackendKind,
    },
    /// The compute capability is too low, or the device has none.
    ComputeCapability {
        /// What the options ask for.
        wanted: ComputeCapability,
        /// What the device has.
        found: Option<ComputeCapability>,
    },
    /// The device cannot access the memory of another one.
    NoPeerAccess {
        /// The other device.
        with: usize,
    },
    /// Kernels and reservations fill the device.
    Full {
        /// Kernels on the device.
        kernels: usize,
        /// Reservations for migrations in flight.
        reserved: usize,
        /// Most of both together.
        capacity: usize,
    },
    /// Too little memory is left to promise.
    Memory {
        /// Bytes asked for.
        required_bytes: u64,
        /// Bytes that can still be promised; 0 also where nobody reported any.
        available_bytes: u64,
    },
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRegistered => write!(formatter, "it is preferred, but not registered"),
            Self::State(state) => write!(formatter, "it is {state}"),
            Self::NotPreferred => write!(formatter, "it is not among the preferred devices"),
            Self::Excluded => write!(formatter, "the options exclude it"),
            Self::Backend { wanted, found } => {
                write!(formatter, "it is a {found} device, {wanted} was asked for")
            }
            Self::ComputeCapability { wanted, found: Some(found) } => {
                write!(formatter, "its compute capability is {found}, {wanted} was asked for")
            }
            Self::ComputeCapability { wanted, found: None } => {
                write!(formatter, "it has no compute capability, {wanted} was asked for")
            }
            Self::NoPeerAccess { with } => {
                write!(formatter, "it has no access to the memory of device {with}")
            }
            Self::Full { kernels, reserved, capacity } => write!(
                formatter,
                "it is full: {kernels} kernels and {reserved} reservations, {capacity} at most"
            ),
            Self::Memory { required_bytes, available_bytes } => write!(
                formatter,
                "{required_bytes} bytes of memory were asked for, {available_bytes} are left"
            ),
        }
    }
}

/// One device that cannot take a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The device's index.
    pub device: usize,
    /// The first obstacle found.
    pub reason: RefusalReason,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "device {}: {}", self.device, self.reason)
    }
}

/// Prints refusals one after the other, for error texts.
pub(super) struct RefusalList<'a>(pub(super) &'a [Refusal]);

impl fmt::Display for RefusalList<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return write!(formatter, "no device is registered");
        }
        for (position, refusal) in self.0.iter().enumerate() {
            let separator = if position == 0 { "" } else { "; " };
            write!(formatter, "{separator}{refusal}")?;
        }
        Ok(())
    }
}

/// A device that can take a kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Candidate {
    /// The device's index.
    pub device: usize,
    /// Higher is better; comparable within one explanation only.
    ///
    /// By strategy: minus the index (first available), free share of the capacity (least loaded),
    /// minus the turns until it is next (round robin), bytes left to promise (memory based), major
    /// number plus a hundredth of the minor one, -1 without any (compute capability), 1 for the
    /// selector's choice and 0 for the others (custom).
    pub score: f64,
}

/// How a choice would be made now.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// The devices that fit, best first.
    pub candidates: Vec<Candidate>,
    /// The devices that do not, and why, by index.
    pub refusals: Vec<Refusal>,
    /// Why the custom selector gave no usable answer.
    pub selector_error: Option<CoordinatorError>,
}

impl Explanation {
    /// The device that would be chosen.
    #[must_use]
    pub fn choice(&self) -> Option<usize> {
        match self.selector_error {
            Some(_) => None,
            None => self.candidates.first().map(|best| best.device),
        }
    }
}

/// A kernel was put on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Placement {
    /// The kernel.
    pub kernel: KernelId,
    /// The device's index.
    pub device: usize,
    /// Which registration of the index.
    pub incarnation: Incarnation,
}
