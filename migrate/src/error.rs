//! Why a kernel was not moved, and what is left.

use std::fmt;
use std::time::Duration;

use hopwise_core::coordinator::CoordinatorError;
use hopwise_core::error::TransferError;
use hopwise_core::fleet::FleetError;
use hopwise_core::id::KernelId;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::report::Phase;

/// A kernel was not moved. Its reservation, twin and hold have been released.
#[derive(Debug, Error)]
#[error("kernel `{kernel}` was not moved{}: {phase}: {cause}; {remains}", Target(*target_device))]
#[non_exhaustive]
pub struct MigrationError {
    /// The kernel.
    pub kernel: KernelId,
    /// Index of the device that it was to move to; `None` where none was found.
    pub target_device: Option<usize>,
    /// What was being done.
    pub phase: Phase,
    /// What went wrong.
    #[source]
    pub cause: Box<MigrationCause>,
    /// What is left.
    pub remains: Remains,
}

impl MigrationError {
    /// Whether the kernel runs on at its source, with nothing lost.
    #[must_use]
    pub fn source_running(&self) -> bool {
        self.remains == Remains::Running
    }

    /// Whether the world is not what the plan or the caller took it for: a new plan may do better.
    #[must_use]
    pub fn world_changed(&self) -> bool {
        match &*self.cause {
            MigrationCause::DeviceLost { .. } => self.source_running(),
            MigrationCause::Fleet(FleetError::Coordinator(refusal)) => matches!(
                refusal,
                CoordinatorError::StaleRequest { .. }
                    | CoordinatorError::DeviceRefused { .. }
                    | CoordinatorError::UnknownDevice { .. }
            ),
            _ => false,
        }
    }
}

/// What became of a kernel that was not moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Remains {
    /// It runs on at its source with all its messages.
    Running,
    /// It is at its source, where a fault of its own has stopped it. Its messages are kept.
    Stopped,
    /// Its source is gone: it is lost, stays mapped, and its messages are kept.
    Lost,
    /// It is not in the fleet any more.
    Removed,
}

impl fmt::Display for Remains {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Running => "it runs on where it was, nothing is lost",
            Self::Stopped => "it stays where it was, stopped by a fault of its own",
            Self::Lost => "it is lost with its device; it stays mapped and its messages are kept",
            Self::Removed => "it is not in the fleet any more",
        })
    }
}

/// What went wrong.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MigrationCause {
    /// The fleet, the coordinator or a device refused.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// State could not be read from the source.
    #[error("reading from device {device} failed: {error}")]
    Read {
        /// The source.
        device: usize,
        /// Why.
        #[source]
        error: TransferError,
    },
    /// State could not be written to the target.
    #[error("writing to device {device} failed: {error}")]
    Write {
        /// The target.
        device: usize,
        /// Why.
        #[source]
        error: TransferError,
    },
    /// Source or target was lost.
    #[error("device {device} was lost: {cause}")]
    DeviceLost {
        /// The device.
        device: usize,
        /// What took it down.
        cause: String,
    },
    /// The states differ although the differing chunks were copied twice.
    #[error(
        "{differing} of {chunks} chunks differ after a second copy, the first at byte \
         {first_byte}; the memory or the link of one of the devices is not to be trusted"
    )]
    StatesDiffer {
        /// Chunks that differ.
        differing: u64,
        /// Chunks of the state.
        chunks: u64,
        /// Where the first of them begins.
        first_byte: u64,
    },
    /// A device gave another number of digests than the state has chunks.
    #[error("device {device} gave {given} digests for {chunks} chunks; its backend is at fault")]
    DigestCount {
        /// The device.
        device: usize,
        /// Digests given.
        given: u64,
        /// Chunks of the state.
        chunks: u64,
    },
    /// The thread that reads ahead could not be started.
    #[error("the reading thread could not be started: {error}; free threads, or use one buffer")]
    Thread {
        /// The system's words.
        #[source]
        error: std::io::Error,
    },
    /// Somebody cancelled.
    #[error("it was cancelled")]
    Cancelled,
    /// The migration took too long.
    #[error("it did not end within {limit:?}; allow it more time (total timeout)")]
    TimedOut {
        /// The limit.
        limit: Duration,
    },
    /// The kernel could not be stopped in time.
    #[error(
        "no step boundary within {limit:?}: a step runs longer or somebody else holds the kernel; \
         allow more time (hold timeout)"
    )]
    HoldTimedOut {
        /// The limit.
        limit: Duration,
    },
    /// This migrator is moving the kernel already.
    #[error("the kernel is being moved already; wait for that, or cancel it")]
    UnderWay,
    /// No host device can take the kernel.
    #[error(
        "no host device can take {bytes} bytes ({refusals}); add a host device to the fleet, or \
         allow more kernels per device"
    )]
    NoHostDevice {
        /// Size of the kernel's state.
        bytes: u64,
        /// Every host device, and why not.
        refusals: String,
    },
}

struct Target(Option<usize>);

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(device) => write!(formatter, " to device {device}"),
            None => Ok(()),
        }
    }
}
