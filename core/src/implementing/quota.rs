//! The memory quota of a logical device.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::device::DeviceMemory;
use crate::error::DeviceError;

/// Bytes that live instances may use together.
#[derive(Debug)]
pub struct Quota {
    total_bytes: u64,
    used_bytes: AtomicU64,
}

/// A part of a quota, given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    quota: Arc<Quota>,
    bytes: u64,
}

impl Quota {
    /// A quota of so many bytes, none of them used.
    #[must_use]
    pub fn new(total_bytes: u64) -> Self {
        Self { total_bytes, used_bytes: AtomicU64::new(0) }
    }

    /// All bytes of the quota.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Bytes that are not taken.
    #[must_use]
    pub fn available_bytes(&self) -> u64 {
        self.total_bytes - self.used_bytes.load(Ordering::Relaxed)
    }

    /// The quota as a device's memory.
    #[must_use]
    pub fn memory(&self) -> DeviceMemory {
        DeviceMemory { total_bytes: self.total_bytes, available_bytes: self.available_bytes() }
    }

    /// Takes a part, or says how much there is. Check and taking are one atomic action.
    ///
    /// # Errors
    ///
    /// [`DeviceError::OutOfMemory`].
    pub fn reserve(self: &Arc<Self>, bytes: u64) -> Result<Reservation, DeviceError> {
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
