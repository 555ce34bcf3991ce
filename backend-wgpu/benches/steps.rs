//! How much do batches and transfers cost beside the same written by hand against wgpu?
//!
//! A batch of kernels stands beside the same uploads, dispatches and read-backs without anything
//! around them. Reading and writing a state stands beside copies of the driver's, of the same bytes
//! in as many buffers, between the device's memory and memory that the host can map. Each prints its
//! ratio (ours / by hand) before the timings; for transfers the inverse is the share of the speed.

#![allow(clippy::print_stdout, reason = "the ratios are what this bench is for")]
#![allow(missing_docs, reason = "criterion_group makes a function that cannot be documented")]

#[path = "support/by_hand.rs"]
mod by_hand;

use std::sync::Arc;
use std::time::Instant;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hopwise_backend_wgpu::{WgpuBackend, WgpuDevice, WgpuOptions};
use hopwise_core::abi::{inbox, outbox};
use hopwise_core::device::{
    Device, InitialState, InstanceRequest, KernelInstance, Step, StepOutcome,
};
use hopwise_core::program::{Grid, Program};

/// State of each kernel in a batch.
const STATE_WORDS: u32 = 1024;

/// State that is read and written.
const LARGE_BYTES: usize = 256 << 20;

/// Adds a message's word to every word of state and sends one message.
fn program() -> Arc<Program> {
    Program::builder("bench")
        .in_port("in", 8)
        .out_port("out", 8)
        .inbox_slots(16)
        .outbox_slots(16)
        .pass("main", Grid::StateWords)
        .wgsl(
            "@compute @workgroup_size(64)
            fn main(
                @builtin(global_invocation_id) id: vec3<u32>,
                @builtin(num_workgroups) groups: vec3<u32>,
            ) {
                let i = hw_index(id, groups, 64u);
                if (i >= hw_state_words()) { return; }
                hw_set_state(i, hw_state(i) + hw_payload(0u, 0u));
                if (i == 0u) { hw_put(hw_send(0u, 0u, 1u, 4u), 0u, hw_state(0u)); }
            }",
        )
        .build()
        .expect("a well-formed program")
}

struct Batch {
    device: Arc<WgpuDevice>,
    program: Arc<Program>,
    steps: Vec<Step>,
    number: u64,
}

impl Batch {
    fn new(device: &Arc<WgpuDevice>, kernels: usize) -> Self {
        let program = program();
        let compiled = device.compile(&program).expect("the program fits");
        let request = InstanceRequest {
            parameters: &[],
            state_bytes: u64::from(STATE_WORDS) * 4,
            initial: InitialState::Zeroed,
        };
        let step = |_| {
            let instance = device.create_instance(&compiled, &request).expect("there is room");
            Step::new(instance, Vec::new(), Vec::new())
        };
        let steps = (0..kernels).map(step).collect();
        Self { device: Arc::clone(device), program, steps, number: 0 }
    }

    fn run(&mut self) {
        self.number += 1;
        for step in &mut self.steps {
            inbox::begin(&mut step.inbox, self.program.inbox_slot_words(), self.number, false);
            inbox::push(&mut step.inbox, 0, 1, 1, &[1, 0, 0, 0]);
            outbox::begin(&mut step.outbox, &self.program);
            step.outcome = StepOutcome::NotStarted;
        }
        self.device.run_batch(&mut self.steps).expect("the device works");
        assert_eq!(self.steps[0].outbox[0], 1, "each kernel sends one message");
    }
}

/// The best times of both, taken in turn so that both see the same machine, in seconds.
fn best_of_both(rounds: u32, mut ours: impl FnMut(), mut theirs: impl FnMut()) -> (f64, f64) {
    let time = |call: &mut dyn FnMut()| {
        let start = Instant::now();
        call();
        start.elapsed().as_secs_f64()
    };
    let mut best = (f64::INFINITY, f64::INFINITY);
    for _ in 0..rounds {
        best.0 = best.0.min(time(&mut ours));
        best.1 = best.1.min(time(&mut theirs));
    }
    best
}

fn print_ratio(what: &str, (ours, theirs): (f64, f64)) {
    let (ours_us, theirs_us) = (ours * 1e6, theirs * 1e6);
    println!("ratio {what}: {:.2} ({ours_us:.1} / {theirs_us:.1} us)", ours / theirs);
}

fn open() -> Option<Arc<WgpuDevice>> {
    open_with(WgpuOptions::new().with_memory_bytes(1 << 30))
}

fn open_with(options: WgpuOptions) -> Option<Arc<WgpuDevice>> {
    let device = WgpuBackend::new(options).open_wgpu(0);
    device.inspect_err(|error| println!("nothing to measure: {error}")).ok()
}

fn batches(criterion: &mut Criterion) {
    let Some(device) = open() else { return };
    println!("on {}", device.info().name);
    let mut group = criterion.benchmark_group("batch");
    for kernels in [1, 8, 64] {
        let mut ours = Batch::new(&device, kernels);
        let mut theirs = by_hand::Batch::new(kernels, STATE_WORDS);
        for _ in 0..20 {
            ours.run();
            theirs.run();
        }
        let best = best_of_both(400, || ours.run(), || theirs.run());
        print_ratio(&format!("batch of {kernels} to dispatches by hand"), best);
        let id = |name| BenchmarkId::new(name, kernels);
        group.bench_function(id("hopwise"), |bench| bench.iter(|| ours.run()));
        group.bench_function(id("by_hand"), |bench| bench.iter(|| theirs.run()));
    }
}

fn large_instance(device: &WgpuDevice) -> Arc<dyn KernelInstance> {
    let compiled = device.compile(&program()).expect("the program fits");
    let request = InstanceRequest {
        parameters: &[],
        state_bytes: LARGE_BYTES as u64,
        initial: InitialState::Undefined,
    };
    device.create_instance(&compiled, &request).expect("there is room")
}

fn transfers(criterion: &mut Criterion) {
    let options = WgpuOptions::new().with_memory_bytes(1 << 30);
    for (way, options) in [("", options.clone()), ("staged ", options.with_staged_transfers())] {
        if let Some(device) = open_with(options) {
            transfers_on(&device, way, criterion);
        }
    }
}

fn transfers_on(device: &Arc<WgpuDevice>, way: &str, criterion: &mut Criterion) {
    let instance = large_instance(device);
    let mut bytes = vec![7; LARGE_BYTES];
    let mut copy = by_hand::Copy::new(LARGE_BYTES as u64);
    let write = |bytes: &[u8]| instance.write_state(0, bytes).expect("the device works");
    let read = |bytes: &mut [u8]| instance.read_state(0, bytes).expect("the device works");
    let best = best_of_both(8, || write(&bytes), || copy.upload());
    print_ratio(&format!("{way}write of 256 MiB to the driver's own copies"), best);
    let best = best_of_both(8, || read(&mut bytes), || copy.download());
    print_ratio(&format!("{way}read of 256 MiB to the driver's own copies"), best);

    let mut group = criterion.benchmark_group(format!("{way}transfer"));
    group.sample_size(10).throughput(Throughput::Bytes(LARGE_BYTES as u64));
    group.bench_function("write", |bench| bench.iter(|| write(&bytes)));
    group.bench_function("driver_upload", |bench| bench.iter(|| copy.upload()));
    group.bench_function("read", |bench| bench.iter(|| read(&mut bytes)));
    group.bench_function("driver_download", |bench| bench.iter(|| copy.download()));
    group.bench_function("digests", |bench| {
        bench.iter(|| instance.chunk_digests(256 << 10).expect("the device works"));
    });
}

/// A hundred thousand steps, and what they leave behind.
fn long_run(_: &mut Criterion) {
    const KERNELS: usize = 8;
    const STEPS: usize = 100_000;
    let Some(device) = open() else { return };
    let mut batch = Batch::new(&device, KERNELS);
    let mut run = |batches: usize| (0..batches).for_each(|_| batch.run());
    run(STEPS / KERNELS / 10);
    let (buffers, memory) = (device.buffers_created(), resident_bytes());
    let start = Instant::now();
    run(STEPS / KERNELS);
    let seconds = start.elapsed().as_secs_f64();
    let buffers = device.buffers_created() - buffers;
    let grown_kib = resident_bytes().saturating_sub(memory) >> 10;
    println!("{STEPS} steps in {seconds:.2} s: {buffers} buffers created, {grown_kib} KiB more");
}

/// Memory of this process that is present; 0 where the system does not say.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

criterion_group!(benches, batches, transfers, long_run);
criterion_main!(benches);
