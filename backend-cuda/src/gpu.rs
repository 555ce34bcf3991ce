//! What a process knows of each GPU, whoever opened it: the driver has one primary context a GPU, so
//! a reset concerns everybody who uses it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use cudarc::driver::sys;
use hopwise_core::error::DeviceError;
use hopwise_core::health::DeviceHealth;
use parking_lot::{Mutex, MutexGuard};

/// How often a reset looks whether the last call has ended.
const PAUSE: Duration = Duration::from_millis(1);

/// One GPU of the process.
#[derive(Debug, Default)]
pub(crate) struct Gpu {
    /// Held while the GPU is opened, also while the driver is called for that: two who opened it at
    /// once could reset it under each other.
    opening: Mutex<()>,
    /// Threads that may be in calls for the GPU, or at memory that a reset takes away.
    inside: AtomicUsize,
    /// The latches of all contexts that are or were open since the last reset.
    latches: Mutex<Vec<DeviceHealth>>,
}

static GPUS: LazyLock<Mutex<HashMap<sys::CUdevice, Arc<Gpu>>>> = LazyLock::new(Mutex::default);

impl Gpu {
    pub(crate) fn of(device: sys::CUdevice) -> Arc<Self> {
        Arc::clone(GPUS.lock().entry(device).or_default())
    }

    /// Keeps others from opening the GPU.
    pub(crate) fn open(&self) -> MutexGuard<'_, ()> {
        self.opening.lock()
    }

    /// Makes a latch known to who resets the GPU.
    pub(crate) fn add(&self, health: &DeviceHealth) {
        self.latches.lock().push(health.clone());
    }

    /// Whether something was lost since the last reset, and nobody uses the GPU any more: a reset
    /// frees what was left behind then, and harms nobody.
    pub(crate) fn is_left_behind(&self) -> bool {
        let latches = self.latches.lock();
        !latches.is_empty() && !latches.iter().any(DeviceHealth::is_working)
    }

    /// Notes a thread that is about to call the driver. Its latch is to be read after this.
    pub(crate) fn come_in(&self) {
        self.inside.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn go_out(&self) {
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    /// Closes every latch and waits until nobody is inside any more, so that the GPU can be reset.
    pub(crate) fn clear(&self, limit: Duration) -> Result<(), DeviceError> {
        let latches = std::mem::take(&mut *self.latches.lock());
        for latch in latches {
            let cause = "the GPU is reset after a loss".to_owned();
            latch.latch(DeviceError::Lost { cause });
        }
        let started = Instant::now();
        while self.inside.load(Ordering::SeqCst) > 0 {
            if started.elapsed() > limit {
                let reason = "a thread is still in a call of the driver for the GPU that was lost, \
                              so it cannot be reset; open it again later";
                return Err(DeviceError::Unavailable { reason: reason.to_owned() });
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }
}
