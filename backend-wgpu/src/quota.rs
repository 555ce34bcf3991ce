//! The memory quota of a logical device.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hopwise_core::error::DeviceError;

/// Bytes that the live instances of one logical device may use together.
#[derive(Debug)]
pub(crate) struct Quota {
    total_bytes: u64,
    used_bytes: AtomicU64,
}

/// A part of a quota, given back when dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    quota: Arc<Quota>,
    bytes: u64,
}

impl Quota {
    pub(crate) fn new(total_bytes: u64) -> Self {
        Self { total_bytes, used_bytes: AtomicU64::new(0) }
    }

    pub(crate) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    pub(crate) fn available_bytes(&self) -> u64 {
        self.total_bytes - self.used_bytes.load(Ordering::Relaxed)
    }

    /// Takes a part, or says how much there is. Check and taking are one atomic action.
    pub(crate) fn reserve(self: &Arc<Self>, bytes: u64) -> Result<Reservation, DeviceError> {
        let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.total_bytes);
        match self.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => Ok(Reservation { quota: Arc::clone(self), bytes }),
            Err(used) => Err(DeviceError::OutOfMemory {
                requested_bytes: bytes,
                available_bytes: Some(self.total_bytes - used),
            }),
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.quota.used_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
