//! A route as it stands in a table.

use std::cmp::Ordering;
use std::fmt;

use super::cost::Cost;
use super::store::WayCost;
use super::table::Pair;
use super::{Route, RouteKind, RouteTable, cost_of, devices_of, kind_of, known, links_of};
use crate::{End, Quality};

/// A route of a [`RouteTable`]: a view that is copied freely.
///
/// The figures are at hand. The way itself is put together when it is asked for, and allocates.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct RouteRef<'a> {
    /// How the bytes travel.
    pub kind: RouteKind,
    /// Sum of the links' latencies in microseconds; `None` if one is unknown.
    pub latency_us: Option<f64>,
    /// Bandwidth of the narrowest link in GB/s (10^9 bytes per second); `None` if one is unknown,
    /// or if there is no link at all.
    pub bandwidth_gb_per_s: Option<f64>,
    /// The worst quality among the links' figures; `Measured` if no link is crossed.
    pub quality: Quality,
    hops: u32,
    pair: Pair,
    table: &'a RouteTable,
    /// Which of the pair's ways over links it is, if it is one.
    way: usize,
}

impl<'a> RouteRef<'a> {
    /// One of the pair's ways over links.
    pub(super) fn over_links(
        table: &'a RouteTable,
        pair: Pair,
        number: usize,
        way: &WayCost,
    ) -> Self {
        let kind = kind_of(way.cost.hops);
        Self { way: number, ..Self::new(table, pair, kind, &way.cost, way.quality) }
    }

    /// The way through the host, or the one to the device itself.
    pub(super) fn without_links(
        table: &'a RouteTable,
        pair: Pair,
        cost: &Cost,
        quality: Quality,
    ) -> Self {
        let is_same = pair.from == pair.to;
        let kind = if is_same { RouteKind::SameDevice } else { RouteKind::HostMediated };
        Self::new(table, pair, kind, cost, quality)
    }

    fn new(
        table: &'a RouteTable,
        pair: Pair,
        kind: RouteKind,
        cost: &Cost,
        quality: Quality,
    ) -> Self {
        Self {
            kind,
            latency_us: known(cost.latency_us),
            bandwidth_gb_per_s: known(cost.gb_per_s),
            quality,
            hops: cost.hops,
            pair,
            table,
            way: 0,
        }
    }

    /// How many links the bytes cross, where links in a row that only switches join count as one.
    /// Through the host it is two.
    pub fn hops(&self) -> usize {
        self.hops as usize
    }

    /// The expected time of `bytes` in microseconds; see [`Route::time_us`].
    pub fn time_us(&self, bytes: u64) -> Option<f64> {
        known(self.cost().time_us(bytes))
    }

    /// `Less` if this route is the better one for `bytes`; see [`Route::compare`].
    pub fn compare(&self, other: &Self, bytes: u64) -> Ordering {
        self.cost().compare(&other.cost(), bytes)
    }

    pub(super) fn cost(&self) -> Cost {
        cost_of(self.kind, self.hops, self.latency_us, self.bandwidth_gb_per_s)
    }

    /// The devices that the bytes pass, both ends included; see [`Route::path`].
    pub fn path(&self) -> Vec<usize> {
        self.to_route().path
    }

    /// The links that the bytes cross; see [`Route::links`].
    pub fn links(&self) -> Vec<(End, End)> {
        links_of(self.kind, &self.stops())
    }

    /// The route with its way, which outlives the table.
    pub fn to_route(&self) -> Route {
        let stops = self.stops();
        Route {
            path: devices_of(&stops),
            kind: self.kind,
            latency_us: self.latency_us,
            bandwidth_gb_per_s: self.bandwidth_gb_per_s,
            quality: self.quality,
            stops,
        }
    }

    fn stops(&self) -> Vec<End> {
        let [from, to] = self.pair.devices.map(End::Device);
        match self.kind {
            RouteKind::SameDevice => vec![from],
            RouteKind::HostMediated => vec![from, to],
            RouteKind::Direct | RouteKind::MultiHop => {
                let mut stops = self.table.ends_between(self.pair, self.way);
                stops.insert(0, from);
                stops.push(to);
                stops
            }
        }
    }
}

/// As [`Route`] is shown: the table stays out of sight.
impl fmt::Debug for RouteRef<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_route(), formatter)
    }
}

/// As [`Route`] is shown.
impl fmt::Display for RouteRef<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.to_route(), formatter)
    }
}
