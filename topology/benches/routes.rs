//! How fast are all routes computed, and how fast is one looked up?
//!
//! All pairs stand beside petgraph's Floyd-Warshall and its Dijkstra from every device, which
//! find one number for each pair where the table finds every Pareto-best path. A look-up stands
//! beside a read from a bare array. Each prints its ratio (ours / theirs) before the timings.

#![allow(clippy::print_stdout, reason = "the ratios are what this bench is for")]
#![allow(missing_docs, reason = "criterion_group makes a function that cannot be documented")]

use std::hint::black_box;
use std::time::Instant;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use hopwise_topology::{Figure, GpuConnection, GpuTopology, InterconnectType, RouteTable};
use petgraph::algo::{dijkstra, floyd_warshall};
use petgraph::graph::DiGraph;

const BYTES: u64 = 1 << 20;

/// Islands of eight with NVLink inside and PCIe between all devices: many pairs have a choice.
fn machine(devices: usize) -> GpuTopology {
    let mut topology = GpuTopology::new(0..devices);
    for from in 0..devices {
        for to in (0..devices).filter(|&to| to != from) {
            let near = from / 8 == to / 8 && (from ^ to).count_ones() == 1;
            let kind = if near {
                InterconnectType::NvLink { generation: Some(2), links: 2 }
            } else {
                InterconnectType::System
            };
            let (gb_per_s, latency_us) = if near { (50.0, 3.4) } else { (12.0, 5.7) };
            let link = GpuConnection::new(from, to, kind)
                .with_bandwidth(Figure::measured(gb_per_s, 0).expect("positive"))
                .with_latency(Figure::measured(latency_us, 0).expect("positive"))
                .with_peer_access(true);
            topology.set_connection(link).expect("the devices are in the topology");
        }
    }
    topology
}

/// The same links in petgraph, weighted with the time of `BYTES`.
fn weighted(topology: &GpuTopology) -> DiGraph<(), f64> {
    let mut graph = DiGraph::new();
    let nodes: Vec<_> = topology.devices().map(|_| graph.add_node(())).collect();
    for link in topology.connections() {
        let bandwidth = link.bandwidth.value().expect("all figures are known");
        let latency = link.latency.value().expect("all figures are known");
        let time_us = latency + BYTES as f64 / (1000.0 * bandwidth);
        graph.add_edge(nodes[link.from], nodes[link.to], time_us);
    }
    graph
}

fn all_pairs_dijkstra(graph: &DiGraph<(), f64>) -> usize {
    let reached = |source| dijkstra(graph, source, None, |edge| *edge.weight()).len();
    graph.node_indices().map(reached).sum()
}

/// The best of several rounds of `times` calls, in nanoseconds for one call.
fn best_ns<T>(times: u32, mut call: impl FnMut() -> T) -> f64 {
    let round = |_| {
        let start = Instant::now();
        for _ in 0..times {
            black_box(call());
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(times)
    };
    (0..20).map(round).fold(f64::INFINITY, f64::min)
}

fn print_ratio(what: &str, ours_ns: f64, theirs_ns: f64) {
    println!("ratio {what}: {:.2} ({ours_ns:.1} / {theirs_ns:.1} ns)", ours_ns / theirs_ns);
}

fn all_pairs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("all_pairs");
    for devices in [8, 64] {
        let topology = machine(devices);
        let graph = weighted(&topology);
        let build = || RouteTable::build(&topology, &|_| true);
        let floyd = || floyd_warshall(&graph, |edge| *edge.weight()).map(|all| all.len());
        let ours = best_ns(2, build);
        print_ratio(&format!("{devices} devices to Floyd-Warshall"), ours, best_ns(2, floyd));
        let theirs = best_ns(2, || all_pairs_dijkstra(&graph));
        print_ratio(&format!("{devices} devices to Dijkstra"), ours, theirs);

        group.bench_function(BenchmarkId::new("route_table", devices), |bench| bench.iter(build));
        group
            .bench_function(BenchmarkId::new("floyd_warshall", devices), |bench| bench.iter(floyd));
        group.bench_function(BenchmarkId::new("dijkstra", devices), |bench| {
            bench.iter(|| all_pairs_dijkstra(&graph));
        });
    }
}

fn query(criterion: &mut Criterion) {
    const DEVICES: usize = 64;
    let routes = RouteTable::build(&machine(DEVICES), &|_| true);
    let array: Vec<f64> = (0..DEVICES * DEVICES)
        .map(|pair| routes.route(pair / DEVICES, pair % DEVICES, BYTES))
        .map(|route| route.and_then(|route| route.time_us(BYTES)).expect("all figures are known"))
        .collect();
    // A walk over all pairs in an order that no prefetcher follows.
    let mut pair = 0;
    let mut next = move || {
        pair = (pair * 5 + 1237) % (DEVICES * DEVICES);
        (pair / DEVICES, pair % DEVICES)
    };
    let mut next_for_array = next;
    let mut ask = || {
        let (from, to) = next();
        routes.route(from, to, BYTES).map(|route| route.hops())
    };
    let mut read = || {
        let (from, to) = next_for_array();
        array[from * DEVICES + to]
    };
    print_ratio("query to array read", best_ns(100_000, &mut ask), best_ns(100_000, &mut read));
    let mut group = criterion.benchmark_group("query");
    group.bench_function("route", |bench| bench.iter(&mut ask));
    group.bench_function("array_read", |bench| bench.iter(&mut read));
}

criterion_group!(benches, all_pairs, query);
criterion_main!(benches);
