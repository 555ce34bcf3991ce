//! How fast are all routes computed, and how fast is one looked up?
//!
//! All pairs stand beside petgraph's Floyd-Warshall and its Dijkstra from every device, which
//! find one number for each pair where the table finds every Pareto-best path. A look-up stands
//! beside a read from a bare array. Each prints its ratio (ours / theirs) before the timings.

#![allow(clippy::print_stdout, reason = "the ratios are what this bench is for")]
#![allow(missing_docs, reason = "criterion_group makes a function that cannot be documented")]

#[path = "../tests/routes_support/fat_tree.rs"]
mod fat_tree;

use std::hint::black_box;
use std::time::Instant;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use fat_tree::fat_tree;
use hopwise_topology::{End, Figure, GpuConnection, GpuTopology, InterconnectType, RouteTable};
use petgraph::algo::{dijkstra, floyd_warshall};
use petgraph::graph::DiGraph;

const BYTES: u64 = 1 << 20;

/// Devices of the large machines; a power of two, so that a mask makes any number a device.
const MANY: usize = 1024;

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

/// The same links in petgraph, weighted with the time of `BYTES`: first the devices, then the
/// switches.
fn weighted(topology: &GpuTopology) -> DiGraph<(), f64> {
    let mut graph = DiGraph::new();
    let count = topology.device_count() + topology.switch_count();
    let nodes: Vec<_> = (0..count).map(|_| graph.add_node(())).collect();
    let node = |end| match end {
        End::Device(index) => nodes[index],
        End::Switch(switch) => nodes[topology.device_count() + switch.number()],
    };
    let time_us = |bandwidth: &Figure, latency: &Figure| {
        let value = |figure: &Figure| figure.value().expect("all figures are known");
        value(latency) + BYTES as f64 / (1000.0 * value(bandwidth))
    };
    for link in topology.connections() {
        let weight = time_us(&link.bandwidth, &link.latency);
        graph.add_edge(nodes[link.from], nodes[link.to], weight);
    }
    for link in topology.switch_links() {
        graph.add_edge(node(link.from), node(link.to), time_us(&link.bandwidth, &link.latency));
    }
    graph
}

fn all_pairs_dijkstra(graph: &DiGraph<(), f64>) -> usize {
    let reached = |source| dijkstra(graph, source, None, |edge| *edge.weight()).len();
    graph.node_indices().map(reached).sum()
}

/// The best of 20 rounds of `times` calls, in nanoseconds for one call.
fn best_ns<T>(times: u32, call: impl FnMut() -> T) -> f64 {
    best_of(20, times, call)
}

fn best_of<T>(rounds: u32, times: u32, mut call: impl FnMut() -> T) -> f64 {
    let round = |_| {
        let start = Instant::now();
        for _ in 0..times {
            black_box(call());
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(times)
    };
    (0..rounds).map(round).fold(f64::INFINITY, f64::min)
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

/// All pairs of 1,024 devices: a fat tree of racks, and a machine with a link for every pair.
fn many_devices(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("many_devices");
    group.sample_size(10);
    let machines = [("fat_tree", fat_tree(MANY)), ("every_pair", machine(MANY))];
    for (name, topology) in &machines {
        let build = || RouteTable::build(topology, &|_| true);
        let bytes = build().memory_bytes();
        println!("memory of {name}: {} MB", bytes.div_ceil(1_000_000));
        let ours = best_of(5, 1, build);
        let graph = weighted(topology);
        let theirs = best_of(1, 1, || all_pairs_dijkstra(&graph));
        print_ratio(&format!("{name} to Dijkstra"), ours, theirs);
        let theirs = best_of(1, 1, || floyd_warshall(&graph, |edge| *edge.weight()));
        print_ratio(&format!("{name} to Floyd-Warshall"), ours, theirs);
        group.bench_function(BenchmarkId::new("route_table", name), |bench| bench.iter(build));
        let flow = || topology.max_flow_gb_per_s(0, MANY - 1);
        group.bench_function(BenchmarkId::new("max_flow", name), |bench| bench.iter(flow));
        let bisection = || topology.bisection_bandwidth_gb_per_s();
        group.bench_function(BenchmarkId::new("bisection", name), |bench| bench.iter(bisection));
    }
    for devices in [8, 16, 20] {
        let topology = fat_tree(devices);
        let bisection = || topology.bisection_bandwidth_gb_per_s();
        group.bench_function(BenchmarkId::new("bisection", devices), |bench| bench.iter(bisection));
    }
}

fn query(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("query");
    for (name, topology) in
        [("64", machine(64)), ("fat_tree", fat_tree(MANY)), ("every_pair", machine(MANY))]
    {
        let devices = topology.device_count();
        let routes = RouteTable::build(&topology, &|_| true);
        let array: Vec<f64> = (0..devices * devices)
            .map(|pair| routes.route(pair / devices, pair % devices, BYTES))
            .map(|route| route.and_then(|route| route.time_us(BYTES)).expect("it is known"))
            .collect();
        // A walk over all pairs in an order that no prefetcher follows.
        let shift = devices.trailing_zeros();
        let mut pair = 0;
        let mut next = move || {
            pair = (pair * 5 + 123_457) & (devices * devices - 1);
            (pair >> shift, pair & (devices - 1))
        };
        let mut next_for_array = next;
        let mut ask = || {
            let (from, to) = next();
            routes.route(from, to, BYTES).map(|route| route.hops())
        };
        let mut read = || {
            let (from, to) = next_for_array();
            array[from * devices + to]
        };
        let (ours, theirs) = (best_ns(100_000, &mut ask), best_ns(100_000, &mut read));
        print_ratio(&format!("query in {name} to array read"), ours, theirs);
        group.bench_function(BenchmarkId::new("route", name), |bench| bench.iter(&mut ask));
        group.bench_function(BenchmarkId::new("array_read", name), |bench| bench.iter(&mut read));
    }
}

criterion_group!(benches, all_pairs, many_devices, query);
criterion_main!(benches);
