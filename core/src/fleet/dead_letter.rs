//! Messages that could not be delivered, with the reason.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::channel::Party;
use super::effects::DeadParcel;
use super::error::DeliveryReason;
use super::kernel::KernelCell;
use crate::id::ChannelId;
use crate::message::Message;

/// Dead letters that are kept; older ones are forgotten, their number is not.
const MOST_KEPT: usize = 1024;

/// A message that could not be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The channel and the message's number on it; `None` when the sender's port was unbound.
    pub channel: Option<(ChannelId, u64)>,
    /// Who sent it.
    pub from: Party,
    /// Who should have got it; `None` when the sender's port was unbound.
    pub to: Option<Party>,
    /// The message.
    pub message: Message,
    /// Why it was not delivered.
    pub reason: DeliveryReason,
}

/// The list of dead letters.
#[derive(Debug, Default)]
pub(crate) struct DeadLetters {
    total: AtomicU64,
    kept: Mutex<VecDeque<DeadLetter>>,
}

impl DeadLetters {
    /// Adds an undeliverable parcel, which its channel's ledger has counted.
    pub(crate) fn add(&self, dead: DeadParcel) {
        let DeadParcel { channel, parcel, reason } = dead;
        self.push(DeadLetter {
            channel: Some((channel.id, parcel.sequence)),
            from: channel.from.clone(),
            to: Some(channel.to.clone()),
            message: parcel.message,
            reason,
        });
    }

    /// Adds what a kernel sent on ports that are bound to no channel.
    pub(crate) fn add_unbound(&self, cell: &KernelCell, messages: Vec<(u32, Message)>) {
        for (port, message) in messages {
            let port = cell.program.out_ports()[port as usize].name.clone();
            self.push(DeadLetter {
                channel: None,
                from: Party::Kernel { kernel: cell.id, port: port.clone() },
                to: None,
                message,
                reason: DeliveryReason::Unbound { kernel: cell.id, port },
            });
        }
    }

    fn push(&self, letter: DeadLetter) {
        self.total.fetch_add(1, Ordering::Relaxed);
        let mut kept = self.kept.lock();
        if kept.len() == MOST_KEPT {
            kept.pop_front();
        }
        kept.push_back(letter);
    }

    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    pub(crate) fn kept(&self) -> Vec<DeadLetter> {
        self.kept.lock().iter().cloned().collect()
    }
}
