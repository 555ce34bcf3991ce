//! All routes of a topology, computed once.

use super::RouteRef;
use super::host::HostLinks;
use super::links::Links;
use super::positions::Positions;
use super::store::{Store, WayCost};
use crate::{End, GpuTopology};

/// The best routes between all devices, fixed at the time of building.
///
/// A route uses links with peer access only, passes switches at will, and goes on from a device
/// only if that may relay, and only over links whose kind
/// [carries relays](crate::InterconnectType::carries_relays). Beside these every pair has the way
/// through host memory: one bounce, never two, and never through a third device.
///
/// The table holds no reference to the topology. Build a new one when that changes, which its
/// [`epoch`](Self::epoch) tells, and share it in an `Arc`.
///
/// ```
/// use hopwise_topology::{GpuTopology, RouteKind, RouteTable};
///
/// let routes = RouteTable::build(&GpuTopology::new([0, 4]), &|_| true);
/// let kind = |from, to| routes.route(from, to, 4096).map(|route| route.kind);
/// assert_eq!(kind(0, 4), Some(RouteKind::HostMediated));
/// assert_eq!(kind(4, 4), Some(RouteKind::SameDevice));
/// assert_eq!(kind(0, 1), None); // there is no device 1
/// ```
#[derive(Clone, Debug)]
pub struct RouteTable {
    epoch: u64,
    positions: Positions,
    pub(super) links: Links,
    host_links: HostLinks,
    store: Store,
}

impl RouteTable {
    /// Computes the routes between all devices of a topology.
    ///
    /// `may_relay` is asked once for each device whether routes between others may pass it.
    ///
    /// Costs O(devices x links x log links) steps where each pair has one best route, and a few
    /// bytes for each pair. Where many routes are best, each in its own way, it costs as many times
    /// more; there can be as many as there are paths, but machines have one to three.
    pub fn build(topology: &GpuTopology, may_relay: &dyn Fn(usize) -> bool) -> Self {
        Self::build_within(topology, may_relay, usize::MAX)
    }

    /// The same, but no route passes more than `most_relays` devices.
    ///
    /// Each relay spends the links of a device that takes no part in the transfer. On a machine
    /// whose links differ in width, large messages otherwise make long ways over wide links.
    ///
    /// ```
    /// use hopwise_topology::{
    ///     Figure, GpuConnection, GpuTopology, InterconnectType, RouteKind, RouteTable,
    /// };
    ///
    /// let mut topology = GpuTopology::new(0..4);
    /// for (from, to) in [(0, 1), (1, 2), (2, 3)] {
    ///     let kind = InterconnectType::NvLink { generation: Some(2), links: 2 };
    ///     let link = GpuConnection::new(from, to, kind)
    ///         .with_bandwidth(kind.estimated_bandwidth())
    ///         .with_latency(kind.estimated_latency());
    ///     topology.set_connection(link)?;
    /// }
    /// let routes = RouteTable::build_within(&topology, &|_| true, 1);
    /// let kind = |from, to| routes.route(from, to, 1 << 20).map(|route| route.kind);
    /// assert_eq!(kind(0, 2), Some(RouteKind::MultiHop));
    /// assert_eq!(kind(0, 3), Some(RouteKind::HostMediated));
    /// # Ok::<(), hopwise_topology::TopologyError>(())
    /// ```
    pub fn build_within(
        topology: &GpuTopology,
        may_relay: &dyn Fn(usize) -> bool,
        most_relays: usize,
    ) -> Self {
        let devices: Vec<usize> = topology.devices().collect();
        let positions = Positions::new(&devices);
        let links = Links::new(topology, &positions, may_relay, most_relays);
        let host_links = HostLinks::new(topology);
        let store = Store::fill(&links, &host_links);
        Self { epoch: topology.epoch(), positions, links, host_links, store }
    }

    /// The [epoch](GpuTopology::epoch) of the topology that the table was built from. While that
    /// has the same one, the routes are up to date.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The best route for `bytes`, by the rule of [`Route::compare`](super::Route::compare); `None`
    /// only if a device is not in the table.
    ///
    /// Costs two look-ups and a comparison for each of the pair's [`routes`](Self::routes), of
    /// which there are rarely more than three. Allocates nothing.
    pub fn route(&self, from: usize, to: usize, bytes: u64) -> Option<RouteRef<'_>> {
        let pair = self.pair(from, to)?;
        let ways = self.store.costs(pair.from, pair.to);
        match ways {
            [only] if only.outdoes_host => Some(RouteRef::over_links(self, pair, 0, only)),
            _ => Some(self.best(pair, ways, bytes)),
        }
    }

    fn best(&self, pair: Pair, ways: &[WayCost], bytes: u64) -> RouteRef<'_> {
        let mut best: Option<(usize, &WayCost, f64)> = None;
        for (number, way) in ways.iter().enumerate() {
            let time_us = way.cost.time_us(bytes);
            let is_better = best.is_none_or(|(_, other, other_us)| {
                way.cost.compare_timed(time_us, &other.cost, other_us).is_lt()
            });
            if is_better {
                best = Some((number, way, time_us));
            }
        }
        let over_links = best.filter(|(_, way, time_us)| {
            way.outdoes_host || {
                let (host, _) = self.host_links.way(pair.from, pair.to);
                way.cost.compare_timed(*time_us, &host, host.time_us(bytes)).is_le()
            }
        });
        match over_links {
            Some((number, way, _)) => RouteRef::over_links(self, pair, number, way),
            None => self.without_links(pair),
        }
    }

    /// Every route that no other route of the pair equals in latency, bandwidth and hops at once;
    /// empty only if a device is not in the table.
    ///
    /// Ordered by rising latency, with the way through the host last, if it is among them. If no
    /// route over links with peer access has known figures, the one with the fewest hops stands
    /// in for all. Allocates the list.
    pub fn routes(&self, from: usize, to: usize) -> Vec<RouteRef<'_>> {
        let Some(pair) = self.pair(from, to) else { return Vec::new() };
        let ways = self.store.costs(pair.from, pair.to);
        let over_links = ways.iter().enumerate();
        let mut routes: Vec<_> =
            over_links.map(|(number, way)| RouteRef::over_links(self, pair, number, way)).collect();
        if !ways.first().is_some_and(|way| way.outdoes_host) {
            let other = self.without_links(pair);
            routes.retain(|route| !route.cost().is_known() || !other.cost().outdoes(&route.cost()));
            routes.push(other);
        }
        routes
    }

    /// The way through host memory, which is there whatever happens to the links; `None` from a
    /// device to itself, or if a device is not in the table.
    pub fn host_route(&self, from: usize, to: usize) -> Option<RouteRef<'_>> {
        let pair = self.pair(from, to).filter(|pair| pair.from != pair.to)?;
        Some(self.without_links(pair))
    }

    /// How many devices the table knows.
    pub fn device_count(&self) -> usize {
        self.positions.count()
    }

    /// About how much memory the table takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.positions.memory_bytes()
            + self.links.memory_bytes()
            + self.host_links.memory_bytes()
            + self.store.memory_bytes()
    }

    pub(super) fn pair(&self, from: usize, to: usize) -> Option<Pair> {
        let (row, column) = (self.positions.of(from)?, self.positions.of(to)?);
        Some(Pair { from: row, to: column, devices: [from, to] })
    }

    /// The way through the host; or the one to the device itself.
    pub(super) fn without_links(&self, pair: Pair) -> RouteRef<'_> {
        let (cost, quality) = self.host_links.way(pair.from, pair.to);
        RouteRef::without_links(self, pair, &cost, quality)
    }

    /// What a way over links passes between its ends.
    pub(super) fn ends_between(&self, pair: Pair, way: usize) -> Vec<End> {
        let places = self.store.places_between(pair.from, pair.to, way);
        places.into_iter().map(|place| self.links.end(place)).collect()
    }
}

/// Two devices of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    /// Position of the one that sends.
    pub(super) from: usize,
    /// Position of the one that receives.
    pub(super) to: usize,
    pub(super) devices: [usize; 2],
}
