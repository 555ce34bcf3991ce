//! Properties of routes on random directed, asymmetric graphs: they equal brute force.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::ops::Range;

use hopwise_topology::{
    CHUNK_BYTES, Figure, GpuConnection, GpuTopology, HostLink, InterconnectType, LinkFigures,
    Route, RouteKind, RouteTable,
};
use proptest::prelude::*;

/// Sizes on both sides of a chunk, and far from it.
const SIZES: [u64; 6] = [0, 64, 4096, CHUNK_BYTES, 10 * CHUNK_BYTES + 1, 1 << 32];

/// A link before it has figures: latency and bandwidth as small integers, if known.
#[derive(Clone, Debug)]
struct Link {
    from: usize,
    to: usize,
    latency: Option<u32>,
    bandwidth: Option<u32>,
    peer_access: bool,
    through_host: bool,
}

#[derive(Clone, Debug)]
struct Machine {
    devices: usize,
    links: Vec<Link>,
    relays: Vec<bool>,
    host: Vec<Option<(u32, u32)>>,
}

fn figure(value: Option<u32>) -> Figure {
    value.map_or(Figure::unknown(), |value| Figure::measured(f64::from(value), 0).unwrap())
}

impl Link {
    fn connection(&self) -> GpuConnection {
        let kind = if self.through_host {
            InterconnectType::HostMemory
        } else {
            InterconnectType::PcieSwitch
        };
        GpuConnection::new(self.from, self.to, kind)
            .with_latency(figure(self.latency))
            .with_bandwidth(figure(self.bandwidth))
            .with_peer_access(self.peer_access)
    }
}

impl Machine {
    fn topology(&self) -> GpuTopology {
        let mut topology = GpuTopology::new(0..self.devices);
        for link in self.links.iter().filter(|link| link.from != link.to) {
            topology.set_connection(link.connection()).unwrap();
        }
        for (device, figures) in self.host.iter().enumerate() {
            let Some((latency, bandwidth)) = *figures else { continue };
            let mut link = HostLink::new(device, InterconnectType::HostBridge);
            link.to_host =
                LinkFigures { latency: figure(Some(latency)), bandwidth: figure(Some(bandwidth)) };
            link.from_host = LinkFigures {
                latency: figure(Some(latency + 1)),
                bandwidth: figure(Some(bandwidth + 1)),
            };
            topology.set_host_link(link).unwrap();
        }
        topology
    }

    fn routes(&self) -> RouteTable {
        RouteTable::build(&self.topology(), &|device| self.relays[device])
    }
}

/// A value with the given probability, which may be 1.
fn sometimes(probability: f64, values: Range<u32>) -> impl Strategy<Value = Option<u32>> {
    (0.0..1.0, values).prop_map(move |(chance, value)| (chance < probability).then_some(value))
}

fn link(devices: usize, (latency, bandwidth): (f64, f64)) -> impl Strategy<Value = Link> {
    (
        (0..devices, 0..devices),
        sometimes(latency, 1_u32..6),
        sometimes(bandwidth, 1_u32..40),
        prop::bool::weighted(0.85),
        prop::bool::weighted(0.1),
    )
        .prop_map(|((from, to), latency, bandwidth, peer_access, through_host)| Link {
            from,
            to,
            latency,
            bandwidth,
            peer_access,
            through_host,
        })
}

/// All figures are known.
const KNOWN: (f64, f64) = (1.0, 1.0);

/// A machine in which latencies and bandwidths are known with these probabilities.
fn machine(known: (f64, f64)) -> impl Strategy<Value = Machine> {
    (2_usize..=7).prop_flat_map(move |devices| {
        (
            prop::collection::vec(link(devices, known), 0..devices * 6),
            prop::collection::vec(prop::bool::weighted(0.8), devices),
            prop::collection::vec(prop::option::of((3_u32..12, 1_u32..20)), devices),
        )
            .prop_map(move |(links, relays, host)| Machine {
                devices,
                links,
                relays,
                host,
            })
    })
}

/// Every simple path over links with peer access, in which only devices that may relay are passed
/// and no link through host memory is combined with another.
fn simple_paths(
    machine: &Machine,
    topology: &GpuTopology,
    from: usize,
    to: usize,
) -> Vec<Vec<usize>> {
    fn go_on(
        machine: &Machine,
        topology: &GpuTopology,
        path: &mut Vec<usize>,
        to: usize,
        found: &mut Vec<Vec<usize>>,
    ) {
        let at = *path.last().unwrap();
        for next in 0..machine.devices {
            let Some(link) = topology.connection(at, next) else { continue };
            if !link.peer_access || path.contains(&next) {
                continue;
            }
            let is_direct = path.len() == 1 && next == to;
            if link.kind == InterconnectType::HostMemory && !is_direct {
                continue;
            }
            path.push(next);
            if next == to {
                found.push(path.clone());
            } else if machine.relays[next] {
                go_on(machine, topology, path, to, found);
            }
            path.pop();
        }
    }
    let mut found = Vec::new();
    go_on(machine, topology, &mut vec![from], to, &mut found);
    found
}

/// Latency and bandwidth of a path, from its links.
fn figures(topology: &GpuTopology, path: &[usize]) -> (Option<f64>, Option<f64>) {
    let links = || path.windows(2).map(|pair| topology.connection(pair[0], pair[1]).unwrap());
    (
        links().map(|link| link.latency.value()).sum(),
        links()
            .map(|link| link.bandwidth.value())
            .try_fold(f64::INFINITY, |narrowest, width| width.map(|width| narrowest.min(width))),
    )
}

fn time_us(latency: f64, bandwidth: f64, hops: usize, bytes: u64) -> f64 {
    let chunks = (hops - 1) as f64 * bytes.min(CHUNK_BYTES) as f64;
    latency + (bytes as f64 + chunks) / (bandwidth * 1e9) * 1e6
}

/// The least time over all simple paths and the host, if any is known.
fn least_time(
    machine: &Machine,
    topology: &GpuTopology,
    ends: (usize, usize),
    bytes: u64,
) -> Option<f64> {
    let (from, to) = ends;
    let over_links = simple_paths(machine, topology, from, to).into_iter().filter_map(|path| {
        let (latency, bandwidth) = figures(topology, &path);
        Some(time_us(latency?, bandwidth?, path.len() - 1, bytes))
    });
    let through_host = machine.host[from].zip(machine.host[to]).map(|(here, there)| {
        let bandwidth = here.1.min(there.1 + 1);
        time_us(f64::from(here.0 + there.0 + 1), f64::from(bandwidth), 2, bytes)
    });
    over_links.chain(through_host).min_by(f64::total_cmp)
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// Whether a route says of itself what its links say.
fn is_honest(
    machine: &Machine,
    topology: &GpuTopology,
    route: &Route,
    ends: (usize, usize),
) -> bool {
    let ends_match = route.path.first() == Some(&ends.0) && route.path.last() == Some(&ends.1);
    let relays_match = route.relays().iter().all(|&relay| machine.relays[relay]);
    let figures_match = route.kind == RouteKind::HostMediated
        || figures(topology, &route.path) == (route.latency_us, route.bandwidth_gb_per_s);
    ends_match && relays_match && figures_match
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_route_is_the_fastest_of_all_simple_paths(machine in prop_oneof![machine(KNOWN), machine((0.7, 0.7))]) {
        let (topology, routes) = (machine.topology(), machine.routes());
        for from in 0..machine.devices {
            for to in (0..machine.devices).filter(|&to| to != from) {
                for bytes in SIZES {
                    let route = routes.route(from, to, bytes).unwrap();
                    prop_assert!(is_honest(&machine, &topology, route, (from, to)), "{route:?}");
                    let least = least_time(&machine, &topology, (from, to), bytes);
                    match (route.time_us(bytes), least) {
                        (Some(ours), Some(least)) => prop_assert!(close(ours, least), "{route:?}: {ours} {least}"),
                        (None, None) => {}
                        (ours, least) => prop_assert!(false, "{route:?}: {ours:?} {least:?}"),
                    }
                }
            }
        }
    }

    #[test]
    fn where_no_time_is_known_the_route_has_the_fewest_hops_and_then_is_widest(machine in machine((0.1, 0.8))) {
        let (topology, routes) = (machine.topology(), machine.routes());
        for from in 0..machine.devices {
            for to in (0..machine.devices).filter(|&to| to != from) {
                let route = routes.route(from, to, 4096).unwrap();
                if route.time_us(4096).is_some() {
                    continue;
                }
                let rank = |hops: usize, bandwidth: Option<f64>| (hops, -bandwidth.unwrap_or(0.0));
                let over_links = simple_paths(&machine, &topology, from, to)
                    .into_iter()
                    .map(|path| rank(path.len() - 1, figures(&topology, &path).1));
                let host = routes.host_route(from, to).unwrap();
                let best = over_links
                    .chain([rank(2, host.bandwidth_gb_per_s)])
                    .min_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)))
                    .unwrap();
                let ours = rank(route.hops(), route.bandwidth_gb_per_s);
                prop_assert_eq!(ours, best, "{:?}", route);
            }
        }
    }

    #[test]
    fn no_kept_route_is_beaten_in_everything(machine in machine(KNOWN)) {
        let routes = machine.routes();
        for from in 0..machine.devices {
            for to in (0..machine.devices).filter(|&to| to != from) {
                let kept = routes.routes(from, to);
                for (at, route) in kept.iter().enumerate() {
                    let is_beaten = kept.iter().enumerate().any(|(other_at, other)| {
                        other_at != at
                            && other.time_us(0).is_some()
                            && other.latency_us <= route.latency_us
                            && other.bandwidth_gb_per_s >= route.bandwidth_gb_per_s
                            && other.hops() <= route.hops()
                    });
                    prop_assert!(!is_beaten, "{route:?} among {kept:?}");
                }
            }
        }
    }

    #[test]
    fn an_added_link_never_makes_a_route_slower(
        (machine, extra) in prop_oneof![machine(KNOWN), machine((0.6, 0.6))]
            .prop_flat_map(|machine| {
                let devices = machine.devices;
                (Just(machine), link(devices, (0.8, 0.8)))
            }),
    ) {
        let mut machine = machine;
        machine.links.retain(|link| (link.from, link.to) != (extra.from, extra.to));
        let mut larger = machine.clone();
        larger.links.push(extra);
        let (before, after) = (machine.routes(), larger.routes());
        for from in 0..machine.devices {
            for to in 0..machine.devices {
                for bytes in SIZES {
                    let time = |routes: &RouteTable| routes.route(from, to, bytes).unwrap().time_us(bytes);
                    let Some(time_before) = time(&before) else { continue };
                    let time_after = time(&after);
                    prop_assert!(
                        time_after.is_some_and(|after| after <= time_before * (1.0 + 1e-12)),
                        "{from} to {to}, {bytes} bytes: {time_before} became {time_after:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn far_apart_indices_are_as_good_as_small_ones() {
    let devices = [0, 7, usize::MAX];
    let mut topology = GpuTopology::new(devices);
    let kind = InterconnectType::NvLink { generation: Some(4), links: 18 };
    topology.set_connection(GpuConnection::new(7, usize::MAX, kind)).unwrap();
    let routes = RouteTable::build(&topology, &|_| true);
    assert_eq!(routes.device_count(), 3);
    assert_eq!(routes.route(7, usize::MAX, 1).map(|route| route.kind), Some(RouteKind::Direct));
    assert_eq!(
        routes.route(usize::MAX, 7, 1).map(|route| route.kind),
        Some(RouteKind::HostMediated)
    );
    assert!(routes.route(1, 7, 1).is_none());
    assert!(routes.routes(7, 1).is_empty());
    assert!(routes.host_route(7, 7).is_none());
}

#[test]
fn an_empty_topology_has_no_routes() {
    let routes = RouteTable::build(&GpuTopology::new([]), &|_| true);
    assert_eq!(routes.device_count(), 0);
    assert!(routes.route(0, 0, 1).is_none());
}
