//! What a migration did, in figures.

use std::fmt;
use std::time::Duration;

use hopwise_core::coordinator::MigrationPriority;
use hopwise_core::id::KernelId;
use serde::{Deserialize, Serialize};

/// A part of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Phase {
    /// Reserving room on the target.
    Reserve,
    /// Compiling there, and creating the paused instance.
    Twin,
    /// Waiting for the kernel's step boundary.
    Hold,
    /// Copying the state.
    Copy,
    /// Comparing digests.
    Verify,
    /// Changing the owner.
    HandOver,
}

impl fmt::Display for Phase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Reserve => "reserving room",
            Self::Twin => "creating the twin",
            Self::Hold => "stopping at a step boundary",
            Self::Copy => "copying the state",
            Self::Verify => "comparing the states",
            Self::HandOver => "handing over",
        })
    }
}

/// Time spent in each part of a migration, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseTimes {
    /// Reserving room on the target.
    pub reserve_us: u64,
    /// Compiling on the target, and creating the paused instance.
    pub twin_us: u64,
    /// Waiting for the kernel's step boundary.
    pub hold_wait_us: u64,
    /// Copying the state, repairs included.
    pub copy_us: u64,
    /// Comparing digests.
    pub verify_us: u64,
    /// Changing the owner, and freeing what was left at the source.
    pub hand_over_us: u64,
}

impl PhaseTimes {
    pub(crate) fn add(&mut self, phase: Phase, time: Duration) {
        let sum = match phase {
            Phase::Reserve => &mut self.reserve_us,
            Phase::Twin => &mut self.twin_us,
            Phase::Hold => &mut self.hold_wait_us,
            Phase::Copy => &mut self.copy_us,
            Phase::Verify => &mut self.verify_us,
            Phase::HandOver => &mut self.hand_over_us,
        };
        *sum = sum.saturating_add(microseconds(time));
    }
}

/// The way that the bytes took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TransferPath {
    /// From device to device.
    Peer,
    /// Through a few buffers in host memory.
    Staged,
    /// From device to device until that failed, the rest through host memory; or chunks that came
    /// out wrong were repaired through host memory.
    PeerThenStaged,
}

impl fmt::Display for TransferPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Peer => "peer",
            Self::Staged => "staged",
            Self::PeerThenStaged => "peer, then staged",
        })
    }
}

/// A migration that moved its kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MigrationReport {
    /// The kernel.
    pub kernel: KernelId,
    /// Index of the device that it left.
    pub source: usize,
    /// Index of the device that it is on now.
    pub target: usize,
    /// How urgent the move was: the plan's word, normal for a move that somebody asked for.
    pub priority: MigrationPriority,
    /// Size of its state in bytes.
    pub bytes: u64,
    /// The way that the bytes took.
    pub path: TransferPath,
    /// Why the direct way was given up, if it was.
    pub peer_failure: Option<String>,
    /// Chunks of the state, each verified by its digest.
    pub chunks: u64,
    /// Chunks that came out wrong and were copied a second time.
    pub repaired_chunks: u64,
    /// Time spent in each part.
    pub phases: PhaseTimes,
    /// For how long the kernel stood still, in microseconds.
    pub hold_us: u64,
    /// From the request to the end, in microseconds.
    pub total_us: u64,
    /// Steps that other kernels committed between the request and the hand-over. A few may be left
    /// out, none is counted that was not made.
    pub steps_elsewhere: u64,
    /// Those of them committed while the kernel stood still.
    pub steps_elsewhere_in_hold: u64,
}

/// A time in whole microseconds.
pub(crate) fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
