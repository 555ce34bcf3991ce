//! What a route costs: its time, and which of two is better.

use std::cmp::Ordering;

use super::CHUNK_BYTES;
use super::links::Hop;

/// What the time of a route depends on. A figure that is not known is not a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub(super) latency_us: f64,
    /// Infinite if no link is crossed.
    pub(super) gb_per_s: f64,
    pub(super) hops: u32,
}

impl Cost {
    /// No links at all.
    pub(super) const NOTHING: Self = Self { latency_us: 0.0, gb_per_s: f64::INFINITY, hops: 0 };

    /// No way; any is better.
    pub(super) const NO_WAY: Self =
        Self { latency_us: f64::INFINITY, gb_per_s: 0.0, hops: u32::MAX };

    /// The cost of one link more.
    pub(super) fn and(&self, hop: &Hop) -> Self {
        Self {
            latency_us: self.latency_us + hop.latency_us,
            gb_per_s: narrower(self.gb_per_s, hop.gb_per_s),
            hops: self.hops + u32::from(hop.hops),
        }
    }

    /// The cost of one way after the other.
    pub(super) fn then(&self, other: &Self) -> Self {
        Self {
            latency_us: self.latency_us + other.latency_us,
            gb_per_s: narrower(self.gb_per_s, other.gb_per_s),
            hops: self.hops + other.hops,
        }
    }

    /// The formula of [`Route`](super::Route); not a number if a figure is unknown.
    pub(super) fn time_us(&self, bytes: u64) -> f64 {
        let further_hops = f64::from(self.hops.saturating_sub(1));
        let bytes_on_narrowest = bytes as f64 + further_hops * bytes.min(CHUNK_BYTES) as f64;
        self.latency_us + bytes_on_narrowest / (1000.0 * self.gb_per_s)
    }

    /// The rule of [`Route::compare`](super::Route::compare).
    pub(super) fn compare(&self, other: &Self, bytes: u64) -> Ordering {
        self.compare_timed(self.time_us(bytes), other, other.time_us(bytes))
    }

    /// The same for those who have the two times at hand.
    pub(super) fn compare_timed(&self, ours_us: f64, other: &Self, theirs_us: f64) -> Ordering {
        let fewer_hops = self.hops.cmp(&other.hops);
        match (ours_us.is_nan(), theirs_us.is_nan()) {
            (false, false) => ours_us.total_cmp(&theirs_us).then(fewer_hops),
            (false, true) => Ordering::Less,
            (true, false) => Ordering::Greater,
            (true, true) => fewer_hops
                .then_with(|| other.known_gb_per_s().total_cmp(&self.known_gb_per_s()))
                // What is not a number comes last in this order.
                .then_with(|| self.latency_us.total_cmp(&other.latency_us)),
        }
    }

    /// Whether the other cost is better for no message size; false if a figure is unknown.
    pub(super) fn is_as_good_as(&self, other: &Self) -> bool {
        self.latency_us <= other.latency_us
            && self.gb_per_s >= other.gb_per_s
            && self.hops <= other.hops
    }

    /// Whether the other cost, whose figures may be unknown, is not worth a choice beside this one.
    pub(super) fn outdoes(&self, other: &Self) -> bool {
        match (self.is_known(), other.is_known()) {
            (true, true) => self.is_as_good_as(other),
            (true, false) => true,
            (false, true) => false,
            (false, false) => self.compare(other, 0).is_le(),
        }
    }

    /// A cost no better than either in anything.
    pub(super) fn or_worse(&self, other: &Self) -> Self {
        Self {
            latency_us: self.latency_us.max(other.latency_us),
            gb_per_s: self.gb_per_s.min(other.gb_per_s),
            hops: self.hops.max(other.hops),
        }
    }

    pub(super) const fn is_no_way(&self) -> bool {
        self.hops == u32::MAX
    }

    pub(super) const fn is_known(&self) -> bool {
        !self.latency_us.is_nan() && !self.gb_per_s.is_nan()
    }

    /// The bandwidth, where one that is not known is worse than any.
    pub(super) const fn known_gb_per_s(&self) -> f64 {
        if self.gb_per_s.is_nan() { 0.0 } else { self.gb_per_s }
    }
}

/// The lesser of two; not a number if either is not.
fn narrower(a: f64, b: f64) -> f64 {
    // `f64::min` would prefer the number.
    if a <= b || a.is_nan() { a } else { b }
}
