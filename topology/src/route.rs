//! Routes: the links that a transfer crosses, and how long it takes.

use std::cmp::Ordering;
use std::fmt;

use crate::Quality;
use crate::figure::marked;

pub use table::RouteTable;

mod search;
mod table;
#[cfg(test)]
mod tests;

/// A transfer over several links goes in chunks of this size, so that all links work at once.
///
/// Large enough to use a link fully, small enough that the wait for the first chunk hardly shows
/// in a transfer of some megabytes.
pub const CHUNK_BYTES: u64 = 256 * 1024;

/// A way from one device to another, with its figures.
///
/// The time of `b` bytes is that of chunks in a pipeline: the latencies of the links add, the
/// narrowest link limits, and each hop after the first costs one more chunk on that link.
///
/// ```text
///   time_us(b) = latency_us + (b + (hops - 1) * min(b, CHUNK_BYTES)) / (1000 * bandwidth_gb_per_s)
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Route {
    /// The devices that the bytes pass, both ends included. The host is not listed.
    pub path: Vec<usize>,
    /// How the bytes travel.
    pub kind: RouteKind,
    /// Sum of the links' latencies in microseconds; `None` if one is unknown.
    pub latency_us: Option<f64>,
    /// Bandwidth of the narrowest link in GB/s (10^9 bytes per second); `None` if one is unknown,
    /// or if there is no link at all.
    pub bandwidth_gb_per_s: Option<f64>,
    /// The worst quality among the links' figures; `Measured` if no link is crossed.
    pub quality: Quality,
}

/// How the bytes of a route travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RouteKind {
    /// They stay where they are.
    SameDevice,
    /// Over one link from memory to memory.
    Direct,
    /// Over several such links, through other devices.
    MultiHop,
    /// Into host memory, and out of it again.
    HostMediated,
}

impl Route {
    fn same_device(device: usize) -> Self {
        Self {
            path: vec![device],
            kind: RouteKind::SameDevice,
            latency_us: Some(0.0),
            bandwidth_gb_per_s: None,
            quality: Quality::Measured,
        }
    }

    /// How many links the bytes cross. Through the host it is two.
    pub fn hops(&self) -> usize {
        match self.kind {
            RouteKind::HostMediated => 2,
            _ => self.path.len() - 1,
        }
    }

    /// The devices between the two ends.
    pub fn relays(&self) -> &[usize] {
        self.path.get(1..self.path.len() - 1).unwrap_or_default()
    }

    /// The expected time of `bytes` in microseconds by the formula of [`Route`]; zero on the same
    /// device, `None` if a figure of the route is unknown.
    pub fn time_us(&self, bytes: u64) -> Option<f64> {
        if self.kind == RouteKind::SameDevice {
            return Some(0.0);
        }
        let (latency_us, bandwidth) = (self.latency_us?, self.bandwidth_gb_per_s?);
        let further_hops = (self.hops() - 1) as f64;
        let bytes_on_narrowest = bytes as f64 + further_hops * bytes.min(CHUNK_BYTES) as f64;
        Some(latency_us + bytes_on_narrowest / (1000.0 * bandwidth))
    }

    /// `Less` if this route is the better one for `bytes`.
    ///
    /// The lesser time is better, and then fewer hops. A route whose time is unknown is worse than
    /// any whose time is known. Between two of those, fewer hops are better, then the greater
    /// bandwidth, then the lesser latency, where an unknown figure is worse than a known one.
    pub fn compare(&self, other: &Self, bytes: u64) -> Ordering {
        let fewer_hops = self.hops().cmp(&other.hops());
        match (self.time_us(bytes), other.time_us(bytes)) {
            (Some(ours), Some(theirs)) => ours.total_cmp(&theirs).then(fewer_hops),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => fewer_hops
                .then_with(|| {
                    let figure = |route: &Self| route.bandwidth_gb_per_s.unwrap_or(0.0);
                    figure(other).total_cmp(&figure(self))
                })
                .then_with(|| {
                    let figure = |route: &Self| route.latency_us.unwrap_or(f64::INFINITY);
                    figure(self).total_cmp(&figure(other))
                }),
        }
    }
}

/// One line: `0 -> 3 -> 2, multi-hop, ~300 GB/s, ~6.8 us`.
impl fmt::Display for Route {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path: Vec<_> = self.path.iter().map(usize::to_string).collect();
        let through = if self.kind == RouteKind::HostMediated { " -> host -> " } else { " -> " };
        write!(formatter, "{}, {}", path.join(through), self.kind)?;
        if self.kind == RouteKind::SameDevice {
            return Ok(());
        }
        // One figure of a route may be known although the other, and so the whole, is not.
        let quality = self.quality.max(Quality::Estimated);
        let (bandwidth, latency) =
            (marked(self.bandwidth_gb_per_s, quality), marked(self.latency_us, quality));
        write!(formatter, ", {bandwidth} GB/s, {latency} us")
    }
}

/// The kind in words: `same device`, `direct`, `multi-hop`, `host-mediated`.
impl fmt::Display for RouteKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::SameDevice => "same device",
            Self::Direct => "direct",
            Self::MultiHop => "multi-hop",
            Self::HostMediated => "host-mediated",
        })
    }
}
