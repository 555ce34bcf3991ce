//! What a change in a mailbox asks for beyond it. Waking needs locks and calls user code, so it is
//! done once no lock is held, by [`Runtime::follow`](super::runtime::Runtime::follow).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

use super::channel::Channel;
use super::error::DeliveryReason;
use super::kernel::KernelCell;
use super::lanes::Parcel;

/// A future that waits: its token, so that polling it again replaces its waker, and the waker.
pub(crate) type WaitingFuture = (u64, Waker);

/// A token for a new future.
pub(crate) fn new_token() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A message that will not be delivered.
#[derive(Debug)]
pub(crate) struct DeadParcel {
    pub(crate) channel: Arc<Channel>,
    pub(crate) parcel: Parcel,
    pub(crate) reason: DeliveryReason,
}

/// Who is to be woken, and what has become undeliverable.
#[must_use = "those who wait must be woken"]
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Kernels that slept until a message came. Each is counted as busy until it has been woken.
    pub(crate) receivers: Vec<Arc<KernelCell>>,
    /// Kernels whose output found no room before.
    pub(crate) senders: Vec<Arc<KernelCell>>,
    pub(crate) futures: Vec<WaitingFuture>,
    pub(crate) dead: Vec<DeadParcel>,
}

impl Effects {
    pub(crate) fn is_empty(&self) -> bool {
        self.receivers.is_empty()
            && self.senders.is_empty()
            && self.futures.is_empty()
            && self.dead.is_empty()
    }

    pub(crate) fn append(&mut self, mut other: Self) {
        self.receivers.append(&mut other.receivers);
        self.senders.append(&mut other.senders);
        self.futures.append(&mut other.futures);
        self.dead.append(&mut other.dead);
    }

    /// Wakes the futures. A waker that panics harms nobody.
    pub(crate) fn wake_futures(&mut self) {
        for (_, waker) in self.futures.drain(..) {
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }
}
