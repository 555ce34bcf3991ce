//! All routes of a topology, computed once.

use super::RouteRef;
use super::cost::Cost;
use super::links::Links;
use super::positions::Positions;
use super::store::Store;
use crate::{End, GpuTopology, LinkFigures, Quality};

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
    /// By position: the links to host memory.
    host_legs: Vec<HostLegs>,
    store: Store,
}

/// What the two directions of the link between a device and host memory are worth.
#[derive(Clone, Copy, Debug)]
struct HostLegs {
    to_host: (Cost, Quality),
    from_host: (Cost, Quality),
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
        let store = Store::fill(&links);
        let host_legs = devices.iter().map(|&device| HostLegs::of(topology, device)).collect();
        Self { epoch: topology.epoch(), positions, links, host_legs, store }
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
        let (host, quality) = self.without_links(pair);
        let (mut best, mut best_us, mut over_links) = (&host, host.time_us(bytes), None);
        // Of equals a route over links is taken, and the first of those.
        for (number, way) in self.store.costs(pair.from, pair.to).iter().enumerate().rev() {
            let time_us = way.cost.time_us(bytes);
            if way.cost.compare_timed(time_us, best, best_us).is_le() {
                (best, best_us, over_links) = (&way.cost, time_us, Some((number, way)));
            }
        }
        Some(match over_links {
            Some((number, way)) => RouteRef::over_links(self, pair, number, way),
            None => RouteRef::without_links(self, pair, &host, quality),
        })
    }

    /// Every route that no other route of the pair equals in latency, bandwidth and hops at once;
    /// empty only if a device is not in the table.
    ///
    /// Ordered by rising latency, with the way through the host last, if it is among them. If no
    /// route over links with peer access has known figures, the one with the fewest hops stands
    /// in for all. Allocates the list.
    pub fn routes(&self, from: usize, to: usize) -> Vec<RouteRef<'_>> {
        let Some(pair) = self.pair(from, to) else { return Vec::new() };
        let other = self.route_without_links(pair);
        let costs = self.store.costs(pair.from, pair.to).iter().enumerate();
        let mut routes: Vec<_> =
            costs.map(|(number, way)| RouteRef::over_links(self, pair, number, way)).collect();
        if !routes.iter().any(|route| route.cost().outdoes(&other.cost())) {
            routes.retain(|route| !route.cost().is_known() || !other.cost().outdoes(&route.cost()));
            routes.push(other);
        }
        routes
    }

    /// The way through host memory, which is there whatever happens to the links; `None` from a
    /// device to itself, or if a device is not in the table.
    pub fn host_route(&self, from: usize, to: usize) -> Option<RouteRef<'_>> {
        let pair = self.pair(from, to).filter(|pair| pair.from != pair.to)?;
        Some(self.route_without_links(pair))
    }

    /// How many devices the table knows.
    pub fn device_count(&self) -> usize {
        self.positions.count()
    }

    /// About how much memory the table takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.positions.memory_bytes()
            + self.links.memory_bytes()
            + self.host_legs.capacity() * size_of::<HostLegs>()
            + self.store.memory_bytes()
    }

    pub(super) fn pair(&self, from: usize, to: usize) -> Option<Pair> {
        let (row, column) = (self.positions.of(from)?, self.positions.of(to)?);
        Some(Pair { from: row, to: column, devices: [from, to] })
    }

    /// The way through the host; or the one to the device itself.
    pub(super) fn route_without_links(&self, pair: Pair) -> RouteRef<'_> {
        let (cost, quality) = self.without_links(pair);
        RouteRef::without_links(self, pair, &cost, quality)
    }

    fn without_links(&self, pair: Pair) -> (Cost, Quality) {
        if pair.from == pair.to {
            return (Cost::NOTHING, Quality::Measured);
        }
        let (into, into_quality) = &self.host_legs[pair.from].to_host;
        let (out, out_quality) = &self.host_legs[pair.to].from_host;
        (into.then(out), *into_quality.min(out_quality))
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

impl HostLegs {
    fn of(topology: &GpuTopology, device: usize) -> Self {
        let leg = |figures: &LinkFigures| {
            let cost = Cost {
                latency_us: figures.latency.value().unwrap_or(f64::NAN),
                gb_per_s: figures.bandwidth.value().unwrap_or(f64::NAN),
                hops: 1,
            };
            (cost, figures.latency.quality().min(figures.bandwidth.quality()))
        };
        let link = topology.host_link(device);
        let unknown = LinkFigures::unknown();
        Self {
            to_host: leg(link.as_ref().map_or(&unknown, |link| &link.to_host)),
            from_host: leg(link.as_ref().map_or(&unknown, |link| &link.from_host)),
        }
    }
}
