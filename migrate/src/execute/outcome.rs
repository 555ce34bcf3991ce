//! How a migration ended: what failed and what is left, or the figures.

use hopwise_core::device::Device;
use hopwise_core::error::DeviceError;

use super::remains;
use super::run::{Execution, Steps};
use crate::error::{MigrationCause, MigrationError, Remains};
use crate::machine::Event;
use crate::report::{MigrationReport, Phase, microseconds};

impl Execution<'_> {
    /// Remembers what failed and says what it means to the machine.
    pub(super) fn failed(&mut self, phase: Phase, cause: MigrationCause) -> Event {
        let event = match &cause {
            MigrationCause::Cancelled => Event::Cancelled,
            MigrationCause::TimedOut { .. } | MigrationCause::HoldTimedOut { .. } => {
                Event::TimedOut
            }
            _ if self.remains() == Remains::Lost => Event::SourceLost,
            _ => Event::Failed,
        };
        let is_failure = matches!(event, Event::Failed | Event::SourceLost);
        let cause = if is_failure { self.loss().unwrap_or(cause) } else { cause };
        self.failure = Some((phase, cause));
        event
    }

    /// The loss of one of the devices, which explains every other error.
    fn loss(&self) -> Option<MigrationCause> {
        let lost = |device: usize, open: &dyn Device| {
            let cause = loss_of(open)?;
            Some(MigrationCause::DeviceLost { device, cause: cause.to_string() })
        };
        let reservation = self.reservation.as_ref()?;
        let source = self.source.as_ref();
        let source = source.and_then(|open| lost(reservation.request.source, &**open));
        source.or_else(|| {
            let open = self.fleet.device(self.order.target).ok()?;
            lost(self.order.target, &*open)
        })
    }

    /// What is left of a kernel that is not moved. A device's latch knows of a loss earlier than
    /// the kernel's status does.
    pub(super) fn remains(&self) -> Remains {
        let source_lost = self.source.as_ref().is_some_and(|open| loss_of(&**open).is_some());
        match remains(self.fleet, &self.order.kernel) {
            Remains::Running if source_lost => Remains::Lost,
            other => other,
        }
    }

    pub(super) fn error(mut self) -> MigrationError {
        let (phase, cause) = self.failure.take().expect("a migration ends early for a reason");
        MigrationError {
            kernel: self.order.kernel,
            target_device: Some(self.order.target),
            phase,
            cause: Box::new(cause),
            remains: self.remains(),
        }
    }

    /// The figures of a migration that has just moved its kernel.
    pub(super) fn report(&self) -> MigrationReport {
        let Steps { elsewhere_before_hold, elsewhere_in_hold, .. } = self.steps;
        let request = self.request();
        MigrationReport {
            kernel: request.kernel,
            source: request.source,
            target: request.target,
            priority: self.order.priority,
            bytes: self.transfer.bytes,
            path: self.transfer.path,
            peer_failure: self.transfer.peer_failure.clone(),
            chunks: self.transfer.chunks,
            repaired_chunks: self.transfer.repaired,
            phases: self.times,
            hold_us: microseconds(self.stood_still),
            total_us: microseconds(self.began.elapsed()),
            steps_elsewhere: elsewhere_before_hold + elsewhere_in_hold,
            steps_elsewhere_in_hold: elsewhere_in_hold,
        }
    }
}

fn loss_of(device: &dyn Device) -> Option<DeviceError> {
    device.health().cause()
}
