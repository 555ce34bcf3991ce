//! How many kernels go into a batch: so many that it takes a bounded time.
//!
//! Whoever waits for a batch waits for all of it: a message for one of its kernels, a transfer behind
//! it in the device's queue, the limit on a step. How long a step takes is known only once it has
//! run, so batches begin small and grow while they are quick.

use std::time::Duration;

/// How long a batch should take at most: short beside any limit on a step, long beside the cost of a
/// submission.
const LONGEST: Duration = Duration::from_millis(50);

/// The pace of one worker.
#[derive(Debug)]
pub(crate) struct Pace {
    most_kernels: usize,
    longest: Duration,
}

impl Pace {
    /// Batches that take a small part of the limit on a step.
    pub(crate) fn new(step_limit: Duration) -> Self {
        Self { most_kernels: 1, longest: LONGEST.min(step_limit / 8) }
    }

    /// Most kernels of the next batch, on a device that takes at most `device_limit`.
    pub(crate) fn most_kernels(&self, device_limit: usize) -> usize {
        self.most_kernels.clamp(1, device_limit.max(1))
    }

    /// Learns from a batch. One that took too long makes the next as small as would have been right;
    /// a full one that took less than half the time makes the next twice as large.
    pub(crate) fn learn(&mut self, kernels: usize, took: Duration) {
        if took > self.longest {
            let fitting = kernels as u128 * self.longest.as_nanos() / took.as_nanos();
            self.most_kernels = usize::try_from(fitting).unwrap_or(usize::MAX).max(1);
        } else if took < self.longest / 2 && kernels >= self.most_kernels {
            self.most_kernels = kernels.saturating_mul(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP_LIMIT: Duration = Duration::from_secs(5);

    /// Runs batches that always have enough kernels, each taking so long a kernel.
    fn settle(pace: &mut Pace, a_kernel: Duration) -> Vec<usize> {
        let batch = |pace: &mut Pace| {
            let kernels = pace.most_kernels(64);
            pace.learn(kernels, a_kernel * u32::try_from(kernels).unwrap());
            kernels
        };
        (0..10).map(|_| batch(pace)).collect()
    }

    #[test]
    fn quick_batches_grow_to_the_device_limit() {
        let mut pace = Pace::new(STEP_LIMIT);
        let sizes = settle(&mut pace, Duration::from_micros(10));
        assert_eq!(sizes, [1, 2, 4, 8, 16, 32, 64, 64, 64, 64]);
    }

    #[test]
    fn batches_stay_within_the_time_and_come_back_to_it() {
        let mut pace = Pace::new(STEP_LIMIT);
        assert_eq!(settle(&mut pace, Duration::from_millis(10)), [1, 2, 4, 4, 4, 4, 4, 4, 4, 4]);
        settle(&mut pace, Duration::from_micros(10));
        let sizes = settle(&mut pace, Duration::from_millis(10));
        assert_eq!(sizes, [64, 5, 5, 5, 5, 5, 5, 5, 5, 5], "one long batch is enough to learn");
    }

    #[test]
    fn a_step_that_is_long_by_itself_runs_alone() {
        let mut pace = Pace::new(STEP_LIMIT);
        assert_eq!(settle(&mut pace, Duration::from_secs(1)), [1; 10]);
    }

    #[test]
    fn batches_that_are_not_full_prove_nothing_about_larger_ones() {
        let mut pace = Pace::new(STEP_LIMIT);
        settle(&mut pace, Duration::from_millis(10));
        pace.learn(1, Duration::from_millis(10));
        assert_eq!(pace.most_kernels(64), 4);
    }

    #[test]
    fn a_short_limit_on_a_step_makes_batches_shorter() {
        let mut pace = Pace::new(Duration::from_millis(80));
        assert_eq!(settle(&mut pace, Duration::from_millis(10)), [1; 10]);
    }
}
