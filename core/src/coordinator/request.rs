//! Values that describe moves: incarnations, requests, plans.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{CoordinatorError, MigrationPriority};
use crate::id::KernelId;

/// Which registration of an index: every registration gets a number that its coordinator has not
/// given before, so a device that left and came back is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Incarnation(pub(super) u64);

impl Incarnation {
    /// The number. Coordinators count from 1.
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}

/// A migration that was asked for: room for the kernel is reserved on the target until the request
/// ends.
///
/// It ends once: completed, cancelled, replaced by a newer request for the same kernel, with the
/// removal or reassignment of the kernel, or when the target leaves or is lost. After that it is
/// stale, and completing or cancelling it is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MigrationRequest {
    /// The number of the request; its coordinator never uses it again.
    pub id: u64,
    /// The kernel.
    pub kernel: KernelId,
    /// The device that the kernel is on.
    pub source: usize,
    /// Which registration of the source.
    pub source_incarnation: Incarnation,
    /// The device that the kernel is to move to.
    pub target: usize,
    /// Which registration of the target.
    pub target_incarnation: Incarnation,
}

/// One planned move off a leaving device. It reserves nothing: request it to reserve, which may be
/// refused if the world has changed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KernelMigrationPlan {
    /// The kernel.
    pub kernel: KernelId,
    /// The device that the kernel is on.
    pub source: usize,
    /// Which registration of the source.
    pub source_incarnation: Incarnation,
    /// The device that the kernel should move to.
    pub target: usize,
    /// Which registration of the target.
    pub target_incarnation: Incarnation,
    /// How urgent the move is.
    pub priority: MigrationPriority,
}

/// What became of [`unregister_device`](super::MultiGpuCoordinator::unregister_device).
#[derive(Clone, Debug, PartialEq)]
#[must_use = "the plans must be carried out, and the orphans need a decision"]
#[non_exhaustive]
pub struct DeviceUnregisterResult {
    /// The index asked for.
    pub device_index: usize,
    /// Which registration is leaving; `None` when no device has the index.
    pub incarnation: Option<Incarnation>,
    /// Whether an earlier call made the device leave. Plans and orphans are those of what is still
    /// on it.
    pub already_leaving: bool,
    /// A move for every kernel that has somewhere to go, the most urgent first.
    pub plans: Vec<KernelMigrationPlan>,
    /// Kernels with nowhere to go. They stay mapped to the device until someone moves, parks or
    /// removes them.
    pub orphans: Vec<KernelId>,
    /// Why the custom selector could not be asked, or gave an answer that cannot be used. The
    /// kernels that it should have placed are orphans.
    pub selector_error: Option<CoordinatorError>,
}

impl DeviceUnregisterResult {
    /// Whether nothing was on the device, so that its index is free again. Also true when no
    /// device has the index.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.plans.is_empty() && self.orphans.is_empty()
    }
}
