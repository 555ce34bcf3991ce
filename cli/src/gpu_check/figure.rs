//! A figure: the median of several runs, beside its limit where there is one.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Something that was measured. All figures are times; rates are how many things fit into them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Figure {
    /// What was done.
    pub(super) what: String,
    /// The devices, by their numbers, such as `0` or `0 -> 1`.
    pub(super) on: String,
    pub(super) quantity: Quantity,
    pub(super) ours: Times,
    /// What it could at best be as quick as, measured in the same run.
    pub(super) limit: Option<Limit>,
}

/// What was done in the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Quantity {
    /// The time itself is told.
    Time,
    /// So many steps.
    Steps(u64),
    /// So many messages.
    Messages(u64),
    /// So many bytes.
    Bytes(u64),
}

/// The times of several runs, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Times {
    pub(super) median_us: f64,
    pub(super) lowest_us: f64,
    pub(super) highest_us: f64,
    pub(super) runs: usize,
}

/// What a figure is compared with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Limit {
    pub(super) what: String,
    pub(super) times: Times,
}

impl Times {
    /// From the times of runs; `None` where there was none.
    pub(super) fn of(mut runs_us: Vec<f64>) -> Option<Self> {
        runs_us.sort_by(f64::total_cmp);
        let (lowest_us, highest_us) = (*runs_us.first()?, *runs_us.last()?);
        let (runs, middle) = (runs_us.len(), runs_us.len() / 2);
        let upper = runs_us[middle];
        let median_us =
            if runs % 2 == 1 { upper } else { f64::midpoint(runs_us[middle - 1], upper) };
        Some(Self { median_us, lowest_us, highest_us, runs })
    }

    /// Runs `work` once to warm up, then so many times, at least once.
    pub(super) fn measure<E>(
        runs: usize,
        mut work: impl FnMut() -> Result<(), E>,
    ) -> Result<Self, E> {
        work()?;
        let mut times = Vec::new();
        for _ in 0..runs.max(1) {
            let begun = Instant::now();
            work()?;
            times.push(micros(begun.elapsed()));
        }
        Ok(Self::of(times).expect("there was a run"))
    }
}

/// A time in microseconds.
pub(super) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

impl Figure {
    /// Our time divided by the limit's.
    pub(super) fn ratio(&self) -> Option<f64> {
        self.limit.as_ref().map(|limit| self.ours.median_us / limit.times.median_us)
    }

    /// What, where, ours, the limit, the ratio.
    pub(super) fn cells(&self) -> [String; 5] {
        let limit = self.limit.as_ref().map_or_else(
            || "-".to_owned(),
            |Limit { what, times }| format!("{}: {what}", self.quantity.told(times.median_us)),
        );
        let Times { lowest_us, median_us, highest_us, .. } = self.ours;
        let spread = format!("{} to {}", time(lowest_us), time(highest_us));
        let ours = match self.quantity {
            Quantity::Time => format!("{} ({spread})", time(median_us)),
            quantity => format!("{} ({}, {spread})", quantity.told(median_us), time(median_us)),
        };
        let ratio = self.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
        [self.what.clone(), self.on.clone(), ours, limit, ratio]
    }
}

impl Quantity {
    /// A time, or the rate that it makes.
    fn told(self, time_us: f64) -> String {
        match self {
            Self::Time => time(time_us),
            Self::Steps(steps) => format!("{} steps/s", rate(steps, time_us)),
            Self::Messages(messages) => format!("{} messages/s", rate(messages, time_us)),
            Self::Bytes(bytes) => format!("{:.2} GB/s", per_us(bytes, time_us) / 1e3),
        }
    }
}

fn per_us(count: u64, time_us: f64) -> f64 {
    u32::try_from(count >> 10).map_or(f64::INFINITY, |kilo| {
        let rest = u32::try_from(count & 1023).unwrap_or(0);
        (f64::from(kilo) * 1024.0 + f64::from(rest)) / time_us
    })
}

/// Things in a second, in whole ones with commas.
fn rate(count: u64, time_us: f64) -> String {
    let digits = format!("{:.0}", per_us(count, time_us) * 1e6);
    let mut text = String::new();
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time with a unit in which it has few digits.
fn time(micros: f64) -> String {
    match micros {
        _ if micros < 1e4 => format!("{micros:.1} us"),
        _ if micros < 1e7 => format!("{:.1} ms", micros / 1e3),
        _ => format!("{:.1} s", micros / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        let median = |runs: &[f64]| Times::of(runs.to_vec()).map(|times| times.median_us);
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[9.0, 1.0, 2.0, 4.0]), Some(3.0));
        assert_eq!(median(&[]), None);
        let times = Times::of(vec![3.0, 1.0]).unwrap();
        assert_eq!((times.lowest_us, times.highest_us, times.runs), (1.0, 3.0, 2));
    }

    #[test]
    fn a_figure_tells_its_rate_and_stands_beside_its_limit() {
        let times = |time_us: f64| Times::of(vec![time_us]).unwrap();
        let limit = Limit { what: "a raw copy".to_owned(), times: times(500.0) };
        let figure = Figure {
            what: "read".to_owned(),
            on: "0".to_owned(),
            quantity: Quantity::Bytes(2_000_000),
            ours: times(1000.0),
            limit: Some(limit),
        };
        assert_eq!(figure.ratio(), Some(2.0));
        let [_, _, ours, limit, ratio] = figure.cells();
        assert!(ours.starts_with("2.00 GB/s (1000.0 us"), "{ours}");
        assert_eq!((limit.as_str(), ratio.as_str()), ("4.00 GB/s: a raw copy", "2.00"));
        let alone = Figure { limit: None, quantity: Quantity::Steps(1_234_567), ..figure };
        assert!(alone.cells()[2].starts_with("1,234,567,000 steps/s"), "{:?}", alone.cells());
        assert_eq!(alone.cells()[4], "-");
    }
}
