//! The best ways from one device to all others over links with peer access.
//!
//! Ways of which every figure is known are found by label setting (Martins 1984): like Dijkstra's
//! algorithm, but a place keeps every label (latency, bandwidth, hops) that no other of its labels
//! beats in all three. Labels leave the queue by rising latency; a longer way never has the lesser
//! latency or more bandwidth, so each label is extended once.
//!
//! Ways with an unknown figure matter only where there is no known one; see [`unknown`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::cost::Cost;
use super::label::Label;
use super::links::{Fan, Hop, Links};
use super::lists::number;

mod unknown;

/// The search from one source; kept to reuse its memory for the next.
pub(super) struct Search<'a> {
    links: &'a Links,
    source: usize,
    labels: Vec<Label>,
    /// The best labels of each place.
    fronts: Vec<Vec<u32>>,
    /// The cost of one label of each place. Most ways fall short of it, and are dropped without a
    /// look at the labels.
    bars: Vec<Cost>,
    /// How many places that links lead to have no bar yet.
    without_bar: usize,
    /// A cost no better than any bar, once all places have one.
    horizon: Cost,
    /// The label with the fewest hops of each place, where unknown figures were asked for.
    unknown: Vec<Option<u32>>,
    queue: BinaryHeap<Reverse<(LatencyBits, u32, u32)>>,
    /// What [`best`](Self::best) found last.
    best: Vec<u32>,
}

/// A latency that is not negative, as bits: these are in the same order.
type LatencyBits = u64;

impl<'a> Search<'a> {
    pub(super) fn new(links: &'a Links) -> Self {
        let places = links.place_count();
        Self {
            links,
            source: 0,
            labels: Vec::new(),
            fronts: vec![Vec::new(); places],
            bars: vec![Cost::NO_WAY; places],
            without_bar: 0,
            horizon: Cost::NO_WAY,
            unknown: Vec::new(),
            queue: BinaryHeap::new(),
            best: Vec::new(),
        }
    }

    /// Finds the ways from the device at `source` over links that are `allowed`, which is asked
    /// with the place where a link starts. What was found before is forgotten.
    pub(super) fn run(&mut self, source: usize, allowed: impl Fn(usize, &Hop) -> bool) {
        self.source = source;
        self.labels.clear();
        self.fronts.iter_mut().for_each(Vec::clear);
        self.bars.fill(Cost::NO_WAY);
        // So no way leads back to where it came from.
        self.bars[source] = Cost::NOTHING;
        self.bars[self.links.arrival(source)] = Cost::NOTHING;
        let is_without =
            |&place: &usize| self.links.is_target(place) && self.bars[place].is_no_way();
        self.without_bar = (0..self.bars.len()).filter(is_without).count();
        self.horizon = Cost::NO_WAY;
        self.labels.push(Label::at_source(source));
        self.extend(0, self.links.onward(source), &allowed);
        self.extend(0, self.links.first(source), &allowed);
        while let Some(Reverse((_, _, id))) = self.queue.pop() {
            let Label { place, is_best, .. } = self.labels[id as usize];
            let fan = self.links.onward(place as usize);
            if is_best && self.is_worth_extending(id, fan) {
                self.extend(id, fan, &allowed);
            }
        }
        self.unknown.clear();
        if self.links.has_unknown() && self.has_gap() {
            self.find_unknown(&allowed);
        }
    }

    /// Whether going on could be better than what is known of every place. Where all devices are
    /// joined to each other, hardly any relay is.
    fn is_worth_extending(&self, id: u32, fan: &Fan) -> bool {
        let cost = &self.label(id).cost;
        let is_near = |best: &Hop| !self.horizon.is_as_good_as(&cost.and(best));
        self.links.may_continue(cost.hops) && fan.best().is_some_and(is_near)
    }

    fn extend(&mut self, id: u32, fan: &'a Fan, allowed: &impl Fn(usize, &Hop) -> bool) {
        let label = self.labels[id as usize];
        for hop in fan.known() {
            let cost = label.cost.and(hop);
            if !self.bars[hop.to as usize].is_as_good_as(&cost)
                && allowed(label.place as usize, hop)
            {
                self.offer(label.extended(id, hop));
            }
        }
    }

    /// Takes a way, unless a known one to the same place is as good.
    fn offer(&mut self, label: Label) {
        let place = label.place as usize;
        let (labels, front) = (&mut self.labels, &mut self.fronts[place]);
        if front.iter().any(|&other| labels[other as usize].cost.is_as_good_as(&label.cost)) {
            return;
        }
        front.retain(|&other| {
            let other = &mut labels[other as usize];
            other.is_best = !label.cost.is_as_good_as(&other.cost);
            other.is_best
        });
        let is_first =
            front.is_empty() && std::mem::replace(&mut self.bars[place], label.cost).is_no_way();
        let id = number(labels.len());
        front.push(id);
        labels.push(label);
        if self.links.goes_on(place) {
            self.queue.push(Reverse((label.cost.latency_us.to_bits(), label.cost.hops, id)));
        }
        if is_first {
            self.without_bar -= 1;
            if self.without_bar == 0 {
                self.find_horizon();
            }
        }
    }

    /// Bars only become better, so what is beyond the horizon stays there.
    fn find_horizon(&mut self) {
        let bars = self.bars.iter().filter(|bar| !bar.is_no_way());
        self.horizon = bars.fold(Cost::NOTHING, |worst, bar| worst.or_worse(bar));
    }

    /// Whether some device was not reached over known figures.
    fn has_gap(&self) -> bool {
        (0..self.links.device_count()).any(|to| {
            to != self.source
                && self.fronts[to].is_empty()
                && self.fronts[self.links.arrival(to)].is_empty()
        })
    }

    pub(super) fn label(&self, id: u32) -> &Label {
        &self.labels[id as usize]
    }

    pub(super) fn label_count(&self) -> usize {
        self.labels.len()
    }

    /// Makes [`best`](Self::best) the best ways to the device at a position, and says how many there
    /// are: all that are best in something, by rising latency; or the one with the fewest hops, if
    /// no figures are known.
    pub(super) fn find_best(&mut self, to: usize) -> usize {
        let (through, ends) = (&self.fronts[to], &self.fronts[self.links.arrival(to)]);
        self.best.clear();
        self.best.extend_from_slice(through);
        if !ends.is_empty() {
            // A way that ends here and one that could go on do not know of each other.
            let cost = |&id: &u32| &self.labels[id as usize].cost;
            let beats = |a: &u32, b: &u32| cost(a).is_as_good_as(cost(b));
            self.best.retain(|a| !ends.iter().any(|b| beats(b, a) && !beats(a, b)));
            let worthy = ends.iter().filter(|b| !through.iter().any(|a| beats(a, b)));
            self.best.extend(worthy);
        }
        if self.best.is_empty() {
            self.best.extend(self.unknown_way(to));
        } else if self.best.len() > 1 {
            let labels = &self.labels;
            self.best.sort_unstable_by(|&a, &b| {
                let (a, b) = (&labels[a as usize].cost, &labels[b as usize].cost);
                a.latency_us.total_cmp(&b.latency_us).then(a.hops.cmp(&b.hops))
            });
        }
        self.best.len()
    }

    /// The ways that were found best.
    pub(super) fn best(&self) -> impl Iterator<Item = &Label> {
        self.best.iter().map(|&id| self.label(id))
    }

    /// The places of a way from the source to its end.
    pub(super) fn places(&self, way: &Label) -> Vec<usize> {
        let mut places = vec![way.place as usize];
        let mut at = way;
        while at.place as usize != self.source {
            at = self.label(at.previous);
            places.push(at.place as usize);
        }
        places.reverse();
        places
    }
}
