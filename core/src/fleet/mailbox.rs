//! A bounded queue of messages that belongs to a kernel or an endpoint, not to a device.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::channel::Channel;
use super::effects::{DeadParcel, Effect, Effects, WaitingFuture};
use super::error::DeliveryReason;
use super::host_side::{EnvelopeSink, MessageSource, Refusal, Wait};
use super::kernel::KernelCell;
use super::lanes::{Lanes, Parcel};
use super::pulse::Pulse;
use crate::message::Envelope;

/// The queue. Pushing never blocks; who finds it full is remembered and woken when there is room.
///
/// A kernel that finds its mailbox empty and goes to rest *arms* it: the next push wakes the kernel,
/// and no other does. So a push to a kernel that runs costs one short lock and nothing else.
#[derive(Debug)]
pub(crate) struct Mailbox {
    capacity: usize,
    /// The kernel to wake; unset at an endpoint.
    owner: OnceLock<Weak<KernelCell>>,
    pulse: Arc<Pulse>,
    inner: Mutex<Inner>,
    /// A copy of the queue's length, read without the lock.
    depth: AtomicUsize,
    room: Condvar,
    arrival: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    lanes: Lanes,
    /// The channels that lead here, by the number that parcels carry. It only grows.
    sources: Vec<Arc<Channel>>,
    is_armed: bool,
    refuses: Refuses,
    waiting_kernels: Vec<Weak<KernelCell>>,
    waiting_senders: Vec<WaitingFuture>,
    waiting_receivers: Vec<WaitingFuture>,
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

impl Mailbox {
    pub(crate) fn new(capacity: usize, pulse: Arc<Pulse>) -> Self {
        Self {
            capacity,
            owner: OnceLock::new(),
            pulse,
            inner: Mutex::new(Inner::default()),
            depth: AtomicUsize::new(0),
            room: Condvar::new(),
            arrival: Condvar::new(),
        }
    }

    /// Makes this the mailbox of a kernel.
    pub(crate) fn belongs_to(&self, kernel: &Arc<KernelCell>) {
        let set = self.owner.set(Arc::downgrade(kernel));
        debug_assert!(set.is_ok(), "a mailbox has one owner");
    }

    /// Lets a channel lead here; returns the number that its parcels carry.
    pub(crate) fn attach(&self, channel: Arc<Channel>) -> u32 {
        let sources = &mut self.inner.lock().sources;
        sources.push(channel);
        u32::try_from(sources.len() - 1).expect("fewer than 2^32 channels lead to a mailbox")
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.capacity
    }

    /// The number of messages, a moment ago.
    pub(crate) fn len(&self) -> usize {
        self.depth.load(Ordering::Relaxed)
    }

    /// Whether there is a message. If not, the next push wakes the kernel.
    pub(crate) fn has_message_or_arm(&self) -> bool {
        let mut inner = self.inner.lock();
        inner.is_armed = inner.lanes.len() == 0;
        !inner.is_armed
    }

    /// Appends what fits of what a kernel sent. If something is left, `sender` is woken when there
    /// is room. A mailbox that refuses takes everything as undeliverable.
    pub(crate) fn push_all(
        &self,
        parcels: &mut VecDeque<Parcel>,
        sender: &Arc<KernelCell>,
    ) -> Effects {
        let mut effects = Effects::default();
        let mut inner = self.inner.lock();
        if let Refuses::Everybody(reason) = &inner.refuses {
            for parcel in parcels.drain(..) {
                let channel = Arc::clone(&inner.sources[parcel.source as usize]);
                channel.note_refused();
                effects.bury(dead(channel, parcel, DeliveryReason::clone(reason)));
            }
            return effects;
        }
        if self.room_for(&mut inner, parcels.len(), &mut effects) < parcels.len() {
            inner.remember_sender(sender);
        }
        let fitting = (self.capacity.saturating_sub(inner.lanes.len())).min(parcels.len());
        inner.accept_all(parcels, fitting);
        self.arrived(inner, fitting, &mut effects);
        effects
    }

    /// Appends what fits of what the host sends through one channel, numbering it: number and place
    /// in the queue are given together, so that threads that share a sender cannot disorder its
    /// channel. With `waiting`, a future is remembered if something is left.
    pub(crate) fn push_from_host(
        &self,
        source: u32,
        messages: &mut impl MessageSource,
        waiting: Option<WaitingFuture>,
    ) -> (Result<(), Refusal>, Effects) {
        let mut effects = Effects::default();
        let mut inner = self.inner.lock();
        if let Some(reason) = inner.refuses.host() {
            return (Err(Refusal::Closed(reason)), effects);
        }
        let fitting = self.room_for(&mut inner, messages.left(), &mut effects);
        let fitting = fitting.min(messages.left());
        for _ in 0..fitting {
            let message = messages.next().expect("as many as it says");
            let sequence = inner.sources[source as usize].next_sequences(message.priority, 1);
            inner.accept(Parcel { sequence, source, message });
        }
        let is_left = messages.left() > 0;
        if is_left && let Some(waiting) = waiting {
            remember(&mut inner.waiting_senders, waiting);
        }
        self.arrived(inner, fitting, &mut effects);
        (if is_left { Err(Refusal::Full) } else { Ok(()) }, effects)
    }

    /// Waits until there is room or the mailbox refuses the host. `false` when the deadline came
    /// first.
    pub(crate) fn wait_for_room(&self, deadline: Option<Instant>) -> bool {
        let mut inner = self.inner.lock();
        while inner.lanes.len() >= self.capacity && inner.refuses.host().is_none() {
            match deadline {
                None => self.room.wait(&mut inner),
                Some(deadline) => {
                    if self.room.wait_until(&mut inner, deadline).timed_out() {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// How much room there is, after what has expired was thrown out if that is needed.
    fn room_for(&self, inner: &mut Inner, wanted: usize, effects: &mut Effects) -> usize {
        let room = self.capacity.saturating_sub(inner.lanes.len());
        if room >= wanted {
            return room;
        }
        let mut expired = Vec::new();
        inner.lanes.expire(&mut expired);
        inner.bury(expired, effects);
        self.capacity.saturating_sub(inner.lanes.len())
    }

    /// Ends a push.
    #[inline]
    fn arrived(&self, mut inner: MutexGuard<'_, Inner>, count: usize, effects: &mut Effects) {
        self.depth.store(inner.lanes.len(), Ordering::Relaxed);
        if inner.lanes.len() == 0 || count == 0 {
            return;
        }
        if inner.is_armed {
            inner.is_armed = false;
            if let Some(owner) = self.owner.get().and_then(Weak::upgrade) {
                // Counted under the lock, so that nobody finds the fleet idle before it is woken.
                self.pulse.add();
                effects.push(Effect::Receive(owner));
            }
        }
        effects.wake(&mut inner.waiting_receivers);
        drop(inner);
        if count == 1 {
            self.arrival.notify_one();
        } else {
            self.arrival.notify_all();
        }
    }

    /// Moves up to `most` messages into `into`, the most urgent first, and brings the caller's list
    /// of channels up to date.
    pub(crate) fn take(
        &self,
        most: usize,
        into: &mut VecDeque<Parcel>,
        sources: &mut Vec<Arc<Channel>>,
    ) -> Effects {
        let mut effects = Effects::default();
        let mut inner = self.inner.lock();
        if inner.lanes.len() == 0 {
            return effects;
        }
        if sources.len() < inner.sources.len() {
            sources.extend_from_slice(&inner.sources[sources.len()..]);
        }
        let mut expired = Vec::new();
        inner.lanes.take(most, into, &mut expired);
        inner.bury(expired, &mut effects);
        self.made_room(inner, &mut effects);
        effects
    }

    /// Takes the first messages for the host, up to `most`, which is at least 1; waits for one if
    /// that is wanted.
    pub(crate) fn take_for_host(
        &self,
        most: usize,
        wait: Wait,
        into: &mut impl EnvelopeSink,
    ) -> (Result<usize, Option<DeliveryReason>>, Effects) {
        let mut effects = Effects::default();
        let mut inner = self.inner.lock();
        loop {
            let taken = inner.take_envelopes(most, into, &mut effects);
            if taken > 0 {
                self.made_room(inner, &mut effects);
                return (Ok(taken), effects);
            }
            if let Refuses::Everybody(reason) = &inner.refuses {
                let reason = DeliveryReason::clone(reason);
                return (Err(Some(reason)), effects);
            }
            match wait {
                Wait::For(None) => self.arrival.wait(&mut inner),
                Wait::For(Some(deadline)) if Instant::now() < deadline => {
                    self.arrival.wait_until(&mut inner, deadline);
                }
                Wait::No | Wait::For(Some(_)) => {
                    self.made_room(inner, &mut effects);
                    return (Err(None), effects);
                }
            }
        }
    }

    /// Takes the first message for the host, or remembers who waits for the next arrival.
    pub(crate) fn take_or_wake(
        &self,
        waiting: WaitingFuture,
        into: &mut impl EnvelopeSink,
    ) -> (Result<usize, Option<DeliveryReason>>, Effects) {
        let mut effects = Effects::default();
        let mut inner = self.inner.lock();
        let taken = inner.take_envelopes(1, into, &mut effects);
        if taken > 0 {
            self.made_room(inner, &mut effects);
            return (Ok(taken), effects);
        }
        if let Refuses::Everybody(reason) = &inner.refuses {
            let reason = DeliveryReason::clone(reason);
            return (Err(Some(reason)), effects);
        }
        remember(&mut inner.waiting_receivers, waiting);
        (Err(None), effects)
    }

    /// Puts the messages of a step that did not happen back in front, in their order.
    pub(crate) fn put_back(&self, parcels: VecDeque<Parcel>) {
        let mut inner = self.inner.lock();
        for parcel in parcels.into_iter().rev() {
            inner.lanes.push_front(parcel);
        }
        self.depth.store(inner.lanes.len(), Ordering::Relaxed);
    }

    /// Refuses every further message. What is queued stays.
    pub(crate) fn close(&self, reason: DeliveryReason) -> Effects {
        let mut effects = Effects::default();
        let mut inner = self.inner.lock();
        inner.refuses = Refuses::Everybody(Arc::new(reason));
        effects.wake(&mut inner.waiting_receivers);
        self.made_room(inner, &mut effects);
        self.arrival.notify_all();
        effects
    }

    /// Refuses further messages of the host; those of kernels are kept.
    pub(crate) fn close_for_host(&self, reason: DeliveryReason) -> Effects {
        let mut inner = self.inner.lock();
        if matches!(inner.refuses, Refuses::Nobody) {
            inner.refuses = Refuses::Host(Arc::new(reason));
        }
        let mut effects = Effects::default();
        effects.wake(&mut inner.waiting_senders);
        drop(inner);
        self.room.notify_all();
        effects
    }

    /// Takes messages of the host again, after [`close_for_host`](Self::close_for_host).
    pub(crate) fn open_for_host(&self) {
        let mut inner = self.inner.lock();
        if matches!(inner.refuses, Refuses::Host(_)) {
            inner.refuses = Refuses::Nobody;
        }
    }

    /// Empties the queue, the most urgent first. What it held will not be delivered.
    pub(crate) fn discard(&self, reason: &DeliveryReason) -> Vec<DeadParcel> {
        let mut inner = self.inner.lock();
        let parcels = inner.lanes.drain();
        self.depth.store(0, Ordering::Relaxed);
        let bury = |parcel: Parcel| {
            let channel = Arc::clone(&inner.sources[parcel.source as usize]);
            channel.note_discarded();
            dead(channel, parcel, reason.clone())
        };
        parcels.into_iter().map(bury).collect()
    }

    /// Ends a take.
    #[inline]
    fn made_room(&self, mut inner: MutexGuard<'_, Inner>, effects: &mut Effects) {
        self.depth.store(inner.lanes.len(), Ordering::Relaxed);
        if !inner.waiting_kernels.is_empty() {
            for kernel in inner.waiting_kernels.drain(..).filter_map(|kernel| kernel.upgrade()) {
                effects.push(Effect::Deliver(kernel));
            }
        }
        effects.wake(&mut inner.waiting_senders);
        drop(inner);
        self.room.notify_all();
    }
}

impl Inner {
    /// Queues a parcel unless it came before.
    #[inline]
    fn accept(&mut self, parcel: Parcel) {
        let channel = &self.sources[parcel.source as usize];
        if channel.arrived(parcel.message.priority, parcel.sequence) {
            self.lanes.push_back(parcel);
        }
    }

    /// Queues the first `count` of some parcels of one channel, which have one priority and numbers
    /// in a row.
    fn accept_all(&mut self, parcels: &mut VecDeque<Parcel>, count: usize) {
        let Some(first) = parcels.front() else { return };
        let (priority, channel) = (first.message.priority, &self.sources[first.source as usize]);
        if channel.arrived_in_turn(priority, first.sequence, count as u64) {
            self.lanes.push_all(priority, parcels, count);
        } else {
            parcels.drain(..count).for_each(|parcel| self.accept(parcel));
        }
    }

    fn remember_sender(&mut self, sender: &Arc<KernelCell>) {
        let sender = Arc::downgrade(sender);
        if !self.waiting_kernels.iter().any(|known| known.ptr_eq(&sender)) {
            self.waiting_kernels.push(sender);
        }
    }

    /// Counts parcels that have expired, and hands them on to become dead letters.
    #[inline]
    fn bury(&self, expired: Vec<Parcel>, effects: &mut Effects) {
        for parcel in expired {
            let channel = Arc::clone(&self.sources[parcel.source as usize]);
            channel.note_discarded();
            effects.bury(dead(channel, parcel, DeliveryReason::Expired));
        }
    }

    #[inline]
    fn take_envelopes(
        &mut self,
        most: usize,
        into: &mut impl EnvelopeSink,
        effects: &mut Effects,
    ) -> usize {
        let mut expired = Vec::new();
        let mut taken = 0;
        while taken < most
            && let Some(parcel) = self.lanes.take_one(&mut expired)
        {
            let Parcel { sequence, source, message } = parcel;
            let channel = &self.sources[source as usize];
            channel.note_delivered(1);
            let in_port = channel.in_port;
            into.put(Envelope { channel: channel.id, sequence, in_port, message });
            taken += 1;
        }
        self.bury(expired, effects);
        taken
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

fn dead(channel: Arc<Channel>, parcel: Parcel, reason: DeliveryReason) -> DeadParcel {
    DeadParcel { channel, parcel, reason }
}

fn remember(waiting: &mut Vec<WaitingFuture>, (token, waker): WaitingFuture) {
    match waiting.iter_mut().find(|(known, _)| *known == token) {
        Some((_, known)) => *known = waker,
        None => waiting.push((token, waker)),
    }
}
