//! Draining a device: taking it out of service and moving everything off it.

use std::time::Instant;

use hopwise_core::coordinator::{CoordinatorError, DeviceUnregisterResult, Incarnation};
use hopwise_core::id::KernelId;

use crate::error::MigrationError;
use crate::execute::{KernelMigrator, PlanOutcome};
use crate::options::CancelToken;
use crate::report::{MigrationReport, microseconds};

/// How often a drain plans for kernels whose plan came too late. The world changes under a plan now
/// and then; where it does so three times running, somebody works against the drain.
const MOST_ROUNDS: u32 = 3;

/// What a drain did, and what it left.
#[derive(Debug)]
#[non_exhaustive]
#[must_use = "orphans and failures are still on the device and need a decision"]
pub struct DrainReport {
    /// Index of the device.
    pub device: usize,
    /// Which registration was drained; `None` when no device has the index.
    pub incarnation: Option<Incarnation>,
    /// The kernels that were moved, in the order in which that happened.
    pub moved: Vec<MigrationReport>,
    /// The kernels that were to be moved and were not, why, and what is left of each.
    pub failed: Vec<MigrationError>,
    /// Kernels with nowhere to go. They run on; move, park or remove them.
    pub orphans: Vec<KernelId>,
    /// Why the coordinator's custom selector gave no usable answer, if it did not.
    pub selector_error: Option<CoordinatorError>,
    /// How often plans were made: more than once where the world changed under them.
    pub rounds: u32,
    /// From the beginning to the end, in microseconds.
    pub total_us: u64,
}

impl DrainReport {
    /// Whether the device was there and nothing is left on it.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.incarnation.is_some() && self.failed.is_empty() && self.orphans.is_empty()
    }
}

impl KernelMigrator<'_> {
    /// Takes a device out of service and moves every kernel off it that has somewhere to go, the
    /// most urgent first. Plans that the world overtook are made anew, a few times.
    ///
    /// The device stays leaving, whatever comes of it. A drain of a device that is leaving already
    /// goes on with what is still there.
    pub fn drain(&self, device: usize) -> DrainReport {
        self.drain_with(device, &CancelToken::new())
    }

    /// [`drain`](Self::drain). After a cancel the kernels that are left run on where they are; the
    /// device stays leaving.
    pub fn drain_with(&self, device: usize, cancel: &CancelToken) -> DrainReport {
        let began = Instant::now();
        let coordinator = self.fleet().coordinator();
        let mut unregistered = coordinator.unregister_device(device);
        let mut report = DrainReport::new(&unregistered);
        loop {
            let outcomes = self.execute_plans_with(&unregistered.plans, cancel);
            report.take_round(unregistered, outcomes);
            let again = report.failed.iter().any(is_worth_planning_anew);
            if !again || report.rounds == MOST_ROUNDS || cancel.is_cancelled() {
                break;
            }
            let now = coordinator.get_device_status(device).map(|status| status.incarnation);
            if now != report.incarnation {
                // Empty by now, and the index may be another device's: that one stays in service.
                report.failed.clear();
                report.orphans.clear();
                break;
            }
            unregistered = coordinator.unregister_device(device);
        }
        report.total_us = microseconds(began.elapsed());
        report
    }
}

impl DrainReport {
    fn new(unregistered: &DeviceUnregisterResult) -> Self {
        Self {
            device: unregistered.device_index,
            incarnation: unregistered.incarnation,
            moved: Vec::new(),
            failed: Vec::new(),
            orphans: Vec::new(),
            selector_error: None,
            rounds: 0,
            total_us: 0,
        }
    }

    /// Adds the moves of a round; what is left is what this round left.
    fn take_round(&mut self, unregistered: DeviceUnregisterResult, outcomes: Vec<PlanOutcome>) {
        self.rounds += 1;
        self.orphans = unregistered.orphans;
        self.selector_error = unregistered.selector_error;
        self.failed.clear();
        for outcome in outcomes {
            match outcome.result {
                Ok(report) => self.moved.push(report),
                Err(error) => self.failed.push(error),
            }
        }
    }
}

fn is_worth_planning_anew(error: &MigrationError) -> bool {
    error.source_running() && error.world_changed()
}
