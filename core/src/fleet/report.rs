//! What a fleet tells about itself: ledgers, who waits for whom, what was abandoned.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::channel::{ChannelLedger, Party};
use super::kernel::{KernelCell, KernelPhase, KernelStatus};
use super::runtime::Runtime;
use crate::id::{ChannelId, KernelId};

/// Sums over all channels of a fleet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageTotals {
    /// Messages that senders numbered.
    pub sent: u64,
    /// Messages that receivers consumed.
    pub delivered: u64,
    /// Messages under way or in mailboxes.
    pub waiting: u64,
    /// Messages that came twice.
    pub duplicated: u64,
    /// Messages that came after a later one.
    pub out_of_order: u64,
    /// Messages in the dead-letter list.
    pub dead_lettered: u64,
    /// Messages that were sent and are nowhere.
    pub lost: u64,
}

impl MessageTotals {
    /// Adds up ledgers.
    #[must_use]
    pub fn of(ledgers: &[ChannelLedger]) -> Self {
        ledgers.iter().fold(Self::default(), |sum, ledger| Self {
            sent: sum.sent + ledger.sent,
            delivered: sum.delivered + ledger.delivered,
            waiting: sum.waiting + ledger.waiting,
            duplicated: sum.duplicated + ledger.duplicated,
            out_of_order: sum.out_of_order + ledger.out_of_order,
            dead_lettered: sum.dead_lettered + ledger.dead_lettered,
            lost: sum.lost + ledger.lost,
        })
    }

    /// Whether every message that was sent was delivered once and in order.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.sent == self.delivered && self.duplicated == 0 && self.out_of_order == 0
    }
}

/// A kernel whose output finds no room, or that cannot take its messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Who waits.
    pub kernel: KernelId,
    /// For whom.
    pub on: Party,
    /// The channel whose receiver has no room.
    pub channel: ChannelId,
    /// Messages that wait on that channel.
    pub messages: usize,
}

impl fmt::Display for Waiting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, on, messages, channel } = self;
        write!(formatter, "{kernel} waits for room at {on} ({messages} messages on {channel})")
    }
}

/// The fleet did not become idle in time.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the fleet is not idle: {}", describe(.waiting, .cycle, .busy))]
pub struct NotIdle {
    /// Who waits for whom.
    pub waiting: Vec<Waiting>,
    /// Kernels that wait for each other in a circle: a deadlock.
    pub cycle: Vec<KernelId>,
    /// Kernels that run, are queued or held.
    pub busy: Vec<KernelId>,
}

fn describe(waiting: &[Waiting], cycle: &[KernelId], busy: &[KernelId]) -> String {
    let mut parts: Vec<String> = waiting.iter().map(ToString::to_string).collect();
    if !cycle.is_empty() {
        let names: Vec<_> = cycle.iter().map(ToString::to_string).collect();
        parts.push(format!("deadlock: {} wait for each other", names.join(", ")));
    }
    if !busy.is_empty() {
        let names: Vec<_> = busy.iter().map(ToString::to_string).collect();
        parts.push(format!("under way: {}", names.join(", ")));
    }
    if parts.is_empty() {
        "it became idle just after the deadline".to_owned()
    } else {
        parts.join("; ")
    }
}

/// What a shutdown left undone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShutdownReport {
    /// Kernels with messages, pending output or a running step that were abandoned.
    pub abandoned: Vec<KernelStatus>,
    /// Threads that did not end and were left behind.
    pub threads_left_behind: usize,
}

impl Runtime {
    /// The ledgers of all channels, in the order of their ids.
    pub(crate) fn ledgers(&self) -> Vec<ChannelLedger> {
        let mut pending: HashMap<ChannelId, u64> = HashMap::new();
        for cell in self.all_kernels() {
            for parcel in &cell.run.lock().pending {
                *pending.entry(parcel.channel.id).or_default() += 1;
            }
        }
        let channels = self.channels.read().clone();
        channels
            .iter()
            .map(|channel| channel.ledger(pending.get(&channel.id).copied().unwrap_or(0)))
            .collect()
    }

    /// Who waits for whom, now.
    pub(crate) fn waiting(&self) -> Vec<Waiting> {
        let mut found = Vec::new();
        for cell in self.all_kernels() {
            let mut by_channel: Vec<Waiting> = Vec::new();
            for parcel in &cell.run.lock().pending {
                let channel = &parcel.channel;
                match by_channel.iter_mut().find(|waiting| waiting.channel == channel.id) {
                    Some(waiting) => waiting.messages += 1,
                    None => by_channel.push(Waiting {
                        kernel: cell.id,
                        on: channel.to.party.clone(),
                        channel: channel.id,
                        messages: 1,
                    }),
                }
            }
            found.extend(by_channel);
        }
        found
    }

    /// Describes why the fleet is not idle.
    pub(crate) fn not_idle(&self) -> NotIdle {
        let waiting = self.waiting();
        let is_busy = |cell: &Arc<KernelCell>| {
            let run = cell.run.lock();
            run.is_busy() && run.pending.is_empty()
        };
        let kernels = self.all_kernels();
        let busy = kernels.iter().filter(|cell| is_busy(cell)).map(|cell| cell.id).collect();
        NotIdle { busy, cycle: cycle(&waiting), waiting }
    }

    /// Kernels with something left to do.
    pub(crate) fn unfinished(&self) -> Vec<KernelStatus> {
        let statuses = self.all_kernels().into_iter().map(|cell| cell.status());
        statuses
            .filter(|status| {
                status.mailbox_depth > 0
                    || status.pending_output > 0
                    || status.phase == KernelPhase::Running
            })
            .collect()
    }

    /// Moves what lies in the mailbox of a receiver that is gone to the dead letters.
    pub(crate) fn discard(
        &self,
        mailbox: &super::mailbox::Mailbox,
        reason: &super::error::DeliveryReason,
    ) -> usize {
        let parcels = mailbox.drain();
        let count = parcels.len();
        for parcel in parcels {
            parcel.channel.note_discarded();
            self.dead_letters.add(parcel, reason.clone());
        }
        count
    }
}

/// A circle of kernels that wait for each other, if there is one.
fn cycle(waiting: &[Waiting]) -> Vec<KernelId> {
    let mut edges: HashMap<KernelId, Vec<KernelId>> = HashMap::new();
    for wait in waiting {
        if let Party::Kernel { kernel, .. } = &wait.on {
            edges.entry(wait.kernel).or_default().push(*kernel);
        }
    }
    // Depth-first search; a kernel met again on the present path closes a circle.
    let mut done: Vec<KernelId> = Vec::new();
    let mut starts: Vec<_> = edges.keys().copied().collect();
    starts.sort_unstable();
    for start in starts {
        let mut path = Vec::new();
        if let Some(found) = search(start, &edges, &mut path, &mut done) {
            return found;
        }
    }
    Vec::new()
}

fn search(
    kernel: KernelId,
    edges: &HashMap<KernelId, Vec<KernelId>>,
    path: &mut Vec<KernelId>,
    done: &mut Vec<KernelId>,
) -> Option<Vec<KernelId>> {
    if let Some(at) = path.iter().position(|earlier| *earlier == kernel) {
        return Some(path[at..].to_vec());
    }
    if done.contains(&kernel) {
        return None;
    }
    path.push(kernel);
    for next in edges.get(&kernel).into_iter().flatten() {
        if let Some(found) = search(*next, edges, path, done) {
            return Some(found);
        }
    }
    path.pop();
    done.push(kernel);
    None
}
