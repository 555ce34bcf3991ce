//! Ways with unknown figures: the fewest hops, and of those the widest.
//!
//! Both orders are kept by every further link, so this is Dijkstra's algorithm over pairs of hops
//! and bandwidth; a bandwidth that is not known is less than any.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Search;
use crate::route::cost::Cost;
use crate::route::label::Label;
use crate::route::links::Hop;
use crate::route::lists::number;

/// Less is better: the hops, then the bits of the bandwidth, then what was found first.
type Rank = (u32, Reverse<u64>, u32);

impl Search<'_> {
    /// Searches over all links, whether their figures are known or not.
    pub(super) fn find_unknown(&mut self, allowed: &impl Fn(usize, &Hop) -> bool) {
        self.unknown.resize(self.links.place_count(), None);
        let mut queue: BinaryHeap<Reverse<Rank>> = BinaryHeap::new();
        self.extend_unknown(0, true, allowed, &mut queue);
        while let Some(Reverse((_, _, id))) = queue.pop() {
            let label = &self.labels[id as usize];
            // A better way to the place may have been found since.
            let is_best = self.unknown[label.place as usize] == Some(id);
            if is_best && self.links.may_continue(label.cost.hops) {
                self.extend_unknown(id, false, allowed, &mut queue);
            }
        }
    }

    fn extend_unknown(
        &mut self,
        id: u32,
        starts: bool,
        allowed: &impl Fn(usize, &Hop) -> bool,
        queue: &mut BinaryHeap<Reverse<Rank>>,
    ) {
        let label = self.labels[id as usize];
        let place = label.place as usize;
        let first = if starts { self.links.first(place).all() } else { &[] };
        for hop in self.links.onward(place).all().iter().chain(first) {
            let target = hop.to as usize;
            let is_back = target == self.source || target == self.links.arrival(self.source);
            let is_better = !is_back
                && self.unknown[target].is_none_or(|found| {
                    let found = &self.labels[found as usize].cost;
                    // Most links lead to where a way with no more hops is known.
                    label.cost.hops + u32::from(hop.hops) <= found.hops
                        && is_better(&label.cost.and(hop), found)
                });
            if is_better && allowed(place, hop) {
                let next = number(self.labels.len());
                let extended = label.extended(id, hop);
                self.labels.push(extended);
                self.unknown[target] = Some(next);
                if self.links.goes_on(target) {
                    queue.push(Reverse(rank(next, &extended)));
                }
            }
        }
    }

    /// The way to the device at a position with the fewest hops, if that was asked for.
    pub(super) fn unknown_way(&self, to: usize) -> Option<u32> {
        let found = |place: usize| self.unknown.get(place).copied().flatten();
        let (through, ends) = (found(to), found(self.links.arrival(to)));
        match (through, ends) {
            (Some(a), Some(b)) => {
                let (cost_a, cost_b) = (&self.label(a).cost, &self.label(b).cost);
                Some(if is_better(cost_b, cost_a) { b } else { a })
            }
            (a, b) => a.or(b),
        }
    }
}

fn rank(id: u32, label: &Label) -> Rank {
    (label.cost.hops, Reverse(label.cost.known_gb_per_s().to_bits()), id)
}

fn is_better(a: &Cost, b: &Cost) -> bool {
    let (width_a, width_b) = (a.known_gb_per_s(), b.known_gb_per_s());
    a.hops < b.hops || (a.hops == b.hops && width_a > width_b)
}
