//! A bounded queue of messages that belongs to a kernel or an endpoint, not to a device.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::Instant;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::channel::Channel;
use super::error::DeliveryReason;
use super::kernel::KernelCell;
use crate::message::{Envelope, Message};

/// A numbered message with the channel that carries it.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub(crate) channel: Arc<Channel>,
    pub(crate) sequence: u64,
    pub(crate) message: Message,
}

impl Parcel {
    pub(crate) fn into_envelope(self) -> Envelope {
        Envelope {
            channel: self.channel.id,
            sequence: self.sequence,
            in_port: self.channel.to.in_port,
            message: self.message,
        }
    }
}

/// The queue. Pushing never blocks; who finds it full is remembered and woken when there is room.
#[derive(Debug)]
pub(crate) struct Mailbox {
    capacity: usize,
    inner: Mutex<Inner>,
    room: Condvar,
    arrival: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    queue: VecDeque<Parcel>,
    refuses: Refuses,
    waiting_kernels: Vec<Weak<KernelCell>>,
    waiting_senders: Vec<Waiting>,
    waiting_receivers: Vec<Waiting>,
}

/// A future that waits: its token, so that polling it again replaces its waker, and the waker.
type Waiting = (u64, Waker);

/// A token for a new future.
pub(crate) fn new_token() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Whose messages the mailbox refuses, and why.
#[derive(Clone, Debug, Default)]
enum Refuses {
    #[default]
    Nobody,
    /// The kernel is lost: messages of other kernels are kept for its restoration, the host hears
    /// of the loss.
    Host(Arc<DeliveryReason>),
    Everybody(Arc<DeliveryReason>),
}

/// A push that did not happen, with what was to be pushed.
#[derive(Debug)]
pub(crate) enum Refused<T> {
    Full(T),
    Closed(T, Arc<DeliveryReason>),
}

/// Who is to be woken because of a change in a mailbox. Waking needs locks and calls user code, so
/// it is done when no lock is held, with [`Runtime::wake`](super::runtime::Runtime::wake).
#[must_use = "those who wait must be woken"]
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    pub(crate) kernels: Vec<Arc<KernelCell>>,
    futures: Vec<Waiting>,
}

impl Waiters {
    /// Wakes the futures. A waker that panics harms nobody.
    pub(crate) fn wake_futures(&mut self) {
        for (_, waker) in self.futures.drain(..) {
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }
}

impl Mailbox {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            inner: Mutex::new(Inner::default()),
            room: Condvar::new(),
            arrival: Condvar::new(),
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.capacity
    }

    pub(crate) fn len(&self) -> usize {
        self.inner.lock().queue.len()
    }

    /// Appends what a kernel sent. If there is no room, `sender` is woken when there is some.
    pub(crate) fn push(
        &self,
        parcel: Parcel,
        sender: &Arc<KernelCell>,
    ) -> Result<Waiters, Refused<Parcel>> {
        let mut inner = self.inner.lock();
        if let Refuses::Everybody(reason) = &inner.refuses {
            return Err(Refused::Closed(parcel, Arc::clone(reason)));
        }
        if inner.queue.len() >= self.capacity {
            let known =
                inner.waiting_kernels.iter().any(|kernel| kernel.ptr_eq(&Arc::downgrade(sender)));
            if !known {
                inner.waiting_kernels.push(Arc::downgrade(sender));
            }
            return Err(Refused::Full(parcel));
        }
        Ok(self.accept(inner, parcel))
    }

    /// Appends what the host sent, numbering it: number and place in the queue are given together,
    /// so that threads that share a sender cannot disorder its channel. Returns at `deadline`
    /// when no room was found; `None` waits as long as it takes, `Some(now)` not at all.
    pub(crate) fn push_from_host(
        &self,
        channel: &Arc<Channel>,
        message: Message,
        deadline: Option<Instant>,
    ) -> Result<Waiters, Refused<Message>> {
        let mut inner = self.inner.lock();
        loop {
            if let Some(reason) = inner.refuses.host() {
                return Err(Refused::Closed(message, reason));
            }
            if inner.queue.len() < self.capacity {
                let sequence = channel.next_sequence();
                let parcel = Parcel { channel: Arc::clone(channel), sequence, message };
                return Ok(self.accept(inner, parcel));
            }
            match deadline {
                None => self.room.wait(&mut inner),
                Some(deadline) => {
                    if Instant::now() >= deadline {
                        return Err(Refused::Full(message));
                    }
                    self.room.wait_until(&mut inner, deadline);
                }
            }
        }
    }

    /// As [`push_from_host`](Self::push_from_host), but remembers who waits instead of blocking.
    pub(crate) fn push_or_wake(
        &self,
        channel: &Arc<Channel>,
        message: Message,
        waiting: Waiting,
    ) -> Result<Waiters, Refused<Message>> {
        let mut inner = self.inner.lock();
        if let Some(reason) = inner.refuses.host() {
            return Err(Refused::Closed(message, reason));
        }
        if inner.queue.len() >= self.capacity {
            remember(&mut inner.waiting_senders, waiting);
            return Err(Refused::Full(message));
        }
        let sequence = channel.next_sequence();
        Ok(self.accept(inner, Parcel { channel: Arc::clone(channel), sequence, message }))
    }

    /// Queues a parcel unless it came before.
    fn accept(&self, mut inner: MutexGuard<'_, Inner>, parcel: Parcel) -> Waiters {
        if !parcel.channel.arrived(parcel.sequence) {
            return Waiters::default();
        }
        inner.queue.push_back(parcel);
        let futures = std::mem::take(&mut inner.waiting_receivers);
        drop(inner);
        self.arrival.notify_one();
        Waiters { kernels: Vec::new(), futures }
    }

    /// Moves up to `most` messages into `into`, oldest first.
    pub(crate) fn take(&self, most: usize, into: &mut Vec<Parcel>) -> Waiters {
        let mut inner = self.inner.lock();
        let count = most.min(inner.queue.len());
        into.extend(inner.queue.drain(..count));
        if count == 0 { Waiters::default() } else { self.made_room(inner) }
    }

    /// Takes the oldest message, waiting for one until `deadline`.
    pub(crate) fn take_one(
        &self,
        deadline: Option<Instant>,
    ) -> Result<(Parcel, Waiters), Option<DeliveryReason>> {
        let mut inner = self.inner.lock();
        loop {
            if let Some(parcel) = inner.queue.pop_front() {
                return Ok((parcel, self.made_room(inner)));
            }
            if let Refuses::Everybody(reason) = &inner.refuses {
                return Err(Some(DeliveryReason::clone(reason)));
            }
            match deadline {
                None => self.arrival.wait(&mut inner),
                Some(deadline) => {
                    if Instant::now() >= deadline {
                        return Err(None);
                    }
                    self.arrival.wait_until(&mut inner, deadline);
                }
            }
        }
    }

    /// Takes the oldest message, or remembers who waits for the next arrival.
    pub(crate) fn take_or_wake(
        &self,
        waiting: Waiting,
    ) -> Result<(Parcel, Waiters), Option<DeliveryReason>> {
        let mut inner = self.inner.lock();
        if let Some(parcel) = inner.queue.pop_front() {
            return Ok((parcel, self.made_room(inner)));
        }
        if let Refuses::Everybody(reason) = &inner.refuses {
            return Err(Some(DeliveryReason::clone(reason)));
        }
        remember(&mut inner.waiting_receivers, waiting);
        Err(None)
    }

    /// Puts the messages of a step that did not happen back in front, in their order.
    pub(crate) fn put_back(&self, parcels: Vec<Parcel>) {
        let mut inner = self.inner.lock();
        for parcel in parcels.into_iter().rev() {
            inner.queue.push_front(parcel);
        }
    }

    /// Refuses every further message. What is queued stays.
    pub(crate) fn close(&self, reason: DeliveryReason) -> Waiters {
        let mut inner = self.inner.lock();
        inner.refuses = Refuses::Everybody(Arc::new(reason));
        let mut receivers = std::mem::take(&mut inner.waiting_receivers);
        let mut waiters = self.made_room(inner);
        self.arrival.notify_all();
        waiters.futures.append(&mut receivers);
        waiters
    }

    /// Refuses further messages of the host; those of kernels are kept.
    pub(crate) fn close_for_host(&self, reason: DeliveryReason) -> Waiters {
        let mut inner = self.inner.lock();
        if matches!(inner.refuses, Refuses::Nobody) {
            inner.refuses = Refuses::Host(Arc::new(reason));
        }
        let futures = std::mem::take(&mut inner.waiting_senders);
        drop(inner);
        self.room.notify_all();
        Waiters { kernels: Vec::new(), futures }
    }

    /// Takes messages of the host again, after [`close_for_host`](Self::close_for_host).
    pub(crate) fn open_for_host(&self) {
        let mut inner = self.inner.lock();
        if matches!(inner.refuses, Refuses::Host(_)) {
            inner.refuses = Refuses::Nobody;
        }
    }

    /// Empties the queue, oldest first.
    pub(crate) fn drain(&self) -> Vec<Parcel> {
        self.inner.lock().queue.drain(..).collect()
    }

    fn made_room(&self, mut inner: MutexGuard<'_, Inner>) -> Waiters {
        let kernels =
            inner.waiting_kernels.drain(..).filter_map(|kernel| kernel.upgrade()).collect();
        let futures = std::mem::take(&mut inner.waiting_senders);
        drop(inner);
        self.room.notify_all();
        Waiters { kernels, futures }
    }
}

impl Refuses {
    fn host(&self) -> Option<Arc<DeliveryReason>> {
        match self {
            Self::Nobody => None,
            Self::Host(reason) | Self::Everybody(reason) => Some(Arc::clone(reason)),
        }
    }
}

fn remember(waiting: &mut Vec<Waiting>, (token, waker): Waiting) {
    match waiting.iter_mut().find(|(known, _)| *known == token) {
        Some((_, known)) => *known = waker,
        None => waiting.push((token, waker)),
    }
}
