//! Moving kernels, and what the reports say about it.

use hopwise_core::fleet::Fleet;
use hopwise_core::id::KernelId;
use hopwise_migrate::{KernelMigrator, MigrationError, MigrationReport, PhaseTimes, TransferPath};
use serde::Serialize;

/// A kernel that was moved.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Move {
    /// The kernel's name.
    pub(crate) kernel: String,
    /// The device that it left.
    pub(crate) from: usize,
    /// The device that it is on now.
    pub(crate) to: usize,
    /// Size of its state in bytes.
    pub(crate) bytes: u64,
    /// The way that the bytes took.
    pub(crate) path: TransferPath,
    /// For how long it stood still.
    pub(crate) hold_us: u64,
    /// From the request to the end.
    pub(crate) total_us: u64,
    /// Steps that other kernels made meanwhile.
    pub(crate) steps_elsewhere: u64,
    /// Those of them made while it stood still.
    pub(crate) steps_elsewhere_in_hold: u64,
    /// Time spent in each part.
    pub(crate) phases: PhaseTimes,
}

impl From<MigrationReport> for Move {
    fn from(report: MigrationReport) -> Self {
        Self {
            kernel: report.kernel.to_string(),
            from: report.source,
            to: report.target,
            bytes: report.bytes,
            path: report.path,
            hold_us: report.hold_us,
            total_us: report.total_us,
            steps_elsewhere: report.steps_elsewhere,
            steps_elsewhere_in_hold: report.steps_elsewhere_in_hold,
            phases: report.phases,
        }
    }
}

/// What came of moving kernels.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    /// Kernels that were moved.
    pub(crate) done: Vec<Move>,
    /// Why others were not.
    pub(crate) failures: Vec<String>,
}

impl Moves {
    /// Takes a device out of selection and moves everything off it, while other kernels go on.
    pub(crate) fn drain(&mut self, fleet: &Fleet, device: usize) {
        let report = KernelMigrator::new(fleet).drain(device);
        if report.incarnation.is_none() {
            self.failures.push(format!("device {device} was not drained: it is gone already"));
        }
        self.done.extend(report.moved.into_iter().map(Move::from));
        self.failures.extend(report.failed.iter().map(ToString::to_string));
        self.failures.extend(report.orphans.iter().map(|kernel| {
            format!("kernel `{kernel}` stays on device {device}: no other device has room for it")
        }));
        self.failures.extend(report.selector_error.iter().map(ToString::to_string));
    }

    /// Moves one kernel.
    pub(crate) fn migrate(&mut self, fleet: &Fleet, kernel: &KernelId, target: usize) {
        self.note(KernelMigrator::new(fleet).migrate(kernel, target));
    }

    /// Moves one kernel to a host device.
    pub(crate) fn park(&mut self, fleet: &Fleet, kernel: &KernelId) {
        self.note(KernelMigrator::new(fleet).park(kernel));
    }

    fn note(&mut self, outcome: Result<MigrationReport, MigrationError>) {
        match outcome {
            Ok(report) => self.done.push(report.into()),
            Err(error) => self.failures.push(error.to_string()),
        }
    }
}
