//! Channels: who sends to whom, and the ledger of what was sent and what came.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::router::RoutingDecision;
use crate::id::{ChannelId, KernelId};
use crate::message::Priority;

/// Numbers skipped on one channel that are remembered; beyond, a late one counts as twice.
const MOST_MISSING: usize = 4096;

/// One end of a channel, as a report names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Party {
    /// A kernel's port.
    Kernel {
        /// The kernel.
        kernel: KernelId,
        /// The port's name.
        port: String,
    },
    /// A sender or endpoint of the host.
    Host {
        /// Its name.
        name: String,
    },
}

impl std::fmt::Display for Party {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Kernel { kernel, port } => write!(formatter, "{kernel}.{port}"),
            Self::Host { name } => write!(formatter, "host:{name}"),
        }
    }
}

/// A channel with its two ledgers: the sender's numbers and what came to the receiver. They lie apart
/// in memory, since sender and receiver write them from different cores.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) id: ChannelId,
    pub(crate) from: Party,
    pub(crate) to: Party,
    pub(crate) in_port: u32,
    sender: CachePadded<SenderLedger>,
    receiver: CachePadded<ReceiverLedger>,
}

#[derive(Debug, Default)]
struct SenderLedger {
    /// The last number, of each priority.
    sent: [AtomicU64; Priority::COUNT],
    /// Dead letters that never came to the receiver.
    refused: AtomicU64,
    same_device: AtomicU64,
    direct_p2p: AtomicU64,
    multi_hop: AtomicU64,
    host_mediated: AtomicU64,
    /// Devices that messages passed through.
    relays: Mutex<BTreeSet<usize>>,
}

/// What came, counted by the receiver from the numbers alone. Written under the mailbox's lock, or
/// with instructions that need none; read at any time.
#[derive(Debug, Default)]
struct ReceiverLedger {
    /// The greatest number that came, of each priority.
    last: [AtomicU64; Priority::COUNT],
    arrived: AtomicU64,
    duplicated: AtomicU64,
    out_of_order: AtomicU64,
    delivered: AtomicU64,
    /// Dead letters that came and were never consumed.
    discarded: AtomicU64,
    missing: Mutex<BTreeSet<(Priority, u64)>>,
}

impl Channel {
    pub(crate) fn new(id: ChannelId, from: Party, to: Party, in_port: u32) -> Self {
        Self {
            id,
            from,
            to,
            in_port,
            sender: CachePadded::default(),
            receiver: CachePadded::default(),
        }
    }

    /// Takes the sender's next `count` numbers of a priority; returns the first. Called by one thread
    /// at a time: whoever holds the sending kernel, or, for the host, the lock of the mailbox.
    #[inline]
    pub(crate) fn next_sequences(&self, priority: Priority, count: u64) -> u64 {
        add(&self.sender.sent[priority.level()], count) + 1
    }

    /// Notes that a message came. `false`: it came before and must not be delivered again.
    /// Called by one thread at a time: whoever holds the lock of the receiver's mailbox.
    #[inline]
    pub(crate) fn arrived(&self, priority: Priority, sequence: u64) -> bool {
        let ledger = &*self.receiver;
        let last = &ledger.last[priority.level()];
        let expected = last.load(Ordering::Relaxed) + 1;
        if sequence != expected && !self.arrived_out_of_turn(priority, sequence, expected) {
            return false;
        }
        if sequence >= expected {
            last.store(sequence, Ordering::Relaxed);
        }
        add(&ledger.arrived, 1);
        true
    }

    /// Notes that `count` messages came, if the first of them is the one that is expected: the others
    /// follow it. `false`: they must be looked at one by one. Called as [`arrived`](Self::arrived).
    pub(crate) fn arrived_in_turn(&self, priority: Priority, first: u64, count: u64) -> bool {
        let ledger = &*self.receiver;
        let last = &ledger.last[priority.level()];
        let is_expected = last.load(Ordering::Relaxed) + 1 == first;
        if is_expected {
            add(last, count);
            add(&ledger.arrived, count);
        }
        is_expected
    }

    #[cold]
    fn arrived_out_of_turn(&self, priority: Priority, sequence: u64, expected: u64) -> bool {
        let ledger = &*self.receiver;
        let mut missing = ledger.missing.lock();
        if sequence > expected {
            let space = MOST_MISSING - missing.len();
            missing.extend((expected..sequence).take(space).map(|number| (priority, number)));
            return true;
        }
        let is_late = missing.remove(&(priority, sequence));
        let count = if is_late { &ledger.out_of_order } else { &ledger.duplicated };
        count.fetch_add(1, Ordering::Relaxed);
        is_late
    }

    /// Notes that a step consumed messages, or that the host received them. Called by one thread at a
    /// time: whoever holds the receiving kernel, or, for the host, the lock of the mailbox.
    #[inline]
    pub(crate) fn note_delivered(&self, count: u64) {
        add(&self.receiver.delivered, count);
    }

    /// Notes a dead letter that could not be put into the receiver's mailbox.
    pub(crate) fn note_refused(&self) {
        self.sender.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes a dead letter that lay in the receiver's mailbox.
    pub(crate) fn note_discarded(&self) {
        self.receiver.discarded.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_route(&self, decision: RoutingDecision, count: u64) {
        let ledger = &*self.sender;
        match decision {
            RoutingDecision::SameDevice => &ledger.same_device,
            RoutingDecision::DirectP2P => &ledger.direct_p2p,
            RoutingDecision::MultiHop { relay } => {
                ledger.relays.lock().extend(relay);
                &ledger.multi_hop
            }
            RoutingDecision::HostMediated => &ledger.host_mediated,
        }
        .fetch_add(count, Ordering::Relaxed);
    }

    /// The ledgers as a row. `pending` messages are committed and not yet in the mailbox.
    pub(crate) fn ledger(&self, pending: u64) -> ChannelLedger {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (sender, receiver) = (&*self.sender, &*self.receiver);
        let (delivered, discarded) = (of(&receiver.delivered), of(&receiver.discarded));
        let (arrived, refused) = (of(&receiver.arrived), of(&sender.refused));
        // Read last, so that what is under way shows as such and not as less than nothing.
        let sent = sender.sent.iter().map(of).sum::<u64>();
        ChannelLedger {
            channel: self.id,
            from: self.from.clone(),
            to: self.to.clone(),
            sent,
            delivered,
            waiting: pending + arrived.saturating_sub(delivered + discarded),
            duplicated: of(&receiver.duplicated),
            out_of_order: of(&receiver.out_of_order),
            dead_lettered: refused + discarded,
            lost: sent.saturating_sub(arrived + pending + refused),
            same_device: of(&sender.same_device),
            direct_p2p: of(&sender.direct_p2p),
            multi_hop: of(&sender.multi_hop),
            host_mediated: of(&sender.host_mediated),
            relays: sender.relays.lock().iter().copied().collect(),
        }
    }
}

/// Adds to a count that has one writer at a time; returns what it was. Without the locked instruction
/// that many writers would need.
#[inline]
fn add(count: &AtomicU64, more: u64) -> u64 {
    let before = count.load(Ordering::Relaxed);
    count.store(before + more, Ordering::Relaxed);
    before
}

/// The ledgers of one channel. Exact while nothing runs ([`Fleet::wait_idle`]); taken while
/// messages move, a message under way can show as lost for an instant.
///
/// [`Fleet::wait_idle`]: super::Fleet::wait_idle
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelLedger {
    /// The channel.
    pub channel: ChannelId,
    /// The sender.
    pub from: Party,
    /// The receiver.
    pub to: Party,
    /// Messages that the sender numbered.
    pub sent: u64,
    /// Messages that a committed step consumed, or that the host received.
    pub delivered: u64,
    /// Messages committed by the sender and not consumed yet.
    pub waiting: u64,
    /// Messages that came twice. The second is not delivered.
    pub duplicated: u64,
    /// Messages that came after a later one.
    pub out_of_order: u64,
    /// Messages in the dead-letter list: a counted outcome, not a loss.
    pub dead_lettered: u64,
    /// Messages that were sent and are nowhere.
    pub lost: u64,
    /// Messages that stayed in the memory of one device.
    pub same_device: u64,
    /// Messages that one device read from another's memory.
    pub direct_p2p: u64,
    /// Messages that went from device to device through a third one.
    pub multi_hop: u64,
    /// Messages that went through host memory.
    pub host_mediated: u64,
    /// Indices of the devices in the middle of the multi-hop ways.
    pub relays: Vec<usize>,
}

#[cfg(test)]
mod tests;
