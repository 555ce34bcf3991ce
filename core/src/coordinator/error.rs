//! What a coordinator refuses, and the remedy.

use std::fmt;

use thiserror::Error;

use super::refusal::RefusalList;
use super::{DeviceState, Refusal, RefusalReason};
use crate::id::KernelId;

/// The result of a coordinator's operations.
pub type Result<T> = std::result::Result<T, CoordinatorError>;

/// An operation of a coordinator was refused; nothing has changed.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum CoordinatorError {
    /// The index belongs to a registered device.
    #[error("index {index} belongs to `{name}`; unregister that device, or use another index")]
    IndexInUse {
        /// The index.
        index: usize,
        /// The name of the device that has it.
        name: String,
    },
    /// The index belongs to a device that is leaving.
    #[error(
        "index {index} is free once the {kernels} kernels of the leaving device are moved or removed; \
         wait for that, or use another index"
    )]
    IndexLeaving {
        /// The index.
        index: usize,
        /// Kernels still on the device.
        kernels: usize,
    },
    /// No device has the index.
    #[error("no device has index {index}; registered are {known:?}")]
    UnknownDevice {
        /// The index.
        index: usize,
        /// The indices in use.
        known: Vec<usize>,
    },
    /// The named device cannot take the kernel.
    #[error("device {index} cannot take kernel {kernel:?}: {reason}; name another device")]
    DeviceRefused {
        /// The device.
        index: usize,
        /// The kernel.
        kernel: KernelId,
        /// Why not.
        reason: RefusalReason,
    },
    /// No device can take the kernel.
    #[error("no device fits: {}", RefusalList(refusals))]
    NoDevice {
        /// For every device, why not. Empty when none is registered.
        refusals: Vec<Refusal>,
    },
    /// The strategy is `Custom` and no selector was set.
    #[error("the strategy is custom and there is no selector; call set_custom_selector first")]
    NoSelector,
    /// The custom selector panicked.
    #[error("the custom selector panicked: {message}")]
    SelectorPanicked {
        /// The panic's text.
        message: String,
    },
    /// The custom selector chose a device that cannot take the kernel.
    #[error(
        "the custom selector chose device {index}, which cannot take the kernel: {}",
        OptionalReason(reason)
    )]
    SelectorRefused {
        /// The selector's answer.
        index: usize,
        /// Why not; `None` when no device has the index.
        reason: Option<RefusalReason>,
    },
    /// The kernel is mapped to no device.
    #[error("kernel {kernel:?} is on no device; place or assign it first")]
    UnknownKernel {
        /// The kernel.
        kernel: KernelId,
    },
    /// The kernel is mapped already.
    #[error(
        "kernel {kernel:?} is on device {device} already; remove it first, or request a migration"
    )]
    AlreadyPlaced {
        /// The kernel.
        kernel: KernelId,
        /// Its device.
        device: usize,
    },
    /// A migration to the device that the kernel is on.
    #[error("kernel {kernel:?} is on device {device} already; name another target")]
    SameDevice {
        /// The kernel.
        kernel: KernelId,
        /// Its device, and the target.
        device: usize,
    },
    /// The request or plan does not describe the world any more.
    #[error("the move of kernel {kernel:?} to device {target} is stale: {reason}; make a new one")]
    StaleRequest {
        /// The kernel.
        kernel: KernelId,
        /// The target.
        target: usize,
        /// What has changed.
        reason: StaleReason,
    },
    /// The kernel was placed by a fleet.
    #[error("kernel {kernel:?} is managed by a fleet; use the fleet's methods to change it")]
    ManagedByFleet {
        /// The kernel.
        kernel: KernelId,
    },
    /// The fleet named a kernel that it did not place.
    #[error("kernel {kernel:?} is not managed by a fleet; use the coordinator's own methods")]
    NotManaged {
        /// The kernel.
        kernel: KernelId,
    },
    /// The device cannot go from one state to the other.
    #[error("device {index} cannot go from {from} to {to}; {}", transition_remedy(*from, *to))]
    InvalidTransition {
        /// The device.
        index: usize,
        /// Its state.
        from: DeviceState,
        /// The state asked for.
        to: DeviceState,
    },
    /// More memory is available than there is.
    #[error(
        "device {index}: {available_bytes} bytes available of {total_bytes} in all; correct the figures"
    )]
    MemoryExceedsTotal {
        /// The device.
        index: usize,
        /// Bytes reported as available.
        available_bytes: u64,
        /// Bytes of the device.
        total_bytes: u64,
    },
    /// A topology names a device that is not registered.
    #[error(
        "the topology names device {index}, which is not registered (registered: {known:?}); \
         register it first, or leave it out"
    )]
    TopologyDevice {
        /// The device.
        index: usize,
        /// The indices in use.
        known: Vec<usize>,
    },
}

/// Why a request or plan is stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StaleReason {
    /// The kernel is mapped to no device any more.
    KernelGone,
    /// The kernel is on another device, or its device was registered anew.
    SourceChanged,
    /// The target left, was lost, or was registered anew.
    TargetChanged,
    /// The request was completed or cancelled, or a newer one took its place.
    Ended,
}

impl fmt::Display for StaleReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::KernelGone => "the kernel is on no device any more",
            Self::SourceChanged => "the kernel is not on the source device any more",
            Self::TargetChanged => "the target left or was lost",
            Self::Ended => "it was completed, cancelled or replaced",
        })
    }
}

struct OptionalReason<'a>(&'a Option<RefusalReason>);

impl fmt::Display for OptionalReason<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(reason) => fmt::Display::fmt(reason, formatter),
            None => formatter.write_str("no device has this index"),
        }
    }
}

fn transition_remedy(from: DeviceState, to: DeviceState) -> &'static str {
    match (from, to) {
        (DeviceState::Leaving, _) => "it stays leaving; register the device anew when it is empty",
        (_, DeviceState::Leaving) => "call unregister_device",
        (DeviceState::Lost | DeviceState::Unresponsive, _) => {
            "open it again and put it on probation first"
        }
        (DeviceState::Probation, _) => "make it active first",
        _ => "probation follows a loss only",
    }
}
