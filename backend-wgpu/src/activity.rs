//! Keeps the steps of an instance and the reading and writing of its state apart.

use std::time::{Duration, Instant};

use hopwise_core::error::TransferError;
use parking_lot::{Condvar, Mutex};

use crate::driver::Driver;

/// How often a waiting thread looks whether the device is still there.
const SLICE: Duration = Duration::from_millis(10);

/// What goes on with an instance: one step, or any number of transfers.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_stepping: bool,
    transfers: usize,
    /// Transfers that wait for the step's end. They come before the next step, or steps that follow
    /// one another closely would shut them out.
    waiting: usize,
}

/// A step or transfer that goes on until this is dropped.
#[derive(Debug)]
pub(crate) struct Ongoing<'a> {
    activity: &'a Activity,
    is_step: bool,
}

impl Activity {
    /// Begins a step when no transfer goes on.
    pub(crate) fn begin_step(
        &self,
        driver: &Driver,
        wait: Duration,
    ) -> Result<Ongoing<'_>, TransferError> {
        let is_free =
            |state: &State| !state.is_stepping && state.transfers == 0 && state.waiting == 0;
        let mut state = self.state.lock();
        self.wait_until(&mut state, driver, wait, is_free)?;
        state.is_stepping = true;
        Ok(Ongoing { activity: self, is_step: true })
    }

    /// Begins a transfer when no step runs.
    pub(crate) fn begin_transfer(
        &self,
        driver: &Driver,
        wait: Duration,
    ) -> Result<Ongoing<'_>, TransferError> {
        let mut state = self.state.lock();
        state.waiting += 1;
        let waited = self.wait_until(&mut state, driver, wait, |state| !state.is_stepping);
        state.waiting -= 1;
        self.changed.notify_all();
        waited?;
        state.transfers += 1;
        Ok(Ongoing { activity: self, is_step: false })
    }

    fn wait_until(
        &self,
        state: &mut parking_lot::MutexGuard<'_, State>,
        driver: &Driver,
        wait: Duration,
        is_free: impl Fn(&State) -> bool,
    ) -> Result<(), TransferError> {
        let started = Instant::now();
        while !is_free(state) {
            // The latch alone is read: a driver is not called under a lock.
            driver.health().check()?;
            let left = wait.saturating_sub(started.elapsed());
            if left.is_zero() {
                let waited_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                return Err(TransferError::Busy { waited_ms });
            }
            self.changed.wait_for(state, left.min(SLICE));
        }
        Ok(())
    }
}

impl Drop for Ongoing<'_> {
    fn drop(&mut self) {
        let mut state = self.activity.state.lock();
        if self.is_step {
            state.is_stepping = false;
        } else {
            state.transfers -= 1;
        }
        self.activity.changed.notify_all();
    }
}
