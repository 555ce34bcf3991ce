//! Telling observers what happened. They are called after every lock is released, may call back,
//! and may panic.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

use super::{DeviceState, Incarnation, MigrationRequest};
use crate::id::KernelId;

/// Something that happened in a coordinator.
///
/// Events of one thread come in order. Those of different threads may overtake each other, since no
/// lock is held while observers run: an observer that needs the present asks the coordinator.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CoordinatorEvent {
    /// A device was registered.
    DeviceRegistered {
        /// Its index.
        index: usize,
        /// Which registration.
        incarnation: Incarnation,
    },
    /// A device was unregistered, and takes nothing new.
    DeviceLeaving {
        /// Its index.
        index: usize,
        /// Which registration.
        incarnation: Incarnation,
    },
    /// The last kernel of a leaving device is gone; the index is free.
    DeviceGone {
        /// Its index.
        index: usize,
        /// Which registration.
        incarnation: Incarnation,
    },
    /// A health source changed a device's state.
    DeviceStateChanged {
        /// Its index.
        index: usize,
        /// The state before.
        from: DeviceState,
        /// The state now.
        to: DeviceState,
    },
    /// A kernel was placed, or assigned for the first time.
    KernelPlaced {
        /// The kernel.
        kernel: KernelId,
        /// Its device.
        device: usize,
    },
    /// A kernel's record went to another device, by assignment or at the end of a migration.
    KernelMoved {
        /// The kernel.
        kernel: KernelId,
        /// The device before.
        from: usize,
        /// The device now.
        to: usize,
    },
    /// A kernel was removed.
    KernelRemoved {
        /// The kernel.
        kernel: KernelId,
        /// The device it was on.
        device: usize,
    },
    /// Room was reserved for a migration.
    MigrationRequested(MigrationRequest),
    /// A migration ended, and with it its reservation.
    MigrationEnded {
        /// Number of the request.
        request_id: u64,
        /// The kernel.
        kernel: KernelId,
        /// How it ended.
        end: MigrationEnd,
    },
    /// A topology was set by hand.
    TopologySet,
}

/// How a migration request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MigrationEnd {
    /// The kernel is on the target now.
    Completed,
    /// It was cancelled.
    Cancelled,
    /// A newer request for the same kernel took its place.
    Replaced,
    /// The kernel was removed.
    KernelRemoved,
    /// The kernel was assigned to another device.
    KernelReassigned,
    /// The target left or was lost.
    TargetLost,
}

type Observer = Arc<dyn Fn(&CoordinatorEvent) + Send + Sync>;

/// The observers of one coordinator.
#[derive(Default)]
pub(super) struct Observers {
    list: RwLock<Arc<Vec<Observer>>>,
    panics: AtomicU64,
}

impl Observers {
    pub(super) fn add(&self, observer: Observer) {
        let mut list = self.list.write();
        let mut longer = Vec::clone(&list);
        longer.push(observer);
        *list = Arc::new(longer);
    }

    /// Calls every observer. The caller holds no lock.
    pub(super) fn tell(&self, event: &CoordinatorEvent) {
        let list = {
            let list = self.list.read();
            if list.is_empty() {
                return;
            }
            Arc::clone(&list)
        };
        for observer in list.iter() {
            self.guarded(|| observer(event));
        }
    }

    /// Runs user code; a panic is counted and gives `None`.
    pub(super) fn guarded<T>(&self, call: impl FnOnce() -> T) -> Option<T> {
        let outcome = catch_unwind(AssertUnwindSafe(call));
        if outcome.is_err() {
            self.panics.fetch_add(1, Ordering::Relaxed);
        }
        outcome.ok()
    }

    pub(super) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }
}

/// The text of a panic.
pub(super) fn panic_text(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without text".to_owned()
    }
}
