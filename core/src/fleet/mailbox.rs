//! A bounded queue of messages that belongs to a kernel or an endpoint, not to a device.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

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
    waiting_senders: Vec<Waker>,
    waiting_receivers: Vec<Waker>,
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

/// Who is to be woken because there is room now. Waking needs locks, so it is done after the
/// mailbox's own lock is released.
#[must_use = "those who wait for room must be woken"]
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    pub(crate) kernels: Vec<Arc<KernelCell>>,
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

    pub(crate) fn len(&self) -> usize {
        self.inner.lock().queue.len()
    }

    /// Appends what a kernel sent. If there is no room, `sender` is woken when there is some.
    pub(crate) fn push(
        &self,
        parcel: Parcel,
        sender: &Arc<KernelCell>,
    ) -> Result<(), Refused<Parcel>> {
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
        self.accept(inner, parcel);
        Ok(())
    }

    /// Appends what the host sent, numbering it: number and place in the queue are given together,
    /// so that threads that share a sender cannot disorder its channel. Returns at `deadline`
    /// when no room was found; `None` waits as long as it takes, `Some(now)` not at all.
    pub(crate) fn push_from_host(
        &self,
        channel: &Arc<Channel>,
        message: Message,
        deadline: Option<Instant>,
    ) -> Result<(), Refused<Message>> {
        let mut inner = self.inner.lock();
        loop {
            if let Some(reason) = inner.refuses.host() {
                return Err(Refused::Closed(message, reason));
            }
            if inner.queue.len() < self.capacity {
                let sequence = channel.next_sequence();
                self.accept(inner, Parcel { channel: Arc::clone(channel), sequence, message });
                return Ok(());
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

    /// As [`push_from_host`](Self::push_from_host), but remembers `waker` instead of blocking.
    pub(crate) fn push_or_wake(
        &self,
        channel: &Arc<Channel>,
        message: Message,
        waker: &Waker,
    ) -> Result<(), Refused<Message>> {
        let mut inner = self.inner.lock();
        if let Some(reason) = inner.refuses.host() {
            return Err(Refused::Closed(message, reason));
        }
        if inner.queue.len() >= self.capacity {
            remember(&mut inner.waiting_senders, waker);
            return Err(Refused::Full(message));
        }
        let sequence = channel.next_sequence();
        self.accept(inner, Parcel { channel: Arc::clone(channel), sequence, message });
        Ok(())
    }

    /// Queues a parcel unless it came before, and tells receivers.
    fn accept(&self, mut inner: parking_lot::MutexGuard<'_, Inner>, parcel: Parcel) {
        if !parcel.channel.arrived(parcel.sequence) {
            return;
        }
        inner.queue.push_back(parcel);
        let wakers = std::mem::take(&mut inner.waiting_receivers);
        drop(inner);
        self.arrival.notify_one();
        wakers.into_iter().for_each(Waker::wake);
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

    /// Takes the oldest message, or remembers `waker` for the next arrival.
    pub(crate) fn take_or_wake(
        &self,
        waker: &Waker,
    ) -> Result<(Parcel, Waiters), Option<DeliveryReason>> {
        let mut inner = self.inner.lock();
        if let Some(parcel) = inner.queue.pop_front() {
            return Ok((parcel, self.made_room(inner)));
        }
        if let Refuses::Everybody(reason) = &inner.refuses {
            return Err(Some(DeliveryReason::clone(reason)));
        }
        remember(&mut inner.waiting_receivers, waker);
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
        let receivers = std::mem::take(&mut inner.waiting_receivers);
        let waiters = self.made_room(inner);
        self.arrival.notify_all();
        receivers.into_iter().for_each(Waker::wake);
        waiters
    }

    /// Refuses further messages of the host; those of kernels are kept.
    pub(crate) fn close_for_host(&self, reason: DeliveryReason) {
        let mut inner = self.inner.lock();
        if matches!(inner.refuses, Refuses::Nobody) {
            inner.refuses = Refuses::Host(Arc::new(reason));
        }
        let senders = std::mem::take(&mut inner.waiting_senders);
        drop(inner);
        self.room.notify_all();
        senders.into_iter().for_each(Waker::wake);
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

    fn made_room(&self, mut inner: parking_lot::MutexGuard<'_, Inner>) -> Waiters {
        let kernels =
            inner.waiting_kernels.drain(..).filter_map(|kernel| kernel.upgrade()).collect();
        let senders = std::mem::take(&mut inner.waiting_senders);
        drop(inner);
        self.room.notify_all();
        senders.into_iter().for_each(Waker::wake);
        Waiters { kernels }
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

fn remember(wakers: &mut Vec<Waker>, waker: &Waker) {
    if !wakers.iter().any(|known| known.will_wake(waker)) {
        wakers.push(waker.clone());
    }
}
