//! Properties of routes on random directed, asymmetric graphs: they equal brute force.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "routes_support/machine.rs"]
mod machine;

use hopwise_topology::{
    CHUNK_BYTES, End, GpuConnection, GpuTopology, InterconnectType, Route, RouteKind, RouteTable,
};
use machine::{
    KNOWN, Machine, Usable, close, least_time, link, machine, simple_ways, usable_links,
};
use proptest::prelude::*;

/// Sizes on both sides of a chunk, and far from it.
const SIZES: [u64; 6] = [0, 64, 4096, CHUNK_BYTES, 10 * CHUNK_BYTES + 1, 1 << 32];

/// Whether a route says of itself what its links say, and keeps the rules.
fn is_honest(machine: &Machine, links: &[Usable], route: &Route, ends: (usize, usize)) -> bool {
    let ends_match = route.path.first() == Some(&ends.0) && route.path.last() == Some(&ends.1);
    let relays_match = route.relays().iter().all(|&relay| machine.relays[relay]);
    if route.kind == RouteKind::HostMediated {
        return ends_match && relays_match && route.path.len() == 2 && route.links().is_empty();
    }
    let used: Option<Vec<&Usable>> = route
        .links()
        .iter()
        .map(|&(from, to)| {
            let is_it =
                |link: &&Usable| (machine.end(link.from), machine.end(link.to)) == (from, to);
            links.iter().find(is_it)
        })
        .collect();
    let Some(used) = used else { return false };
    let is_chain = used.windows(2).all(|pair| {
        let relays =
            pair[0].to >= machine.devices || (pair[0].carries_relays && pair[1].carries_relays);
        pair[0].to == pair[1].from && relays
    });
    let passed: Vec<usize> =
        used.iter().map(|link| link.to).filter(|&to| to < machine.devices).collect();
    let latency = used.iter().map(|link| link.latency).sum::<Option<f64>>();
    let bandwidth = used
        .iter()
        .map(|link| link.bandwidth)
        .try_fold(f64::INFINITY, |narrowest, width| width.map(|width| narrowest.min(width)));
    ends_match
        && relays_match
        && is_chain
        && passed == route.path[1..]
        && (latency, bandwidth) == (route.latency_us, route.bandwidth_gb_per_s)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_route_is_the_fastest_of_all_simple_paths(machine in prop_oneof![machine(KNOWN), machine((0.7, 0.7))]) {
        let (links, routes) = (usable_links(&machine, &machine.topology()), machine.routes());
        for ends in machine.pairs() {
            let ways = simple_ways(&machine, &links, ends);
            for bytes in SIZES {
                let route = routes.route(ends.0, ends.1, bytes).unwrap();
                prop_assert!(is_honest(&machine, &links, &route.to_route(), ends), "{route:?}");
                let least = least_time(&machine, &ways, ends, bytes);
                match (route.time_us(bytes), least) {
                    (Some(ours), Some(least)) => prop_assert!(close(ours, least), "{route:?}: {ours} {least}"),
                    (None, None) => {}
                    (ours, least) => prop_assert!(false, "{route:?}: {ours:?} {least:?}"),
                }
            }
        }
    }

    #[test]
    fn where_no_time_is_known_the_route_has_the_fewest_hops_and_then_is_widest(machine in machine((0.1, 0.8))) {
        let (links, routes) = (usable_links(&machine, &machine.topology()), machine.routes());
        for ends in machine.pairs() {
            let route = routes.route(ends.0, ends.1, 4096).unwrap();
            prop_assert!(is_honest(&machine, &links, &route.to_route(), ends), "{route:?}");
            if route.time_us(4096).is_some() {
                continue;
            }
            let rank = |hops: usize, bandwidth: Option<f64>| (hops, -bandwidth.unwrap_or(0.0));
            let over_links =
                simple_ways(&machine, &links, ends).into_iter().map(|way| rank(way.hops, way.bandwidth));
            let host = routes.host_route(ends.0, ends.1).unwrap();
            let best = over_links
                .chain([rank(2, host.bandwidth_gb_per_s)])
                .min_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)))
                .unwrap();
            let ours = rank(route.hops(), route.bandwidth_gb_per_s);
            prop_assert_eq!(ours, best, "{:?}", route);
        }
    }

    #[test]
    fn kept_routes_are_all_that_nothing_beats_in_everything(machine in machine(KNOWN)) {
        let (links, routes) = (usable_links(&machine, &machine.topology()), machine.routes());
        for ends in machine.pairs() {
            let kept = routes.routes(ends.0, ends.1);
            let as_good = |a: (f64, f64, usize), b: (f64, f64, usize)| a.0 <= b.0 && a.1 >= b.1 && a.2 <= b.2;
            let worth: Vec<_> = kept
                .iter()
                .filter(|route| route.time_us(0).is_some())
                .map(|route| (route.latency_us.unwrap(), route.bandwidth_gb_per_s.unwrap(), route.hops()))
                .collect();
            for (at, &route) in worth.iter().enumerate() {
                let others = worth.iter().enumerate().filter(|&(other, _)| other != at);
                prop_assert!(!others.into_iter().any(|(_, &other)| as_good(other, route)), "{kept:?}");
            }
            for way in simple_ways(&machine, &links, ends) {
                let way = (way.latency.unwrap(), way.bandwidth.unwrap(), way.hops);
                prop_assert!(worth.iter().any(|&route| as_good(route, way)), "{way:?} {kept:?}");
            }
        }
    }

    #[test]
    fn an_added_link_never_makes_a_route_slower(
        (machine, extra) in prop_oneof![machine(KNOWN), machine((0.6, 0.6))]
            .prop_flat_map(|machine| {
                let ends = machine.devices + machine.switches;
                (Just(machine), link(ends, (0.8, 0.8)))
            }),
    ) {
        let mut machine = machine;
        machine.links.retain(|link| (link.from, link.to) != (extra.from, extra.to));
        let mut larger = machine.clone();
        larger.links.push(extra);
        let (before, after) = (machine.routes(), larger.routes());
        for (from, to) in machine.pairs() {
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

    #[test]
    fn disjoint_routes_share_no_link_and_begin_with_the_best(machine in prop_oneof![machine(KNOWN), machine((0.7, 0.7))]) {
        let (links, routes) = (usable_links(&machine, &machine.topology()), machine.routes());
        for ends in machine.pairs() {
            let found = routes.disjoint_routes(ends.0, ends.1, 4096, 9);
            let (host, over_links) = found.split_last().unwrap();
            prop_assert_eq!(host.kind, RouteKind::HostMediated);
            let best = routes.route(ends.0, ends.1, 4096).unwrap();
            if best.kind != RouteKind::HostMediated {
                prop_assert_eq!(over_links[0].time_us(4096), best.time_us(4096));
            }
            let mut used: Vec<(End, End)> = Vec::new();
            for route in over_links {
                prop_assert!(is_honest(&machine, &links, route, ends), "{route:?}");
                let crossed = route.links();
                prop_assert!(!crossed.iter().any(|&(a, b)| used.contains(&(a, b)) || used.contains(&(b, a))));
                used.extend(crossed);
            }
            let times = || over_links.iter().map(|route| route.time_us(4096).unwrap_or(f64::INFINITY));
            prop_assert!(times().is_sorted(), "{found:?}");
            prop_assert_eq!(routes.disjoint_routes(ends.0, ends.1, 4096, 1).len(), 1);
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
    assert!(routes.disjoint_routes(7, 1, 1, 3).is_empty());
}

#[test]
fn an_empty_topology_has_no_routes() {
    let routes = RouteTable::build(&GpuTopology::new([]), &|_| true);
    assert_eq!(routes.device_count(), 0);
    assert!(routes.route(0, 0, 1).is_none());
}
