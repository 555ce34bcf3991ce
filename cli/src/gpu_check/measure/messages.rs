//! Messages a second: tokens that go round a ring of two kernels, on one device or on two.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

use hopwise_core::coordinator::LaunchOptions;
use hopwise_core::device::Device;
use hopwise_core::fleet::{Endpoint, Fleet, KernelSpec, MessageTotals};
use hopwise_core::id::KernelId;
use hopwise_core::message::Message;
use hopwise_core::programs::token_ring::{MAX_TOKENS, Parameters, STATE_WORDS, token_ring};

use super::{Measuring, Miss, Sizes, failed};
use crate::gpu_check::figure::{Figure, Limit, Quantity, Times, micros};

/// How long the tokens may take to come home.
const PATIENCE: Duration = Duration::from_secs(300);

/// Messages that a mailbox holds.
const CAPACITY: usize = 1024;

/// A ring whose kernels are on these two devices.
pub(super) fn measure(
    devices: &[Arc<dyn Device>],
    places: [usize; 2],
    on: &str,
    sizes: Sizes,
) -> Measuring<Vec<Figure>> {
    // Only the devices of the ring: an idle one takes no part.
    let [first, second] = places.map(|place| Arc::clone(&devices[place]));
    let builder = Fleet::builder().step_limit(PATIENCE).device(first);
    let builder = if places[0] == places[1] { builder } else { builder.device(second) };
    let fleet = builder.build().map_err(failed)?;
    let homes = [0, usize::from(places[0] != places[1])];
    let messages = u64::from(MAX_TOKENS * 2) * u64::from(sizes.laps * 2);
    let mut times = Vec::new();
    for run in 0..=sizes.runs {
        let took = round(&fleet, homes, sizes.laps)?;
        if run > 0 {
            times.push(micros(took)); // the first warms up
        }
    }
    let totals = MessageTotals::of(&fleet.ledgers());
    if !totals.is_clean() {
        return Err(Miss::Failed(format!("the ledgers are not clean: {totals:?}")));
    }
    fleet.shutdown(Duration::from_secs(10));
    let kernels = if homes[0] == homes[1] { "one device" } else { "two devices" };
    let bare = Times::measure(sizes.runs, || {
        through_a_channel(messages);
        Measuring::Ok(())
    })?;
    Ok(vec![Figure {
        what: format!("messages of 16 bytes between two kernels of {kernels}"),
        on: on.to_owned(),
        quantity: Quantity::Messages(messages),
        ours: Times::of(times).expect("there was a run"),
        limit: Some(Limit { what: "a channel between two threads".to_owned(), times: bare }),
    }])
}

/// Sends every token round so many laps.
fn round(fleet: &Fleet, homes: [usize; 2], laps: u32) -> Measuring<Duration> {
    let done = fleet.endpoint("done", CAPACITY);
    let kernels = [launch(fleet, homes[0], 0, laps)?, launch(fleet, homes[1], 1, laps)?];
    for (kernel, next) in [(0, 1), (1, 0)] {
        let (kernel, next) = (&kernels[kernel], &kernels[next]);
        fleet.connect(kernel, "next", next, "token").map_err(failed)?;
        fleet.connect_endpoint(kernel, "done", &done).map_err(failed)?;
    }
    let begun = Instant::now();
    for kernel in &kernels {
        fleet.start(kernel).map_err(failed)?;
    }
    for _ in 0..MAX_TOKENS * 2 {
        receive(&done)?;
    }
    let took = begun.elapsed();
    fleet.wait_idle(PATIENCE).map_err(failed)?;
    for kernel in &kernels {
        fleet.remove(kernel).map_err(failed)?;
    }
    Ok(took)
}

fn receive(done: &Endpoint) -> Measuring<()> {
    done.recv_timeout(PATIENCE).map(drop).map_err(|error| {
        Miss::Failed(format!("a token did not come home within {PATIENCE:?}: {error}"))
    })
}

fn launch(fleet: &Fleet, home: usize, index: u32, laps: u32) -> Measuring<KernelId> {
    let parameters = Parameters { kernels: 2, laps, index, tokens: MAX_TOKENS };
    let spec = KernelSpec::new(format!("ring-{index}"), token_ring(), STATE_WORDS * 4)
        .with_parameters(parameters.to_words().to_vec())
        .with_mailbox_capacity(CAPACITY)
        .with_options(LaunchOptions::new().with_preferred_devices([home]));
    fleet.launch(spec).map_err(failed)
}

/// The same messages through a channel of the standard library.
fn through_a_channel(messages: u64) {
    let (to, from) = sync_channel(CAPACITY);
    thread::scope(|scope| {
        scope.spawn(move || {
            let message = Message::new(0, vec![7; 16]);
            for _ in 0..messages {
                let _ = to.send(message.clone()); // the other end takes all
            }
        });
        for received in from {
            std::hint::black_box(received);
        }
    });
}
