//! Routes that have no link in common, for when links fail.

use std::collections::HashSet;

use super::search::Search;
use super::{Route, RouteTable, devices_of, kind_of, known};
use crate::End;

impl RouteTable {
    /// At most `count` routes of which no two share a link, for use when links fail.
    ///
    /// The first is the best over links for `bytes`; each further one is the best that uses no link
    /// of those before it in either direction, since a link mostly fails both ways. The way through
    /// the host comes last, whatever its figures. Devices and switches may be shared. Empty if a
    /// device is not in the table; from a device to itself there is one route.
    ///
    /// The choice is greedy: another first route might leave room for more. Costs a search for each
    /// route, O(links x log links).
    pub fn disjoint_routes(&self, from: usize, to: usize, bytes: u64, count: usize) -> Vec<Route> {
        let Some(pair) = self.pair(from, to) else { return Vec::new() };
        let mut routes = Vec::new();
        let mut used = HashSet::new();
        let mut search = Search::new(&self.links);
        while pair.from != pair.to && routes.len() < count {
            search.run(pair.from, |place, hop| {
                let ends = (self.links.end(place), self.links.end(hop.to as usize));
                used.is_empty() || !used.contains(&ends)
            });
            let Some(route) = self.best_found(&mut search, pair.to, bytes) else { break };
            used.extend(route.links().into_iter().flat_map(|(a, b)| [(a, b), (b, a)]));
            routes.push(route);
        }
        if routes.len() < count {
            routes.push(self.without_links(pair).to_route());
        }
        routes
    }

    /// The best for `bytes` among the ways that a search has found.
    fn best_found(&self, search: &mut Search<'_>, to: usize, bytes: u64) -> Option<Route> {
        search.find_best(to);
        let best = search.best().min_by(|a, b| a.cost.compare(&b.cost, bytes))?;
        let places = search.places(best).into_iter();
        let stops: Vec<End> = places.map(|place| self.links.end(place)).collect();
        Some(Route {
            path: devices_of(&stops),
            kind: kind_of(best.cost.hops),
            latency_us: known(best.cost.latency_us),
            bandwidth_gb_per_s: known(best.cost.gb_per_s),
            quality: best.quality,
            stops,
        })
    }
}
