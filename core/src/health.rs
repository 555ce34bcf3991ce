//! The latch that remembers that a device is gone, and what is wrong with one that still works.
//!
//! After a loss some drivers go on to return success from every call, so the truth is read from
//! this latch and not from call results.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::error::DeviceError;

pub use degradation::{Degradation, DegradationKind};

mod degradation;

/// Called once, with the first cause, after the latch has closed. Holds no lock of ours.
pub type LossListener = Box<dyn FnOnce(&DeviceError) + Send>;

/// A one-way latch: working, then lost or unresponsive for ever.
///
/// A device that recovers is opened again and gets a new latch. Logical devices of one card share
/// one latch, since they fall together.
#[derive(Clone, Default)]
pub struct DeviceHealth {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    closed: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    cause: Option<DeviceError>,
    listeners: Vec<LossListener>,
}

impl std::fmt::Debug for DeviceHealth {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("DeviceHealth").field("cause", &self.cause()).finish()
    }
}

impl DeviceHealth {
    /// A latch that is open: the device works.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the device still works. One atomic load.
    #[must_use]
    pub fn is_working(&self) -> bool {
        !self.shared.closed.load(Ordering::Acquire)
    }

    /// What took the device down, if anything did.
    #[must_use]
    pub fn cause(&self) -> Option<DeviceError> {
        if self.is_working() {
            return None;
        }
        self.shared.inner.lock().cause.clone()
    }

    /// `Ok` while the device works, else the first cause.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Lost`] or [`DeviceError::Unresponsive`].
    pub fn check(&self) -> Result<(), DeviceError> {
        match self.cause() {
            None => Ok(()),
            Some(cause) => Err(cause),
        }
    }

    /// Closes the latch. Only a fatal error does so, and only the first cause is kept.
    /// Returns whether this call closed it. Listeners run on this thread, with no lock held.
    pub fn latch(&self, cause: DeviceError) -> bool {
        if !cause.is_fatal() {
            return false;
        }
        let listeners = {
            let mut inner = self.shared.inner.lock();
            if inner.cause.is_some() {
                return false;
            }
            inner.cause = Some(cause.clone());
            self.shared.closed.store(true, Ordering::Release);
            std::mem::take(&mut inner.listeners)
        };
        for listener in listeners {
            listener(&cause);
        }
        true
    }

    /// Passes a result through, latching a fatal error on its way.
    ///
    /// # Errors
    ///
    /// The error that came in, or the latched cause when the latch is closed: a result obtained
    /// from a device that is gone proves nothing.
    pub fn watch<T>(&self, result: Result<T, DeviceError>) -> Result<T, DeviceError> {
        match result {
            Err(error) => {
                self.latch(error.clone());
                Err(self.cause().unwrap_or(error))
            }
            Ok(value) => self.check().map(|()| value),
        }
    }

    /// Calls `listener` when the latch closes; at once if it is closed already.
    pub fn on_loss(&self, listener: LossListener) {
        let cause = {
            let mut inner = self.shared.inner.lock();
            match &inner.cause {
                Some(cause) => cause.clone(),
                None => {
                    inner.listeners.push(listener);
                    return;
                }
            }
        };
        listener(&cause);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn lost(cause: &str) -> DeviceError {
        DeviceError::Lost { cause: cause.to_owned() }
    }

    #[test]
    fn the_first_fatal_cause_stays() {
        let health = DeviceHealth::new();
        assert!(!health.latch(DeviceError::Driver { message: "busy".to_owned() }));
        assert!(health.is_working());
        assert!(health.latch(lost("first")));
        assert!(!health.latch(lost("second")));
        assert_eq!(health.check(), Err(lost("first")));
        assert_eq!(health.watch(Ok(1)), Err(lost("first")), "a success after the loss is refused");
    }

    #[test]
    fn listeners_run_once_and_may_call_back() {
        let health = DeviceHealth::new();
        let calls = Arc::new(AtomicUsize::new(0));
        for _ in 0..2 {
            let (calls, again) = (Arc::clone(&calls), health.clone());
            health.on_loss(Box::new(move |_| {
                assert!(!again.is_working(), "the latch is closed before listeners run");
                calls.fetch_add(1, Ordering::SeqCst);
            }));
        }
        health.latch(lost("pulled out"));
        let late = Arc::clone(&calls);
        health.on_loss(Box::new(move |_| {
            late.fetch_add(1, Ordering::SeqCst);
        }));
        assert_eq!(calls.load(Ordering::SeqCst), 3);
    }
}
