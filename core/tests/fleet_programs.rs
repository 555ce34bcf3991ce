//! The shipped programs on fleets: the same results on every number of devices and workers, with
//! mailboxes of every size.

#[path = "support/fleet_programs.rs"]
mod support;

use hopwise_core::fleet::{Fleet, KernelSpec, MessageTotals};
use hopwise_core::id::KernelId;
use hopwise_core::message::Message;
use hopwise_core::programs::diffuse::{Settings, Strip, diffuse};
use hopwise_core::programs::token_ring::{self, Parameters, token_ring};
use hopwise_core::programs::{counter, diffuse::diffuse_pixel, diffuse::from_grey};
use proptest::prelude::*;
use support::{PATIENCE, host_fleet, within_time, words};

/// Runs the strips of an image; returns the raw pixels.
fn diffuse_on(
    fleet: &Fleet,
    width: u32,
    grey: &[u8],
    strips: u32,
    settings: &Settings,
) -> Vec<u32> {
    let height = u32::try_from(grey.len()).expect("small") / width;
    let strips = Strip::split(width, height, strips).expect("enough rows");
    let program = diffuse(width).expect("a sane width");
    let progress = fleet.endpoint("progress", 4096);
    let kernels: Vec<KernelId> = strips
        .iter()
        .map(|strip| {
            let range = strip.pixel_range();
            let state = strip.initial_state(&grey[range]).expect("the strip's pixels");
            let spec = KernelSpec::new(format!("strip-{}", strip.index()), program.clone(), 0)
                .with_state(state)
                .with_parameters(strip.parameters(settings))
                .with_mailbox_capacity(4);
            fleet.launch(spec).expect("room")
        })
        .collect();
    for pair in kernels.windows(2) {
        fleet.connect(&pair[0], "to_below", &pair[1], "from_above").expect("ports");
        fleet.connect(&pair[1], "to_above", &pair[0], "from_below").expect("ports");
    }
    for kernel in &kernels {
        fleet.connect_endpoint(kernel, "progress", &progress).expect("a port");
    }
    kernels.iter().for_each(|kernel| fleet.start(kernel).expect("it runs"));
    fleet.wait_idle(PATIENCE).expect("nothing hangs");
    while progress.try_recv().is_ok() {}
    let mut raw = Vec::new();
    for (strip, kernel) in strips.iter().zip(&kernels) {
        let state = fleet.read_state(kernel).expect("it runs");
        assert_eq!(strip.iteration(&state).expect("a strip"), settings.iterations());
        raw.extend(strip.raw_pixels(&state).expect("a strip"));
    }
    raw
}

/// The whole image at once, sharing only the formula of one pixel.
fn whole_image(width: usize, grey: &[u8], settings: &Settings) -> Vec<u32> {
    let mut image: Vec<u32> = grey.iter().map(|&value| from_grey(value)).collect();
    let height = image.len() / width;
    let coefficients = settings.coefficients();
    for _ in 0..settings.iterations() {
        let at = |row: usize, column: usize| image[row * width + column];
        let mut next = Vec::with_capacity(image.len());
        for row in 0..height {
            for column in 0..width {
                next.push(diffuse_pixel(
                    at(row, column),
                    at(row.saturating_sub(1), column),
                    at((row + 1).min(height - 1), column),
                    at(row, column.saturating_sub(1)),
                    at(row, (column + 1).min(width - 1)),
                    coefficients,
                ));
            }
        }
        image = next;
    }
    image
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn diffuse_is_the_same_everywhere(
        width in 1u32..9,
        rows in 1u32..12,
        strips in 1u32..12,
        devices in 1usize..4,
        workers in 1usize..4,
        seed in any::<u8>(),
    ) {
        within_time(move || {
            let count = u32::from(u8::MAX).min(width * rows);
            let grey: Vec<u8> = (0..u8::try_from(count).expect("a byte"))
                .map(|index| index.wrapping_mul(37) ^ seed)
                .collect();
            let settings = Settings::new(9, 20.0, 0.2).expect("sane settings");
            let fleet = host_fleet(devices, workers);
            let raw = diffuse_on(&fleet, width, &grey, strips.min(rows), &settings);
            assert_eq!(raw, whole_image(width as usize, &grey, &settings));
            assert!(MessageTotals::of(&fleet.ledgers()).is_clean());
        });
    }

    #[test]
    fn a_counter_adds_up_everywhere(
        values in prop::collection::vec(any::<u64>(), 1..200),
        devices in 1usize..3,
        workers in 1usize..3,
        capacity in 1usize..9,
    ) {
        within_time(move || {
            let fleet = host_fleet(devices, workers);
            let spec = KernelSpec::new("counter", counter(), 16).with_mailbox_capacity(capacity);
            let kernel = fleet.launch(spec).expect("room");
            let totals = fleet.endpoint("totals", values.len());
            fleet.connect_endpoint(&kernel, "total", &totals).expect("a port");
            let sender = fleet.sender("test", &kernel, "add").expect("a port");
            let mut sum = 0u64;
            for value in &values {
                sender.send(Message::new(0, value.to_le_bytes().to_vec())).expect("it runs");
            }
            for value in &values {
                sum = sum.wrapping_add(*value);
                let total = totals.recv_timeout(PATIENCE).expect("one for each");
                assert_eq!(total.message.payload.as_bytes(), sum.to_le_bytes());
            }
        });
    }

    #[test]
    fn a_ring_of_tokens_ends_the_same_everywhere(
        kernels in 1u32..6,
        laps in 1u32..20,
        tokens in 1u32..9,
        devices in 1usize..4,
        workers in 1usize..3,
    ) {
        within_time(move || {
            let run = |devices, workers| {
                let fleet = host_fleet(devices, workers);
                let ring: Vec<KernelId> = (0..kernels)
                    .map(|index| {
                        let parameters = Parameters { kernels, laps, index, tokens };
                        let spec = KernelSpec::new("ring", token_ring(), token_ring::STATE_WORDS * 4);
                        fleet.launch(spec.with_parameters(parameters.to_words().to_vec()))
                            .expect("room")
                    })
                    .collect();
                let done = fleet.endpoint("done", 1024);
                for (kernel, next) in ring.iter().zip(ring.iter().cycle().skip(1)) {
                    fleet.connect(kernel, "next", next, "token").expect("ports");
                    fleet.connect_endpoint(kernel, "done", &done).expect("a port");
                }
                ring.iter().for_each(|kernel| fleet.start(kernel).expect("it runs"));
                fleet.wait_idle(PATIENCE).expect("nothing hangs");
                let mut finished = Vec::new();
                while let Ok(envelope) = done.try_recv() {
                    finished.push(envelope.message.payload.to_words());
                }
                finished.sort();
                assert!(MessageTotals::of(&fleet.ledgers()).is_clean());
                finished
            };
            let finished = run(devices, workers);
            assert_eq!(finished.len(), (kernels * tokens) as usize);
            assert_eq!(finished, run(1, 1));
        });
    }
}

#[test]
fn a_step_leaves_the_words_behind_a_counters_state_alone() {
    within_time(|| {
        let fleet = host_fleet(1, 1);
        let spec = KernelSpec::new("counter", counter(), 0).with_state([[0; 16], [7; 16]].concat());
        let kernel = fleet.launch(spec).unwrap();
        let sender = fleet.sender("test", &kernel, "add").unwrap();
        sender.send(Message::from_words(0, &[5, 0])).unwrap();
        fleet.wait_idle(PATIENCE).unwrap();
        let state = fleet.read_state(&kernel).unwrap();
        assert_eq!(words(&state)[..2], [5, 0]);
        assert_eq!(state[16..], [7; 16]);
        let (dead, _) = fleet.dead_letters();
        assert_eq!(dead, 1, "the total went to nobody, and is counted");
    });
}
