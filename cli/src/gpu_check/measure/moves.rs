//! Live moves: a kernel goes from a device to the host and back while it is sent messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hopwise_core::coordinator::LaunchOptions;
use hopwise_core::device::{Device, KernelInstance};
use hopwise_core::fleet::{Endpoint, Fleet, HostSender, KernelSpec, MessageTotals};
use hopwise_core::id::KernelId;
use hopwise_core::message::Message;
use hopwise_core::programs::counter::counter;
use hopwise_migrate::{KernelMigrator, MigrationReport};

use super::copies::{create, pattern};
use super::{Measuring, Miss, Sizes, failed};
use crate::gpu_check::figure::{Figure, Limit, Quantity, Times};

/// How long the kernel may take to answer; it stands still while it is moved.
const PATIENCE: Duration = Duration::from_secs(300);

/// Moves there and back that are made at most: a large state takes its time.
const MOST_RUNS: usize = 5;

/// Moves from the first device to the second and back.
pub(super) fn measure(
    devices: &[Arc<dyn Device>],
    places: [usize; 2],
    bytes: u64,
    sizes: Sizes,
) -> Measuring<Vec<Figure>> {
    let pair = places.map(|place| &devices[place]);
    let limits = plain_copies(pair, bytes, sizes.runs.min(MOST_RUNS))?;
    let fleet =
        pair.iter().fold(Fleet::builder(), |builder, device| builder.device(Arc::clone(device)));
    let fleet = fleet.step_limit(PATIENCE).build().map_err(failed)?;
    // The counter uses the first words, which must be zeros; the rest is ballast.
    let mut state = pattern(bytes)?;
    state[..16].fill(0);
    let spec = KernelSpec::new("moved", counter(), 0)
        .with_state(state)
        .with_options(LaunchOptions::new().with_preferred_devices([0]));
    let kernel = fleet.launch(spec).map_err(failed)?;
    let reports = move_under_traffic(&fleet, &kernel, sizes.runs.min(MOST_RUNS))?;
    fleet.wait_idle(PATIENCE).map_err(failed)?;
    let totals = MessageTotals::of(&fleet.ledgers());
    if !totals.is_clean() {
        return Err(Miss::Failed(format!("the ledgers are not clean: {totals:?}")));
    }
    fleet.shutdown(Duration::from_secs(10));
    let ways = [places, [places[1], places[0]]].into_iter().zip(reports).zip(limits);
    let figures = ways.flat_map(|(([from, to], reports), limit)| {
        let on = format!("{from} -> {to}");
        figures(&on, bytes, &reports, &limit)
    });
    Ok(figures.collect())
}

/// Hold and total time of the moves in one direction.
fn figures(on: &str, bytes: u64, reports: &[MigrationReport], limit: &Limit) -> [Figure; 2] {
    let figure = |what: &str, time_us: fn(&MigrationReport) -> u64| Figure {
        what: format!("live move of {}: {what}", size(bytes)),
        on: on.to_owned(),
        quantity: Quantity::Time,
        ours: Times::of(reports.iter().map(|report| time_us(report) as f64).collect())
            .expect("there was a move"),
        limit: Some(limit.clone()),
    };
    [figure("held", |report| report.hold_us), figure("total", |report| report.total_us)]
}

fn size(bytes: u64) -> String {
    if bytes < 1 << 20 { format!("{} KiB", bytes >> 10) } else { format!("{} MiB", bytes >> 20) }
}

/// Moves the kernel there and back while a thread sends it messages and waits for every answer.
fn move_under_traffic(
    fleet: &Fleet,
    kernel: &KernelId,
    runs: usize,
) -> Measuring<[Vec<MigrationReport>; 2]> {
    let totals = fleet.endpoint("totals", 16);
    fleet.connect_endpoint(kernel, "total", &totals).map_err(failed)?;
    let sender = fleet.sender("gpu-check", kernel, "add").map_err(failed)?;
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let traffic = scope.spawn(|| send_and_check(&sender, &totals, &is_done));
        let moved = move_there_and_back(fleet, kernel, runs);
        is_done.store(true, Ordering::Relaxed);
        traffic.join().unwrap_or_else(|_| Err(failed("the thread that sends panicked")))?;
        moved
    })
}

fn move_there_and_back(
    fleet: &Fleet,
    kernel: &KernelId,
    runs: usize,
) -> Measuring<[Vec<MigrationReport>; 2]> {
    let migrator = KernelMigrator::new(fleet);
    let mut reports = [Vec::new(), Vec::new()];
    for _ in 0..runs {
        for (reports, target) in reports.iter_mut().zip([1, 0]) {
            reports.push(migrator.migrate(kernel, target).map_err(failed)?);
        }
    }
    Ok(reports)
}

/// Adds 1 again and again; each answer must be the number of messages so far.
fn send_and_check(sender: &HostSender, totals: &Endpoint, is_done: &AtomicBool) -> Measuring<()> {
    let mut sent = 0_u64;
    while !is_done.load(Ordering::Relaxed) {
        sender.send_timeout(Message::from_words(0, &[1, 0]), PATIENCE).map_err(failed)?;
        sent += 1;
        let answer = totals.recv_timeout(PATIENCE).map_err(failed)?;
        if answer.message.payload.as_bytes() != sent.to_le_bytes() {
            let payload = &answer.message.payload;
            return Err(Miss::Failed(format!("message {sent} was answered with {payload:?}")));
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Reading a whole state here and writing it there, one after the other, in both directions.
fn plain_copies(pair: [&Arc<dyn Device>; 2], bytes: u64, runs: usize) -> Measuring<[Limit; 2]> {
    let [first, second] = pair.map(|device| create(&**device, bytes));
    let (first, second) = (first?, second?);
    let mut between = vec![1; usize::try_from(bytes).map_err(failed)?];
    let mut limit = |from: &dyn KernelInstance, to: &dyn KernelInstance| -> Measuring<Limit> {
        let times = Times::measure(runs, || {
            from.read_state(0, &mut between)?;
            to.write_state(0, &between)
        });
        let what = "read and write of the state".to_owned();
        Ok(Limit { what, times: times.map_err(failed)? })
    };
    Ok([limit(&*first, &*second)?, limit(&*second, &*first)?])
}
