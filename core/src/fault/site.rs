//! Where calls pass: one device's latch and the plan that disturbs it.

use std::sync::Arc;
use std::thread;

use super::plan::{FaultAction, FaultPlan, Operation};
use crate::error::DeviceError;
use crate::health::DeviceHealth;

/// What a device and its instances share.
#[derive(Debug)]
pub(super) struct Site {
    plan: Arc<FaultPlan>,
    ordinal: Option<usize>,
    pub(super) health: DeviceHealth,
}

/// What is still to happen to a call that will be made.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Disturbance {
    None,
    Corrupt,
    FailAfter(DeviceError),
}

impl Site {
    pub(super) fn new(plan: Arc<FaultPlan>, ordinal: Option<usize>, health: DeviceHealth) -> Self {
        Self { plan, ordinal, health }
    }

    /// Asks latch and plan whether the call is made. Sleeps, if so planned, with no lock held.
    pub(super) fn before(&self, operation: Operation) -> Result<Disturbance, DeviceError> {
        self.health.check()?;
        match self.plan.next(operation, self.ordinal) {
            None => Ok(Disturbance::None),
            Some(FaultAction::Corrupt) => Ok(Disturbance::Corrupt),
            Some(FaultAction::FailAfter(error)) => Ok(Disturbance::FailAfter(error)),
            Some(FaultAction::Fail(error)) => Err(self.fail(error)),
            Some(FaultAction::Lose { cause }) => Err(self.fail(DeviceError::Lost { cause })),
            Some(FaultAction::Delay(delay)) => {
                thread::sleep(delay);
                self.health.check()?;
                Ok(Disturbance::None)
            }
        }
    }

    /// What the call reports after it was made and went well.
    pub(super) fn after(&self, disturbance: Disturbance) -> Result<(), DeviceError> {
        match disturbance {
            Disturbance::FailAfter(error) => Err(self.fail(error)),
            Disturbance::None | Disturbance::Corrupt => self.health.check(),
        }
    }

    /// Makes a call as planned; `call` is told whether to corrupt its data.
    pub(super) fn call<T, E: From<DeviceError>>(
        &self,
        operation: Operation,
        call: impl FnOnce(bool) -> Result<T, E>,
    ) -> Result<T, E> {
        let disturbance = self.before(operation)?;
        let value = call(disturbance == Disturbance::Corrupt)?;
        self.after(disturbance)?;
        Ok(value)
    }

    /// The error to report: the latched cause where the device is gone.
    fn fail(&self, error: DeviceError) -> DeviceError {
        self.health.latch(error.clone());
        self.health.cause().unwrap_or(error)
    }
}
