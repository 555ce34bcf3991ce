//! The best ways of all pairs, stored once for all pairs that share them.
//!
//! A pair has two numbers: where the costs of its ways are, and where their ends are. Pairs whose
//! ways cost the same share the costs, which a query therefore finds in the cache. Pairs of one
//! source whose ways come from the same place share the ends, as those to the devices behind one
//! switch do. An end is the last waypoint before the receiving device, and each waypoint knows the
//! one before it; so ways share their beginnings, too.

use super::cost::Cost;
use super::host::HostLinks;
use super::links::Links;
use super::lists::{Item, Lists, NONE, number};
use super::search::Search;
use crate::Quality;

#[derive(Clone, Debug)]
pub(super) struct Store {
    devices: usize,
    /// For each ordered pair of positions, row by row: where its costs are.
    cost_starts: Vec<u32>,
    /// For each ordered pair of positions, row by row: where its ends are.
    end_starts: Vec<u32>,
    costs: Vec<WayCost>,
    /// Waypoints; `NONE` where a way comes straight from its source.
    ends: Vec<u32>,
    waypoints: Vec<Waypoint>,
}

/// The cost of one of a pair's ways.
#[derive(Clone, Copy, Debug)]
pub(super) struct WayCost {
    pub(super) cost: Cost,
    pub(super) quality: Quality,
    /// Whether it is the last one of its pair.
    is_last: bool,
    /// Whether one of the pair's ways makes a look at that through the host needless.
    pub(super) outdoes_host: bool,
}

impl Item for WayCost {
    fn bits(&self) -> [u64; 3] {
        let Cost { latency_us, gb_per_s, hops } = self.cost;
        let flags = u64::from(self.is_last) << 1 | u64::from(self.outdoes_host);
        let rest = u64::from(hops) << 8 | (self.quality as u64) << 2 | flags;
        [latency_us.to_bits(), gb_per_s.to_bits(), rest]
    }
}

/// A device or switch that a way passes.
#[derive(Clone, Copy, Debug)]
struct Waypoint {
    place: u32,
    /// The waypoint before this one; `NONE` if that is the source.
    previous: u32,
}

impl Store {
    /// Searches from every device.
    pub(super) fn fill(links: &Links, host_links: &HostLinks) -> Self {
        let devices = links.device_count();
        let (mut costs, mut ends) = (Lists::new(), Lists::new());
        let (mut new_costs, mut new_ends) = (Vec::new(), Vec::new());
        let (mut cost_starts, mut end_starts) = (Vec::new(), Vec::new());
        cost_starts.reserve_exact(devices * devices);
        end_starts.reserve_exact(devices * devices);
        let mut search = Search::new(links);
        let mut waypoints = Waypoints::default();
        for source in 0..devices {
            search.run(source, |_, _| true);
            waypoints.start_row(search.label_count());
            for to in 0..devices {
                new_costs.clear();
                new_ends.clear();
                let found = if to == source { 0 } else { search.find_best(to) };
                let ways = || search.best().take(found);
                let (host, _) = host_links.way(source, to);
                let outdoes_host = ways().any(|way| way.cost.outdoes(&host));
                for (number, label) in (1..).zip(ways()) {
                    let (cost, quality) = (label.cost, label.quality);
                    new_costs.push(WayCost {
                        cost,
                        quality,
                        is_last: number == found,
                        outdoes_host,
                    });
                    new_ends.push(waypoints.of(label.previous, &search));
                }
                cost_starts.push(costs.add(&new_costs));
                end_starts.push(ends.add(&new_ends));
            }
        }
        let (costs, ends) = (costs.into_items(), ends.into_items());
        Self { devices, cost_starts, end_starts, costs, ends, waypoints: waypoints.into_all() }
    }

    /// The costs of the ways from one position to another over links, by rising latency; empty if
    /// there are none.
    pub(super) fn costs(&self, from: usize, to: usize) -> &[WayCost] {
        let start = self.cost_starts[from * self.devices + to];
        let costs = self.costs.get(start as usize..).unwrap_or_default();
        let last = costs.iter().position(|way| way.is_last);
        &costs[..last.map_or(0, |last| last + 1)]
    }

    /// The places that one of the ways passes between its ends.
    pub(super) fn places_between(&self, from: usize, to: usize, way: usize) -> Vec<usize> {
        let start = self.end_starts[from * self.devices + to];
        let mut at = self.ends.get(start as usize + way).copied().unwrap_or(NONE);
        let mut places = Vec::new();
        while let Some(waypoint) = self.waypoints.get(at as usize) {
            places.push(waypoint.place as usize);
            at = waypoint.previous;
        }
        places.reverse();
        places
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let numbers = [&self.cost_starts, &self.end_starts, &self.ends];
        numbers.into_iter().map(Vec::capacity).sum::<usize>() * size_of::<u32>()
            + self.costs.capacity() * size_of::<WayCost>()
            + self.waypoints.capacity() * size_of::<Waypoint>()
    }
}

/// All waypoints so far.
#[derive(Default)]
struct Waypoints {
    all: Vec<Waypoint>,
    /// By label of the present source: its waypoint, if it has one yet.
    of_labels: Vec<u32>,
    /// Labels whose waypoints are to be made.
    missing: Vec<u32>,
}

impl Waypoints {
    /// Forgets what belongs to labels of the last source.
    fn start_row(&mut self, labels: usize) {
        self.of_labels.clear();
        self.of_labels.resize(labels, NONE);
    }

    /// The waypoint of a label; made, with those before it, if there is none yet. The source has
    /// none.
    fn of(&mut self, label: u32, search: &Search<'_>) -> u32 {
        let mut at = label;
        while at != 0 && self.of_labels[at as usize] == NONE {
            self.missing.push(at);
            at = search.label(at).previous;
        }
        let mut previous = self.of_labels[at as usize];
        while let Some(label) = self.missing.pop() {
            let place = search.label(label).place;
            self.all.push(Waypoint { place, previous });
            previous = number(self.all.len() - 1);
            self.of_labels[label as usize] = previous;
        }
        previous
    }

    fn into_all(mut self) -> Vec<Waypoint> {
        self.all.shrink_to_fit();
        self.all
    }
}
