//! The best ways from one device to all others over links with peer access.
//!
//! Ways of which every figure is known are found by label setting (Martins 1984): like Dijkstra's
//! algorithm, but a device keeps every label (latency, bandwidth, hops) that no other of its
//! labels beats in all three. Labels leave the queue by rising latency; a longer way never has
//! the lesser latency or more bandwidth, so each label is extended once.
//!
//! Ways with an unknown figure matter only where there is no known one: there the way with the
//! fewest hops is taken, and of those the widest.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Route, RouteKind};
use crate::{GpuConnection, Quality};

/// The links of a topology that routes may use, by position.
pub(super) struct Hops {
    devices: Vec<usize>,
    /// Whether a route may go on from a position.
    may_relay: Vec<bool>,
    /// Links over which a route may go on, with both figures.
    known: Vec<Vec<KnownHop>>,
    /// All links over which a route may go on.
    all: Vec<Vec<Hop>>,
    /// Links that serve their two ends only.
    ends_only: Vec<Vec<Hop>>,
    has_unknown: bool,
}

#[derive(Clone, Copy)]
struct KnownHop {
    to: usize,
    latency_us: f64,
    gb_per_s: f64,
    quality: Quality,
}

#[derive(Clone, Copy)]
struct Hop {
    to: usize,
    latency_us: Option<f64>,
    gb_per_s: Option<f64>,
    quality: Quality,
}

impl Hop {
    fn known(self) -> Option<KnownHop> {
        let Self { to, quality, .. } = self;
        Some(KnownHop { to, latency_us: self.latency_us?, gb_per_s: self.gb_per_s?, quality })
    }
}

impl Hops {
    /// The hops among `devices`, which are in ascending order.
    pub(super) fn new<'a>(
        devices: Vec<usize>,
        links: impl IntoIterator<Item = &'a GpuConnection>,
        may_relay: &dyn Fn(usize) -> bool,
    ) -> Self {
        let may_relay = devices.iter().map(|&device| may_relay(device)).collect();
        let mut all = vec![Vec::new(); devices.len()];
        let mut ends_only = all.clone();
        for link in links.into_iter().filter(|link| link.peer_access) {
            let position = |device| devices.binary_search(&device).expect("links join devices");
            let hop = Hop {
                to: position(link.to),
                latency_us: link.latency.value(),
                gb_per_s: link.bandwidth.value(),
                quality: link.latency.quality().min(link.bandwidth.quality()),
            };
            let list = if link.kind.is_through_host_memory() { &mut ends_only } else { &mut all };
            list[position(link.from)].push(hop);
        }
        let known: Vec<Vec<_>> =
            all.iter().map(|hops| hops.iter().filter_map(|hop| hop.known()).collect()).collect();
        let has_unknown = all.iter().map(Vec::len).ne(known.iter().map(Vec::len));
        Self { devices, may_relay, known, all, ends_only, has_unknown }
    }
}

/// What a way costs.
#[derive(Clone, Copy)]
struct Cost {
    latency_us: f64,
    gb_per_s: f64,
    hops: u32,
}

impl Cost {
    /// No links at all.
    const NOTHING: Self = Self { latency_us: 0.0, gb_per_s: f64::INFINITY, hops: 0 };

    /// No way; any is better.
    const NO_WAY: Self = Self { latency_us: f64::INFINITY, gb_per_s: 0.0, hops: u32::MAX };

    fn and(self, hop: &KnownHop) -> Self {
        Self {
            latency_us: self.latency_us + hop.latency_us,
            gb_per_s: self.gb_per_s.min(hop.gb_per_s),
            hops: self.hops + 1,
        }
    }

    fn is_as_good_as(&self, other: &Self) -> bool {
        self.latency_us <= other.latency_us
            && self.gb_per_s >= other.gb_per_s
            && self.hops <= other.hops
    }
}

/// A way to one position.
#[derive(Clone, Copy)]
struct Label {
    position: usize,
    /// The label that this one extends; the source's label extends itself.
    previous: usize,
    cost: Cost,
    quality: Quality,
    /// Whether no other label of the position is as good in everything.
    is_best: bool,
}

/// The search from one source; kept to reuse its memory for the next.
pub(super) struct Search<'a> {
    hops: &'a Hops,
    source: usize,
    labels: Vec<Label>,
    /// The best labels of each position.
    fronts: Vec<Vec<usize>>,
    /// The cost of one label of each position. Most ways fall short of it, and are dropped
    /// without a look at the labels.
    bars: Vec<Cost>,
    /// The fewest hops to each position where no label is, if that was asked for.
    unknown: Vec<Option<UnknownWay>>,
    queue: BinaryHeap<Reverse<(OrderedLatency, u32, usize)>>,
}

/// The widest of the ways with the fewest hops.
#[derive(Clone, Copy)]
struct UnknownWay {
    hops: usize,
    /// Zero if the bandwidth of a link is unknown.
    gb_per_s: f64,
    previous: usize,
}

#[derive(PartialEq)]
struct OrderedLatency(f64);

impl Eq for OrderedLatency {}

impl PartialOrd for OrderedLatency {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for OrderedLatency {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl<'a> Search<'a> {
    pub(super) fn new(hops: &'a Hops) -> Self {
        let devices = hops.devices.len();
        Self {
            hops,
            source: 0,
            labels: Vec::new(),
            fronts: vec![Vec::new(); devices],
            bars: vec![Cost::NO_WAY; devices],
            unknown: vec![None; devices],
            queue: BinaryHeap::new(),
        }
    }

    /// Finds the ways from `source`. What was found before is forgotten.
    pub(super) fn run(&mut self, source: usize) {
        self.source = source;
        self.labels.clear();
        self.fronts.iter_mut().for_each(Vec::clear);
        self.unknown.fill(None);
        self.bars.fill(Cost::NO_WAY);
        // So no way leads back to where it came from.
        self.bars[source] = Cost::NOTHING;
        self.labels.push(Label {
            position: source,
            previous: 0,
            cost: Cost::NOTHING,
            quality: Quality::Measured,
            is_best: true,
        });
        self.extend(0);
        while let Some(Reverse((_, _, label))) = self.queue.pop() {
            let Label { position, is_best, .. } = self.labels[label];
            if is_best && self.hops.may_relay[position] {
                self.extend(label);
            }
        }
        // Nothing goes on over these, so they must not keep a label from being extended.
        for hop in self.hops.ends_only[source].iter().filter_map(|hop| hop.known()) {
            self.offer(0, &hop);
        }
        self.queue.clear();
        let has_gap =
            || (0..self.fronts.len()).any(|to| to != source && self.fronts[to].is_empty());
        if self.hops.has_unknown && has_gap() {
            self.find_unknown();
        }
    }

    fn extend(&mut self, label: usize) {
        let (hops, Label { position, cost, .. }) = (self.hops, self.labels[label]);
        for hop in &hops.known[position] {
            if !self.bars[hop.to].is_as_good_as(&cost.and(hop)) {
                self.offer(label, hop);
            }
        }
    }

    /// Takes the way that goes on from a label over a hop, unless a known one is as good.
    fn offer(&mut self, previous: usize, hop: &KnownHop) {
        let from = &self.labels[previous];
        let cost = from.cost.and(hop);
        let quality = from.quality.min(hop.quality);
        let (labels, front) = (&mut self.labels, &mut self.fronts[hop.to]);
        if front.iter().any(|&other| labels[other].cost.is_as_good_as(&cost)) {
            return;
        }
        front.retain(|&other| {
            labels[other].is_best = !cost.is_as_good_as(&labels[other].cost);
            labels[other].is_best
        });
        if front.is_empty() {
            self.bars[hop.to] = cost;
        }
        let id = labels.len();
        front.push(id);
        labels.push(Label { position: hop.to, previous, cost, quality, is_best: true });
        self.queue.push(Reverse((OrderedLatency(cost.latency_us), cost.hops, id)));
    }

    /// Searches in layers of equal hops over all links.
    fn find_unknown(&mut self) {
        let mut layer = vec![self.source];
        for hops in 1.. {
            let mut next = Vec::new();
            for &from in &layer {
                if from != self.source && !self.hops.may_relay[from] {
                    continue;
                }
                let width = self.unknown[from].map_or(f64::INFINITY, |way| way.gb_per_s);
                for hop in &self.hops.all[from] {
                    let gb_per_s = width.min(hop.gb_per_s.unwrap_or(0.0));
                    let way = UnknownWay { hops, gb_per_s, previous: from };
                    match &mut self.unknown[hop.to] {
                        _ if hop.to == self.source => {}
                        found @ None => {
                            *found = Some(way);
                            next.push(hop.to);
                        }
                        Some(found) if found.hops == hops && found.gb_per_s < gb_per_s => {
                            *found = way;
                        }
                        Some(_) => {}
                    }
                }
            }
            if next.is_empty() {
                return;
            }
            layer = next;
        }
    }

    /// The routes to a position over links with peer access: all that are best in something, by
    /// rising latency; or the one with the fewest hops, if no figures are known.
    pub(super) fn routes_to(&self, to: usize) -> Vec<Route> {
        let mut front = self.fronts[to].clone();
        if front.is_empty() {
            return self.unknown_route_to(to).into_iter().collect();
        }
        front.sort_by(|&a, &b| {
            let (a, b) = (self.labels[a].cost, self.labels[b].cost);
            a.latency_us.total_cmp(&b.latency_us).then(a.hops.cmp(&b.hops))
        });
        front.into_iter().map(|label| self.known_route(label)).collect()
    }

    fn known_route(&self, label: usize) -> Route {
        let Label { cost, quality, .. } = self.labels[label];
        let mut path = Vec::with_capacity(cost.hops as usize + 1);
        let mut at = label;
        while at != 0 {
            path.push(self.hops.devices[self.labels[at].position]);
            at = self.labels[at].previous;
        }
        path.push(self.hops.devices[self.source]);
        path.reverse();
        Route {
            kind: kind_of(&path),
            path,
            latency_us: Some(cost.latency_us),
            bandwidth_gb_per_s: Some(cost.gb_per_s),
            quality,
        }
    }

    fn unknown_route_to(&self, to: usize) -> Option<Route> {
        let direct = self.hops.ends_only[self.source].iter().find(|hop| hop.to == to);
        let crossed = match direct {
            Some(&hop) => vec![hop],
            None => self.unknown_hops_to(to)?,
        };
        let ends = crossed.iter().map(|hop| self.hops.devices[hop.to]);
        let path: Vec<_> = std::iter::once(self.hops.devices[self.source]).chain(ends).collect();
        Some(Route {
            kind: kind_of(&path),
            path,
            latency_us: crossed.iter().map(|hop| hop.latency_us).sum(),
            bandwidth_gb_per_s: crossed
                .iter()
                .map(|hop| hop.gb_per_s)
                .try_fold(f64::INFINITY, |narrowest, width| width.map(|w| narrowest.min(w))),
            quality: Quality::Unknown,
        })
    }

    /// The links on the way to a position with the fewest hops.
    fn unknown_hops_to(&self, to: usize) -> Option<Vec<Hop>> {
        let mut crossed = Vec::new();
        let mut at = to;
        while at != self.source {
            let previous = self.unknown[at]?.previous;
            crossed.extend(self.hops.all[previous].iter().find(|hop| hop.to == at));
            at = previous;
        }
        crossed.reverse();
        Some(crossed)
    }
}

fn kind_of(path: &[usize]) -> RouteKind {
    if path.len() > 2 { RouteKind::MultiHop } else { RouteKind::Direct }
}
