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

/// One thing to do.
#[derive(Debug)]
pub(crate) enum Effect {
    /// A kernel slept until a message came. It is counted as busy until it has been woken.
    Receive(Arc<KernelCell>),
    /// A kernel has output that found no room before.
    Deliver(Arc<KernelCell>),
    Wake(Waker),
    Bury(Box<DeadParcel>),
}

/// Who is to be woken, and what has become undeliverable. Mostly empty, and then as cheap as a list.
#[must_use = "those who wait must be woken"]
#[derive(Debug, Default)]
pub(crate) struct Effects {
    list: Vec<Effect>,
}

impl Effects {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    #[inline]
    pub(crate) fn append(&mut self, mut other: Self) {
        if !other.list.is_empty() {
            self.list.append(&mut other.list);
        }
    }

    pub(crate) fn push(&mut self, effect: Effect) {
        self.list.push(effect);
    }

    /// Wakes all futures of a list, and empties it.
    #[inline]
    pub(crate) fn wake(&mut self, waiting: &mut Vec<WaitingFuture>) {
        if !waiting.is_empty() {
            self.list.extend(waiting.drain(..).map(|(_, waker)| Effect::Wake(waker)));
        }
    }

    pub(crate) fn bury(&mut self, dead: DeadParcel) {
        self.list.push(Effect::Bury(Box::new(dead)));
    }

    /// How many messages were refused for good on their way in.
    #[inline]
    pub(crate) fn refused(&self) -> usize {
        let is_refused = |effect: &&Effect| match effect {
            Effect::Bury(dead) => dead.reason != DeliveryReason::Expired,
            _ => false,
        };
        self.list.iter().filter(is_refused).count()
    }
}

impl IntoIterator for Effects {
    type Item = Effect;
    type IntoIter = std::vec::IntoIter<Effect>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

/// Wakes a future. A waker that panics harms nobody.
pub(crate) fn wake(waker: Waker) {
    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
}
