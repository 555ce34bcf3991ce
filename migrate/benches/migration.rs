//! A migration between host devices beside a bare copy of the same bytes in memory.
//!
//! `cargo bench -p hopwise-migrate` prints, after criterion's own lines, one `ratio` line for each
//! size and way (directly, or through staging buffers): the whole migration, and its copy alone,
//! divided by the bare copy; then where the time goes. The kernel has no messages, so what is
//! measured is the protocol: reserve, twin, hold, copy, digests on both sides, hand-over.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use hopwise_core::fleet::{Fleet, KernelSpec};
use hopwise_core::host::{HostBackend, HostOptions};
use hopwise_core::id::KernelId;
use hopwise_core::program::Program;
use hopwise_migrate::{KernelMigrator, MigrationOptions, MigrationReport};

const MIB: usize = 1 << 20;

/// Runs of which the fastest counts.
const RUNS: usize = 5;

fn fleet_with(bytes: usize) -> (Fleet, KernelId) {
    let backend = HostBackend::new(HostOptions::new(2));
    let builder = Fleet::builder().backend(&backend).expect("host devices open");
    let fleet = builder.build().expect("threads start");
    let program = Program::builder("still").in_port("in", 4).host(|_| Ok(())).build();
    let state = (0..=255).cycle().take(bytes).collect();
    let spec = KernelSpec::new("still", program.expect("well formed"), bytes).with_state(state);
    let kernel = fleet.launch(spec).expect("room");
    (fleet, kernel)
}

fn migrate(migrator: &KernelMigrator<'_>, kernel: &KernelId) -> MigrationReport {
    let device = migrator.fleet().status(kernel).expect("launched").device;
    migrator.migrate(kernel, 1 - device).expect("nothing fails")
}

fn bare_copy(from: &[u8], to: &mut [u8]) {
    black_box(to).copy_from_slice(black_box(from));
}

/// The least time of a bare copy among several, in microseconds: noise only adds.
fn bare_copy_us(from: &[u8], to: &mut [u8]) -> f64 {
    let times = (0..RUNS).map(|_| {
        let began = Instant::now();
        bare_copy(from, to);
        began.elapsed()
    });
    times.min().unwrap_or_default().as_secs_f64() * 1e6
}

#[expect(clippy::cast_precision_loss, reason = "times are far below 2^52 us")]
fn ratio(name: &str, best: &MigrationReport, limit_us: f64) -> String {
    let of_limit = |us: u64| us as f64 / limit_us;
    let (phases, total) = (best.phases, best.total_us);
    format!(
        "ratio  {name}: {:.1}, its copy {:.1} (limit {limit_us:.0} us; total {total}, held {}: twin \
         {}, copy {}, digests {}, hand-over {} us)",
        of_limit(total),
        of_limit(phases.copy_us),
        best.hold_us,
        phases.twin_us,
        phases.copy_us,
        phases.verify_us,
        phases.hand_over_us,
    )
}

#[expect(clippy::print_stdout, reason = "a benchmark reports")]
fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    let mut ratios = Vec::new();
    for bytes in [MIB, 16 * MIB, 256 * MIB] {
        let mut group = criterion.benchmark_group(format!("{} MiB", bytes / MIB));
        group.throughput(Throughput::Bytes(bytes as u64));
        // Not zeros: pages that were never touched would be copied faster than any memory.
        let (from, mut to) = (vec![1; bytes], vec![2; bytes]);
        group.bench_function("bare copy", |bencher| {
            bencher.iter(|| bare_copy(&from, &mut to));
        });
        let limit_us = bare_copy_us(&from, &mut to);
        let (fleet, kernel) = fleet_with(bytes);
        for (way, peer_copy) in [("peer", true), ("staged", false)] {
            let options = MigrationOptions::new().with_peer_copy(peer_copy);
            let migrator = KernelMigrator::new(&fleet).with_options(options);
            group.bench_function(way, |bencher| bencher.iter(|| migrate(&migrator, &kernel)));
            let runs = (0..RUNS).map(|_| migrate(&migrator, &kernel));
            let best = runs.min_by_key(|report| report.total_us).expect("there are runs");
            ratios.push(ratio(&format!("{} MiB, {way}", bytes / MIB), &best, limit_us));
        }
        group.finish();
    }
    criterion.final_summary();
    ratios.iter().for_each(|line| println!("{line}"));
}
