//! All routes of a topology, computed once.

use std::collections::HashMap;

use super::search::{Hops, Search};
use super::{Route, RouteKind};
use crate::{GpuTopology, HostLink, LinkFigures};

/// The best routes between all devices, fixed at the time of building.
///
/// A route uses links with peer access only, and goes on only from devices that may relay. Beside
/// these every pair has the way through host memory: one bounce, never two, and never through a
/// third device.
///
/// The table holds no reference to the topology. Build a new one when that changes, and share it
/// in an `Arc`.
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
    positions: Positions,
    /// One entry for each ordered pair of positions, row by row.
    pairs: Vec<Pair>,
    routes: Vec<Route>,
}

/// Where the routes of a pair are in the list of all.
#[derive(Clone, Copy, Debug)]
struct Pair {
    start: usize,
    /// End of the routes that are best in something.
    best_end: usize,
    /// The way through the host: the last of those, or the one after them.
    host: Option<usize>,
}

impl RouteTable {
    /// Computes the routes between all devices of a topology.
    ///
    /// `may_relay` is asked once for each device whether routes between others may pass it.
    ///
    /// Costs O(devices x links) steps where each pair has one best route; more where many
    /// routes are best, each in its own way.
    pub fn build(topology: &GpuTopology, may_relay: &dyn Fn(usize) -> bool) -> Self {
        let devices: Vec<usize> = topology.devices().collect();
        let host_links: Vec<_> = devices.iter().map(|&device| topology.host_link(device)).collect();
        let hops = Hops::new(devices.clone(), topology.connections(), may_relay);
        let mut search = Search::new(&hops);
        let mut table = Self {
            positions: Positions::new(&devices),
            pairs: Vec::with_capacity(devices.len() * devices.len()),
            routes: Vec::new(),
        };
        for (from, &from_device) in devices.iter().enumerate() {
            search.run(from);
            for (to, &to_device) in devices.iter().enumerate() {
                if from == to {
                    table.push_pair(vec![Route::same_device(from_device)], None);
                    continue;
                }
                let host = through_host(
                    [from_device, to_device],
                    host_links[from].as_ref(),
                    host_links[to].as_ref(),
                );
                table.push_pair(search.routes_to(to), Some(host));
            }
        }
        table
    }

    fn push_pair(&mut self, mut routes: Vec<Route>, host: Option<Route>) {
        let start = self.routes.len();
        let host_is_best = host
            .as_ref()
            .is_some_and(|host| !routes.iter().any(|route| is_as_good_as(route, host)));
        if let Some(host) = host.as_ref().filter(|_| host_is_best) {
            routes.retain(|route| route.time_us(0).is_none() || !is_as_good_as(host, route));
        }
        self.routes.append(&mut routes);
        let host_at = host.map(|host| {
            self.routes.push(host);
            self.routes.len() - 1
        });
        let best_end = self.routes.len() - usize::from(host_at.is_some() && !host_is_best);
        self.pairs.push(Pair { start, best_end, host: host_at });
    }

    fn pair(&self, from: usize, to: usize) -> Option<Pair> {
        let (from, to) = (self.positions.of(from)?, self.positions.of(to)?);
        Some(self.pairs[from * self.positions.count() + to])
    }

    /// The best route for `bytes`, by the rule of [`Route::compare`]; `None` only if a device is
    /// not in the table.
    ///
    /// Costs two look-ups and a comparison for each of the pair's [`routes`](Self::routes), of
    /// which there are rarely more than three. Allocates nothing.
    pub fn route(&self, from: usize, to: usize, bytes: u64) -> Option<&Route> {
        match self.routes(from, to) {
            [only] => Some(only),
            routes => routes.iter().min_by(|a, b| a.compare(b, bytes)),
        }
    }

    /// Every route that no other route of the pair equals in latency, bandwidth and hops at once;
    /// empty only if a device is not in the table.
    ///
    /// Ordered by rising latency, with the way through the host last, if it is among them. If no
    /// route over links with peer access has known figures, the one with the fewest hops stands
    /// in for all.
    pub fn routes(&self, from: usize, to: usize) -> &[Route] {
        self.pair(from, to).map_or(&[], |pair| &self.routes[pair.start..pair.best_end])
    }

    /// The way through host memory, which is there whatever happens to the links; `None` from a
    /// device to itself, or if a device is not in the table.
    pub fn host_route(&self, from: usize, to: usize) -> Option<&Route> {
        self.pair(from, to)?.host.map(|at| &self.routes[at])
    }

    /// How many devices the table knows.
    pub fn device_count(&self) -> usize {
        self.positions.count()
    }
}

/// Whether `b` is the better route for no message size.
fn is_as_good_as(a: &Route, b: &Route) -> bool {
    match (a.latency_us.zip(a.bandwidth_gb_per_s), b.latency_us.zip(b.bandwidth_gb_per_s)) {
        (Some((latency_a, width_a)), Some((latency_b, width_b))) => {
            latency_a <= latency_b && width_a >= width_b && a.hops() <= b.hops()
        }
        (Some(_), None) => true,
        (None, Some(_)) => false,
        (None, None) => a.compare(b, 0).is_le(),
    }
}

/// The route of two links, into host memory and out of it.
fn through_host(path: [usize; 2], from: Option<&HostLink>, to: Option<&HostLink>) -> Route {
    let unknown = LinkFigures::unknown();
    let legs =
        [from.map_or(&unknown, |link| &link.to_host), to.map_or(&unknown, |link| &link.from_host)];
    let [into, out] = legs;
    let quality = |leg: &LinkFigures| leg.latency.quality().min(leg.bandwidth.quality());
    Route {
        path: path.to_vec(),
        kind: RouteKind::HostMediated,
        latency_us: into.latency.value().zip(out.latency.value()).map(|(a, b)| a + b),
        bandwidth_gb_per_s: into
            .bandwidth
            .value()
            .zip(out.bandwidth.value())
            .map(|(a, b)| a.min(b)),
        quality: quality(into).min(quality(out)),
    }
}

/// From the index of a device to its row in the table.
#[derive(Clone, Debug)]
enum Positions {
    /// By index; `ABSENT` where there is no device.
    Dense { rows: Vec<u32>, count: usize },
    /// For indices that lie far apart.
    Sparse(HashMap<usize, usize>),
}

const ABSENT: u32 = u32::MAX;

impl Positions {
    fn new(devices: &[usize]) -> Self {
        let is_dense = devices.last().is_none_or(|&last| last < 64 + 8 * devices.len());
        let positions = devices.iter().copied().zip(0..);
        if !is_dense {
            return Self::Sparse(devices.iter().copied().zip(0..).collect());
        }
        let mut rows = vec![ABSENT; devices.last().map_or(0, |&last| last + 1)];
        for (device, position) in positions {
            rows[device] = position;
        }
        Self::Dense { rows, count: devices.len() }
    }

    fn of(&self, device: usize) -> Option<usize> {
        match self {
            Self::Dense { rows, .. } => {
                rows.get(device).filter(|&&row| row != ABSENT).map(|&row| row as usize)
            }
            Self::Sparse(rows) => rows.get(&device).copied(),
        }
    }

    fn count(&self) -> usize {
        match self {
            Self::Dense { count, .. } => *count,
            Self::Sparse(rows) => rows.len(),
        }
    }
}
