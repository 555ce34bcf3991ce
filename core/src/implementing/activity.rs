//! Keeps the steps of an instance and the reading and writing of its state apart.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::error::TransferError;
use crate::health::DeviceHealth;

/// How often a waiting thread looks whether the device is still there.
const SLICE: Duration = Duration::from_millis(10);

/// Whether a step or a transfer of an instance goes on: one at a time, and in turns where both wait,
/// so that neither shuts the other out.
#[derive(Debug, Default)]
pub struct Activity {
    state: Mutex<State>,
    changed: Condvar,
}

/// What goes on with an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Work {
    /// A step.
    #[default]
    Step,
    /// Reading, writing or digesting its state.
    Transfer,
}

#[derive(Debug, Default)]
struct State {
    is_busy: bool,
    last: Work,
    waiting: [usize; 2],
}

/// A step or transfer that goes on until this is dropped.
#[derive(Debug)]
pub struct Ongoing<'a> {
    activity: &'a Activity,
}

impl State {
    fn is_free_for(&self, kind: Work) -> bool {
        let other = if kind == Work::Step { Work::Transfer } else { Work::Step };
        let is_others_turn = self.last == kind && self.waiting[other as usize] > 0;
        !self.is_busy && !is_others_turn
    }
}

impl Activity {
    /// Begins a step or transfer. Waits while something else goes on, at most so long.
    ///
    /// # Errors
    ///
    /// [`TransferError::Busy`] when the wait is over, or the latched loss of the device.
    pub fn begin(
        &self,
        kind: Work,
        health: &DeviceHealth,
        wait: Duration,
    ) -> Result<Ongoing<'_>, TransferError> {
        let started = Instant::now();
        let mut state = self.state.lock();
        state.waiting[kind as usize] += 1;
        let waited = loop {
            if state.is_free_for(kind) {
                break Ok(());
            }
            // The latch alone is read: a driver is not called under a lock.
            if let Err(error) = health.check() {
                break Err(error.into());
            }
            let left = wait.saturating_sub(started.elapsed());
            if left.is_zero() {
                let waited_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                break Err(TransferError::Busy { waited_ms });
            }
            self.changed.wait_for(&mut state, left.min(SLICE));
        };
        state.waiting[kind as usize] -= 1;
        if waited.is_ok() {
            state.is_busy = true;
            state.last = kind;
        }
        drop(state);
        // One that waits no longer can be what others waited for.
        self.changed.notify_all();
        waited.map(|()| Ongoing { activity: self })
    }
}

impl Drop for Ongoing<'_> {
    fn drop(&mut self) {
        self.activity.state.lock().is_busy = false;
        self.activity.changed.notify_all();
    }
}
