//! Whether anything is under way in a fleet: a count, and who waits for it to become zero.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crossbeam_utils::CachePadded;
use parking_lot::{Condvar, Mutex};

/// Counts kernels with something under way, receivers that are about to be woken, and host sends
/// that wait for room.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    busy: CachePadded<AtomicUsize>,
    lock: Mutex<()>,
    idle: Condvar,
}

impl Pulse {
    pub(crate) fn add(&self) {
        self.busy.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn remove(&self) {
        if self.busy.fetch_sub(1, Ordering::AcqRel) == 1 {
            // Taking the lock orders this after the check of whoever is about to wait.
            drop(self.lock.lock());
            self.idle.notify_all();
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.busy.load(Ordering::Acquire) == 0
    }

    /// Waits until nothing is under way; `None` waits as long as it takes. `false` when the deadline
    /// came first.
    pub(crate) fn wait_idle_until(&self, deadline: Option<Instant>) -> bool {
        let mut guard = self.lock.lock();
        while !self.is_idle() {
            match deadline {
                None => self.idle.wait(&mut guard),
                Some(deadline) => {
                    if self.idle.wait_until(&mut guard, deadline).timed_out() {
                        return self.is_idle();
                    }
                }
            }
        }
        true
    }
}
