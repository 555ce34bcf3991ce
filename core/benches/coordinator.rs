//! What the coordinator's calls cost with 100 to 100,000 kernels on eight devices, beside a bare
//! `DashMap` of the same keys. After the groups it prints `ratio` lines: ours to the bare map's,
//! both timed in one loop.
//!
//! Run with `cargo bench -p hopwise-core --bench coordinator`.
#![allow(missing_docs, reason = "criterion's macros define functions without documentation")]
#![allow(clippy::print_stdout, reason = "the ratios are printed")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group};
use dashmap::DashMap;
use hopwise_core::{
    BackendKind, DeviceInfo, KernelId, LaunchOptions, LoadBalancingStrategy, MultiGpuConfig,
    MultiGpuCoordinator,
};

const DEVICES: usize = 8;
const SIZES: [usize; 4] = [100, 1_000, 10_000, 100_000];
/// Calls per timed loop of a ratio.
const CALLS: u32 = 200_000;

struct World {
    coordinator: Arc<MultiGpuCoordinator>,
    kernels: Vec<KernelId>,
    map: DashMap<KernelId, usize>,
}

fn empty(strategy: LoadBalancingStrategy) -> Arc<MultiGpuCoordinator> {
    let config =
        MultiGpuConfig::builder().load_balancing(strategy).max_kernels_per_device(1 << 20).build();
    let coordinator = MultiGpuCoordinator::new(config);
    coordinator.set_custom_selector(|statuses, _| statuses.len() - 1);
    for index in 0..DEVICES {
        let info = DeviceInfo::new(index, format!("gpu{index}"), BackendKind::Cuda)
            .with_memory(80 << 30)
            .with_compute_capability(9, 0)
            .with_pcie(5, 16)
            .with_peer_access(true);
        coordinator.register_device(info).expect("the index is free");
    }
    coordinator
}

/// `count` kernels, spread over the devices.
fn world(strategy: LoadBalancingStrategy, count: usize) -> World {
    let coordinator = empty(strategy);
    let kernels: Vec<_> = (0..count).map(|number| KernelId::new(format!("k{number}"))).collect();
    let map = DashMap::new();
    for (number, &kernel) in kernels.iter().enumerate() {
        coordinator.assign_kernel(kernel, number % DEVICES).expect("there is room");
        map.insert(kernel, number % DEVICES);
    }
    World { coordinator, kernels, map }
}

impl World {
    /// Kernels in an order that caches cannot foresee, again and again.
    fn walk(&self) -> impl FnMut() -> KernelId {
        let mut position = 0;
        move || {
            position = (position + 7919) % self.kernels.len();
            self.kernels[position]
        }
    }

    fn place_and_remove(&self, kernel: KernelId, options: &LaunchOptions) {
        self.coordinator.place(kernel, options).expect("there is room");
        self.coordinator.remove_kernel(&kernel).expect("it was placed");
    }

    fn assign_and_remove(&self, kernel: KernelId) {
        self.coordinator.assign_kernel(kernel, 3).expect("there is room");
        self.coordinator.remove_kernel(&kernel).expect("it was assigned");
    }

    fn request_and_cancel(&self, kernel: &KernelId) {
        let home = self.coordinator.get_kernel_device(kernel).expect("it is mapped");
        let target = (home + 1) % DEVICES;
        let request = self.coordinator.request_migration(kernel, target).expect("there is room");
        self.coordinator.cancel_migration(&request).expect("it is held");
    }
}

fn records(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("records");
    for count in SIZES {
        let world = world(LoadBalancingStrategy::LeastLoaded, count);
        let kernel = KernelId::new("new");
        let options = LaunchOptions::new();
        let mut next = world.walk();
        group.bench_function(BenchmarkId::new("get_kernel_device", count), |bencher| {
            bencher.iter(|| world.coordinator.get_kernel_device(&next()));
        });
        group.bench_function(BenchmarkId::new("bare get", count), |bencher| {
            bencher.iter(|| world.map.get(&next()).map(|entry| *entry));
        });
        group.bench_function(BenchmarkId::new("place+remove", count), |bencher| {
            bencher.iter(|| world.place_and_remove(kernel, &options));
        });
        group.bench_function(BenchmarkId::new("assign+remove", count), |bencher| {
            bencher.iter(|| world.assign_and_remove(kernel));
        });
        group.bench_function(BenchmarkId::new("bare insert+remove", count), |bencher| {
            bencher.iter(|| (world.map.insert(kernel, 3), world.map.remove(&kernel)));
        });
        group.bench_function(BenchmarkId::new("request+cancel", count), |bencher| {
            bencher.iter(|| world.request_and_cancel(&next()));
        });
    }
}

fn selection(criterion: &mut Criterion) {
    let strategies = [
        ("first available", LoadBalancingStrategy::FirstAvailable),
        ("least loaded", LoadBalancingStrategy::LeastLoaded),
        ("round robin", LoadBalancingStrategy::RoundRobin),
        ("memory based", LoadBalancingStrategy::MemoryBased),
        ("compute capability", LoadBalancingStrategy::ComputeCapability),
        ("custom", LoadBalancingStrategy::Custom),
    ];
    let mut group = criterion.benchmark_group("select_device");
    let options = LaunchOptions::new();
    for count in SIZES {
        for (name, strategy) in strategies {
            let world = world(strategy, count);
            group.bench_function(BenchmarkId::new(name, count), |bencher| {
                bencher.iter(|| world.coordinator.select_device(black_box(&options)));
            });
        }
        let world = world(LoadBalancingStrategy::LeastLoaded, count);
        group.bench_function(BenchmarkId::new("for k2k", count), |bencher| {
            bencher.iter(|| world.coordinator.select_device_for_k2k(&world.kernels[0]));
        });
    }
}

/// All kernels are on the device that leaves. Calling again plans anew, at the same cost.
fn draining(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("unregister_device");
    for count in SIZES {
        let coordinator = empty(LoadBalancingStrategy::LeastLoaded);
        for _ in 0..count {
            coordinator.assign_kernel(KernelId::new("k"), 0).expect("there is room");
        }
        group.bench_function(BenchmarkId::new("plans", count), |bencher| {
            bencher.iter(|| coordinator.unregister_device(0));
        });
    }
}

/// Nanoseconds per call: the median of five loops.
fn nanoseconds(mut call: impl FnMut()) -> f64 {
    let mut loops: Vec<_> = (0..5)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..CALLS {
                call();
            }
            start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
        })
        .collect();
    loops.sort_by(f64::total_cmp);
    loops[2]
}

fn print_ratios() {
    for count in SIZES {
        let world = world(LoadBalancingStrategy::LeastLoaded, count);
        let kernel = KernelId::new("new");
        let options = LaunchOptions::new();
        let mut next = world.walk();
        let bare_get = nanoseconds(|| {
            black_box(world.map.get(&next()).map(|entry| *entry));
        });
        let get = nanoseconds(|| {
            black_box(world.coordinator.get_kernel_device(&next()));
        });
        let bare = nanoseconds(|| {
            black_box((world.map.insert(kernel, 3), world.map.remove(&kernel)));
        });
        let print = |name, ours: f64, bare: f64| {
            println!(
                "ratio {name:<18} {count:>7} kernels: {:.2} ({ours:.0} ns, bare map {bare:.0} ns)",
                ours / bare
            );
        };
        print("get_kernel_device", get, bare_get);
        print("place+remove", nanoseconds(|| world.place_and_remove(kernel, &options)), bare);
        print("assign+remove", nanoseconds(|| world.assign_and_remove(kernel)), bare);
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(300))
        .sample_size(20)
        .without_plots();
    targets = records, selection, draining
}

fn main() {
    benches();
    // `cargo test --benches` runs every bench once, to see that it works; ratios mean nothing then.
    if std::env::args().any(|argument| argument == "--bench") {
        print_ratios();
    }
    Criterion::default().configure_from_args().final_summary();
}
