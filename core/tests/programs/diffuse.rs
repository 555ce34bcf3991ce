//! `diffuse` in strips against a plain loop over the whole image.

use proptest::prelude::*;

use hopwise_core::programs::diffuse::{
    self, DiffuseError, FROM_ABOVE, FROM_BELOW, PROGRESS, Progress, Settings, Strip, TO_ABOVE,
    TO_BELOW, diffuse_pixel, from_grey, split_rows,
};

use super::interpreter::{Interpreter, Random};

/// An image and how to smooth it.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) grey: Vec<u8>,
    pub(crate) settings: Settings,
}

pub(crate) fn task() -> impl Strategy<Value = Task> {
    let settings = (1..8u32, 1.0..60.0f64, 0.001..=0.25f64);
    (1..12u32, 1..12u32, settings, any::<u64>()).prop_map(|(width, height, settings, seed)| {
        let mut random = Random(seed);
        let grey = (0..width * height).map(|_| random.next().to_le_bytes()[0]).collect();
        let (iterations, contrast, rate) = settings;
        let settings = Settings::new(iterations, contrast, rate).unwrap();
        Task { width, height, grey, settings }
    })
}

/// Kernels for the strips of the task, wired and started.
pub(crate) fn launch(task: &Task, strips: &[Strip], seed: u64) -> Interpreter {
    let mut interpreter = Interpreter::new(seed);
    let program = diffuse::diffuse(task.width).unwrap();
    for strip in strips {
        let bytes = strip.initial_state(&task.grey[strip.pixel_range()]).unwrap();
        assert_eq!(bytes.len() as u64, strip.state_bytes());
        let state = to_words(&bytes);
        interpreter.launch(program.clone(), &strip.parameters(&task.settings), state);
    }
    for index in 1..strips.len() {
        interpreter.wire(index - 1, TO_BELOW, index, FROM_ABOVE);
        interpreter.wire(index, TO_ABOVE, index - 1, FROM_BELOW);
    }
    interpreter
}

fn to_words(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

pub(crate) fn state_bytes(interpreter: &Interpreter, index: usize) -> Vec<u8> {
    interpreter.kernels[index].state.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The image that the strips hold together.
pub(crate) fn result(interpreter: &Interpreter, strips: &[Strip]) -> Vec<u32> {
    let pixels = |(index, strip): (usize, &Strip)| {
        strip.raw_pixels(&state_bytes(interpreter, index)).unwrap()
    };
    strips.iter().enumerate().flat_map(pixels).collect()
}

/// The whole image in one loop; shares nothing with the program but the formula of one pixel.
pub(crate) fn plain_loop(task: &Task) -> Vec<u32> {
    let (width, height) = (task.width as usize, task.height as usize);
    let mut image: Vec<u32> = task.grey.iter().map(|grey| from_grey(*grey)).collect();
    for _ in 0..task.settings.iterations() {
        let before = image.clone();
        for y in 0..height {
            for x in 0..width {
                let at = |x: usize, y: usize| before[y * width + x];
                let north = at(x, if y == 0 { 0 } else { y - 1 });
                let south = at(x, if y == height - 1 { y } else { y + 1 });
                let west = at(if x == 0 { 0 } else { x - 1 }, y);
                let east = at(if x == width - 1 { x } else { x + 1 }, y);
                let coefficients = task.settings.coefficients();
                image[y * width + x] =
                    diffuse_pixel(at(x, y), north, south, west, east, coefficients);
            }
        }
    }
    image
}

fn run(task: &Task, kernels: u32, seed: u64) -> Vec<u32> {
    let strips = Strip::split(task.width, task.height, kernels).unwrap();
    let mut interpreter = launch(task, &strips, seed);
    interpreter.run().unwrap();
    result(&interpreter, &strips)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn strips_equal_the_plain_loop_for_every_cut_and_schedule(
        task in task(),
        kernels in any::<prop::sample::Index>(),
        seeds in any::<[u64; 2]>(),
    ) {
        let kernels = u32::try_from(kernels.index(task.height as usize) + 1).unwrap();
        let strips = Strip::split(task.width, task.height, kernels).unwrap();
        let mut interpreter = launch(&task, &strips, seeds[0]);
        interpreter.run().unwrap();
        prop_assert_eq!(result(&interpreter, &strips), plain_loop(&task));

        let iterations = task.settings.iterations();
        for (index, strip) in strips.iter().enumerate() {
            let kernel = &interpreter.kernels[index];
            prop_assert!(kernel.mailbox.is_empty());
            let reports = kernel.sent[PROGRESS as usize].iter();
            let reports: Vec<_> =
                reports.map(|letter| Progress::from_payload(&letter.payload).unwrap()).collect();
            let finished = reports.iter().map(|progress| progress.iteration);
            prop_assert!(finished.eq(1..=iterations));
            prop_assert!(reports.iter().all(|progress| progress.strip_index == strip.index()));
            prop_assert!(reports.last().unwrap().is_done());
            for (port, has) in [(TO_ABOVE, strip.has_above()), (TO_BELOW, strip.has_below())] {
                let rows = kernel.sent[port as usize].iter().map(|letter| letter.tag);
                let expected = if has { iterations } else { 0 };
                prop_assert!(rows.eq(0..expected));
            }
        }

        // Grouping changes neither a word of state nor a message.
        let mut again = launch(&task, &strips, seeds[1]);
        again.run().unwrap();
        for (one, other) in interpreter.kernels.iter().zip(&again.kernels) {
            prop_assert_eq!(&one.state, &other.state);
            prop_assert_eq!(&one.sent, &other.sent);
        }
    }

    #[test]
    fn a_constant_image_stays_and_no_pixel_leaves_the_range(task in task(), seed in any::<u64>()) {
        let kernels = task.height.min(3);
        let pixels = run(&task, kernels, seed);
        let least = from_grey(*task.grey.iter().min().unwrap());
        let most = from_grey(*task.grey.iter().max().unwrap());
        prop_assert!(pixels.iter().all(|pixel| (least..=most).contains(pixel)));

        let flat = Task { grey: vec![task.grey[0]; task.grey.len()], ..task.clone() };
        prop_assert_eq!(run(&flat, kernels, seed), vec![from_grey(task.grey[0]); task.grey.len()]);
    }

    #[test]
    fn rows_are_split_evenly_and_completely(height in 1..5000u32, strips in 1..5000u32) {
        match split_rows(height, strips) {
            Ok(ranges) => {
                prop_assert!(strips <= height);
                prop_assert_eq!(ranges.len(), strips as usize);
                prop_assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
                prop_assert_eq!((ranges[0].start, ranges[ranges.len() - 1].end), (0, height));
                let lengths = ranges.iter().map(|range| range.end - range.start);
                prop_assert!(lengths.clone().max().unwrap() - lengths.min().unwrap() <= 1);
            }
            Err(error) => {
                prop_assert!(strips > height);
                prop_assert_eq!(error, DiffuseError::Strips { height, strips });
            }
        }
    }
}

fn mean(pixels: &[f64]) -> f64 {
    pixels.iter().sum::<f64>() / f64::from(u32::try_from(pixels.len()).unwrap())
}

fn variance(pixels: &[f64]) -> f64 {
    let mean = mean(pixels);
    self::mean(&pixels.iter().map(|pixel| (pixel - mean).powi(2)).collect::<Vec<_>>())
}

/// The columns of an image from `from` to `to`, in grey levels.
fn columns(pixels: &[u32], width: usize, from: usize, to: usize) -> Vec<f64> {
    let rows = pixels.chunks(width).flat_map(|row| &row[from..to]);
    rows.map(|pixel| f64::from(*pixel) / 256.0).collect()
}

#[test]
fn noise_goes_and_the_edge_stays() {
    let (width, height) = (40, 24);
    let mut random = Random(11);
    let levels = |x: u32| if x < width / 2 { 70 } else { 180 };
    let pixels = (0..height).flat_map(|_| (0..width).map(levels));
    // Noise of -8 to 8 grey levels around a step of 110.
    let noisy = pixels.map(|level| u8::try_from(level + random.below(17) - 8).unwrap()).collect();
    let settings = Settings::new(40, 12.0, 0.2).unwrap();
    let task = Task { width, height, grey: noisy, settings };
    let before: Vec<u32> = task.grey.iter().map(|grey| from_grey(*grey)).collect();
    let after = run(&task, 4, 3);
    for (from, to) in [(0, 20), (20, 40)] {
        let noise = variance(&columns(&before, 40, from, to));
        let left = variance(&columns(&after, 40, from, to));
        assert!(left * 10.0 < noise, "variance {noise} before, {left} after");
    }
    let edge =
        |image: &[u32]| mean(&columns(image, 40, 20, 21)) - mean(&columns(image, 40, 19, 20));
    let (edge_before, edge_after) = (edge(&before), edge(&after));
    assert!(edge_after > 0.9 * edge_before, "edge {edge_before} before, {edge_after} after");
}

#[test]
fn strips_and_states_that_do_not_fit_are_refused() {
    for (width, height) in [(0, 5), (5, 0), (65_537, 5)] {
        let error = Strip::split(width, height, 1).unwrap_err();
        assert!(matches!(error, DiffuseError::ImageSize { .. }), "{error}");
    }
    assert!(matches!(Strip::split(65_536, 16_385, 1), Err(DiffuseError::StripSize { .. })));
    assert_eq!(Strip::split(65_536, 16_385, 2).unwrap().len(), 2);
    let strip = &Strip::split(4, 5, 2).unwrap()[1];
    assert_eq!((strip.rows(), strip.pixel_range()), (2..5, 8..20));
    assert_eq!((strip.index(), strip.has_above(), strip.has_below()), (1, true, false));
    let expected = DiffuseError::PixelCount { expected: 12, given: 11 };
    assert_eq!(strip.initial_state(&[0; 11]), Err(expected));
    let expected = DiffuseError::StateSize { expected: strip.state_bytes(), given: 8 };
    assert_eq!(strip.raw_pixels(&[0; 8]), Err(expected));
    assert_eq!(Progress::from_payload(&[0; 11]), None);
}
