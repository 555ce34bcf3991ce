//! Keeps the steps of an instance and the reading and writing of its state apart.

use std::time::{Duration, Instant};

use hopwise_core::error::TransferError;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::driver::Driver;

/// How often a waiting thread looks whether the device is still there.
const SLICE: Duration = Duration::from_millis(10);

/// Whether a step or a transfer of an instance goes on: one at a time.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_busy: bool,
    /// Transfers that wait. They come before the next step, or steps that follow one another
    /// closely would shut them out.
    waiting: usize,
}

/// A step or transfer that goes on until this is dropped.
#[derive(Debug)]
pub(crate) struct Ongoing<'a> {
    activity: &'a Activity,
}

impl Activity {
    /// Begins a step when nothing else goes on or waits.
    pub(crate) fn begin_step(
        &self,
        driver: &Driver,
        wait: Duration,
    ) -> Result<Ongoing<'_>, TransferError> {
        let mut state = self.state.lock();
        let is_free = |state: &State| !state.is_busy && state.waiting == 0;
        self.wait_until(&mut state, driver, wait, is_free)?;
        state.is_busy = true;
        Ok(Ongoing { activity: self })
    }

    /// Begins a transfer when nothing else goes on.
    pub(crate) fn begin_transfer(
        &self,
        driver: &Driver,
        wait: Duration,
    ) -> Result<Ongoing<'_>, TransferError> {
        let mut state = self.state.lock();
        state.waiting += 1;
        let waited = self.wait_until(&mut state, driver, wait, |state| !state.is_busy);
        state.waiting -= 1;
        self.changed.notify_all();
        waited?;
        state.is_busy = true;
        Ok(Ongoing { activity: self })
    }

    fn wait_until(
        &self,
        state: &mut MutexGuard<'_, State>,
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
        self.activity.state.lock().is_busy = false;
        self.activity.changed.notify_all();
    }
}
