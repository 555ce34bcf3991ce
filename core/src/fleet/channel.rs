//! Channels: who sends to whom, and the ledger of what was sent and what came.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::kernel::KernelCell;
use super::mailbox::Mailbox;
use super::router::RoutingDecision;
use crate::id::{ChannelId, KernelId};

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

/// Where a channel's messages go.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) party: Party,
    pub(crate) mailbox: Arc<Mailbox>,
    /// The kernel to run when a message comes; `None` at an endpoint.
    pub(crate) kernel: Option<Weak<KernelCell>>,
    pub(crate) in_port: u32,
}

/// A channel with its two ledgers: the sender's numbers and what came to the receiver.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) id: ChannelId,
    pub(crate) from: Party,
    pub(crate) to: Target,
    sent: AtomicU64,
    delivered: AtomicU64,
    /// Dead letters that never came to the receiver.
    refused: AtomicU64,
    /// Dead letters that came and were never consumed.
    discarded: AtomicU64,
    same_device: AtomicU64,
    direct_p2p: AtomicU64,
    multi_hop: AtomicU64,
    host_mediated: AtomicU64,
    /// Devices that messages passed through.
    relays: Mutex<BTreeSet<usize>>,
    receiver: Mutex<ReceiverLedger>,
}

/// What came, counted by the receiver from the numbers alone.
#[derive(Debug)]
struct ReceiverLedger {
    next: u64,
    missing: BTreeSet<u64>,
    arrived: u64,
    duplicated: u64,
    out_of_order: u64,
}

impl Channel {
    pub(crate) fn new(id: ChannelId, from: Party, to: Target) -> Self {
        Self {
            id,
            from,
            to,
            sent: AtomicU64::new(0),
            delivered: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            discarded: AtomicU64::new(0),
            same_device: AtomicU64::new(0),
            direct_p2p: AtomicU64::new(0),
            multi_hop: AtomicU64::new(0),
            host_mediated: AtomicU64::new(0),
            relays: Mutex::default(),
            receiver: Mutex::new(ReceiverLedger {
                next: 1,
                missing: BTreeSet::new(),
                arrived: 0,
                duplicated: 0,
                out_of_order: 0,
            }),
        }
    }

    /// The sender's next number.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.sent.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Notes that a message came. `false`: it came before and must not be delivered again.
    pub(crate) fn arrived(&self, sequence: u64) -> bool {
        let mut ledger = self.receiver.lock();
        if sequence >= ledger.next {
            let skipped = ledger.next..sequence;
            let space = MOST_MISSING - ledger.missing.len();
            ledger.missing.extend(skipped.take(space));
            ledger.next = sequence + 1;
        } else if ledger.missing.remove(&sequence) {
            ledger.out_of_order += 1;
        } else {
            ledger.duplicated += 1;
            return false;
        }
        ledger.arrived += 1;
        true
    }

    /// Notes that a step consumed a message, or that the host received it.
    pub(crate) fn note_delivered(&self) {
        self.delivered.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes a dead letter that could not be put into the receiver's mailbox.
    pub(crate) fn note_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes a dead letter that lay in the receiver's mailbox when the receiver went.
    pub(crate) fn note_discarded(&self) {
        self.discarded.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_route(&self, decision: RoutingDecision) {
        match decision {
            RoutingDecision::SameDevice => &self.same_device,
            RoutingDecision::DirectP2P => &self.direct_p2p,
            RoutingDecision::MultiHop { relay } => {
                self.relays.lock().extend(relay);
                &self.multi_hop
            }
            RoutingDecision::HostMediated => &self.host_mediated,
        }
        .fetch_add(1, Ordering::Relaxed);
    }

    /// The ledgers as a row. `pending` messages are committed and not yet in the mailbox.
    pub(crate) fn ledger(&self, pending: u64) -> ChannelLedger {
        let delivered = self.delivered.load(Ordering::Relaxed);
        let discarded = self.discarded.load(Ordering::Relaxed);
        let refused = self.refused.load(Ordering::Relaxed);
        let receiver = self.receiver.lock();
        let sent = self.sent.load(Ordering::Relaxed);
        ChannelLedger {
            channel: self.id,
            from: self.from.clone(),
            to: self.to.party.clone(),
            sent,
            delivered,
            waiting: pending + receiver.arrived.saturating_sub(delivered + discarded),
            duplicated: receiver.duplicated,
            out_of_order: receiver.out_of_order,
            dead_lettered: refused + discarded,
            lost: sent.saturating_sub(receiver.arrived + pending + refused),
            same_device: self.same_device.load(Ordering::Relaxed),
            direct_p2p: self.direct_p2p.load(Ordering::Relaxed),
            multi_hop: self.multi_hop.load(Ordering::Relaxed),
            host_mediated: self.host_mediated.load(Ordering::Relaxed),
            relays: self.relays.lock().iter().copied().collect(),
        }
    }
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
