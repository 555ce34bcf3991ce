//! What a fleet tells about itself: ledgers, who waits for whom, what was abandoned.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::channel::{ChannelLedger, Party};
use super::error::DeliveryReason;
use super::kernel::{KernelCell, KernelStatus};
use super::mailbox::Mailbox;
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
        for cell in self.all_senders() {
            for output in &cell.run.lock().pending {
                *pending.entry(output.outlet.channel.id).or_default() +=
                    output.parcels.len() as u64;
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
        for cell in self.all_senders() {
            let run = cell.run.lock();
            found.extend(run.pending.iter().map(|output| Waiting {
                kernel: cell.id,
                on: output.outlet.channel.to.clone(),
                channel: output.outlet.channel.id,
                messages: output.parcels.len(),
            }));
        }
        found
    }

    /// Describes why the fleet is not idle.
    pub(crate) fn not_idle(&self) -> NotIdle {
        let waiting = self.waiting();
        let kernels = self.all_senders();
        let is_busy = |cell: &Arc<KernelCell>| {
            let run = cell.run.lock();
            run.is_busy() && run.pending.is_empty()
        };
        let busy = kernels.iter().filter(|cell| is_busy(cell)).map(|cell| cell.id).collect();
        NotIdle { busy, cycle: self.deadlock(), waiting }
    }

    /// A circle of kernels that wait for each other's full mailboxes. It is one only if a second
    /// look finds the same circle and none of its kernels has made a step in between.
    fn deadlock(&self) -> Vec<KernelId> {
        let (first, steps) = (cycle(&self.blocked()), self.steps_of_all());
        if first.is_empty() {
            return first;
        }
        let (second, steps_now) = (cycle(&self.blocked()), self.steps_of_all());
        let stands = first.iter().all(|kernel| steps.get(kernel) == steps_now.get(kernel));
        if first == second && stands { first } else { Vec::new() }
    }

    /// Who waits for a kernel whose mailbox is full.
    fn blocked(&self) -> HashMap<KernelId, Vec<KernelId>> {
        let mut edges: HashMap<KernelId, Vec<KernelId>> = HashMap::new();
        for cell in self.all_senders() {
            for output in &cell.run.lock().pending {
                if let Party::Kernel { kernel, .. } = &output.outlet.channel.to
                    && output.outlet.mailbox.is_full()
                {
                    edges.entry(cell.id).or_default().push(*kernel);
                }
            }
        }
        edges.values_mut().for_each(|receivers| {
            receivers.sort_unstable();
            receivers.dedup();
        });
        edges
    }

    fn steps_of_all(&self) -> HashMap<KernelId, u64> {
        let kernels = self.all_kernels();
        kernels.iter().map(|cell| (cell.id, cell.steps.load(Ordering::Relaxed))).collect()
    }

    /// Kernels with something left to do.
    pub(crate) fn unfinished(&self) -> Vec<KernelStatus> {
        let has_work = |cell: &Arc<KernelCell>| {
            let run = cell.run.lock();
            run.is_busy() || run.has_work(&cell.mailbox)
        };
        let unfinished = self.all_senders().into_iter().filter(has_work);
        unfinished.map(|cell| cell.status(self.started.elapsed())).collect()
    }

    /// Moves what lies in the mailbox of a receiver that is gone to the dead letters.
    pub(crate) fn discard(&self, mailbox: &Mailbox, reason: &DeliveryReason) -> usize {
        let dead = mailbox.discard(reason);
        let count = dead.len();
        dead.into_iter().for_each(|dead| self.dead_letters.add(dead));
        count
    }
}

/// A circle in a graph, if there is one: a depth-first search without recursion, since chains of
/// kernels can be long. A kernel met again on the present path closes a circle. O(edges).
fn cycle(edges: &HashMap<KernelId, Vec<KernelId>>) -> Vec<KernelId> {
    let mut done: HashSet<KernelId> = HashSet::new();
    let mut starts: Vec<_> = edges.keys().copied().collect();
    starts.sort_unstable();
    for start in starts {
        // Each entry of the path: a kernel, and how many of its receivers have been followed.
        let mut path: Vec<(KernelId, usize)> = vec![(start, 0)];
        let mut on_path: HashMap<KernelId, usize> = HashMap::from([(start, 0)]);
        while let Some((kernel, followed)) = path.last_mut() {
            let next = edges.get(kernel).and_then(|receivers| receivers.get(*followed));
            *followed += 1;
            match next {
                None => {
                    done.insert(*kernel);
                    on_path.remove(kernel);
                    path.pop();
                }
                Some(next) if on_path.contains_key(next) => {
                    return path[on_path[next]..].iter().map(|(kernel, _)| *kernel).collect();
                }
                Some(next) if done.contains(next) => {}
                Some(next) => {
                    on_path.insert(*next, path.len());
                    path.push((*next, 0));
                }
            }
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests;
