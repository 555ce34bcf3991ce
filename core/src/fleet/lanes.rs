//! The messages of a mailbox: a queue for each priority, and which of them have a deadline.

use std::collections::VecDeque;
use std::time::Instant;

use crate::message::{Message, Priority};

/// A message under way: its number, and which of the mailbox's channels it came through.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub(crate) sequence: u64,
    /// Position of the channel in the receiving mailbox's list.
    pub(crate) source: u32,
    pub(crate) message: Message,
}

/// See the module. Between parcels of one priority the order is kept.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    queues: [VecDeque<Parcel>; Priority::COUNT],
    length: usize,
    /// How many have a deadline: the clock is asked only if there are any.
    timed: usize,
}

impl Lanes {
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    #[inline]
    pub(crate) fn push_back(&mut self, parcel: Parcel) {
        self.count_in(&parcel);
        self.queues[parcel.message.priority.level()].push_back(parcel);
    }

    /// Appends the first `count` of some parcels of one priority. Where all go into an empty queue,
    /// the two change places, and nothing is copied.
    pub(crate) fn push_all(
        &mut self,
        priority: Priority,
        parcels: &mut VecDeque<Parcel>,
        count: usize,
    ) {
        self.length += count;
        let timed = parcels.iter().take(count).filter(|parcel| parcel.message.has_deadline());
        self.timed += timed.count();
        let queue = &mut self.queues[priority.level()];
        if queue.is_empty() && count == parcels.len() {
            std::mem::swap(queue, parcels);
        } else {
            queue.extend(parcels.drain(..count));
        }
    }

    pub(crate) fn push_front(&mut self, parcel: Parcel) {
        self.count_in(&parcel);
        self.queues[parcel.message.priority.level()].push_front(parcel);
    }

    #[inline]
    fn count_in(&mut self, parcel: &Parcel) {
        self.length += 1;
        self.timed += usize::from(parcel.message.has_deadline());
    }

    /// Moves up to `most` parcels into `into`, the most urgent first, and those that it finds to have
    /// expired into `expired`. A whole queue changes places with an empty `into`.
    pub(crate) fn take(
        &mut self,
        most: usize,
        into: &mut VecDeque<Parcel>,
        expired: &mut Vec<Parcel>,
    ) {
        if self.timed > 0 {
            return self.take_timed(most, into, expired);
        }
        let mut left = most.min(self.length);
        self.length -= left;
        for queue in self.queues.iter_mut().rev() {
            let count = left.min(queue.len());
            if into.is_empty() && count == queue.len() {
                std::mem::swap(into, queue);
            } else {
                into.extend(queue.drain(..count));
            }
            left -= count;
            if left == 0 {
                return;
            }
        }
    }

    fn take_timed(&mut self, most: usize, into: &mut VecDeque<Parcel>, expired: &mut Vec<Parcel>) {
        let now = Instant::now();
        let mut left = most;
        for queue in self.queues.iter_mut().rev() {
            while left > 0
                && let Some(parcel) = queue.pop_front()
            {
                self.length -= 1;
                self.timed -= usize::from(parcel.message.has_deadline());
                if parcel.message.is_expired(now) {
                    expired.push(parcel);
                } else {
                    into.push_back(parcel);
                    left -= 1;
                }
            }
        }
    }

    /// Takes the oldest of the most urgent parcels.
    #[inline]
    pub(crate) fn take_one(&mut self, expired: &mut Vec<Parcel>) -> Option<Parcel> {
        if self.timed > 0 {
            let mut one = VecDeque::with_capacity(1);
            self.take_timed(1, &mut one, expired);
            return one.pop_front();
        }
        let parcel = self.queues.iter_mut().rev().find(|queue| !queue.is_empty())?.pop_front()?;
        self.length -= 1;
        Some(parcel)
    }

    /// Removes what has expired. Costs O(length) where anything has a deadline.
    pub(crate) fn expire(&mut self, expired: &mut Vec<Parcel>) {
        if self.timed == 0 {
            return;
        }
        let (now, before) = (Instant::now(), expired.len());
        for queue in &mut self.queues {
            for parcel in std::mem::take(queue) {
                let is_expired = parcel.message.is_expired(now);
                if is_expired { expired.push(parcel) } else { queue.push_back(parcel) }
            }
        }
        let gone = expired.len() - before;
        self.length -= gone;
        self.timed -= gone;
    }

    /// Empties the queues, the most urgent first.
    pub(crate) fn drain(&mut self) -> Vec<Parcel> {
        let all = std::mem::take(self);
        all.queues.into_iter().rev().flatten().collect()
    }
}

#[cfg(test)]
mod tests;
