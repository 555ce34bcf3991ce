//! Routes: the links that a transfer crosses, and how long it takes.

use std::cmp::Ordering;
use std::fmt;

use crate::figure::marked;
use crate::{End, Quality};
use cost::Cost;

pub use shared::{SharedLink, shared_links};
pub use table::RouteTable;
pub use view::RouteRef;

mod table;
mod view;

mod disjoint;
mod shared;

mod host;
mod links;
mod positions;
mod search;
mod store;

mod cost;
mod label;
mod lists;
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
/// narrowest link limits, and each hop after the first costs one more chunk on that link. A switch
/// passes bytes on as they come: its links add their latencies, but it makes no hop.
///
/// ```text
///   time_us(b) = latency_us + (b + (hops - 1) * min(b, CHUNK_BYTES)) / (1000 * bandwidth_gb_per_s)
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Route {
    /// The devices that the bytes pass, both ends included. Neither the host nor switches are
    /// listed; [`links`](Self::links) tells of switches.
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
    /// The devices of `path` with the switches between them.
    stops: Vec<End>,
}

/// How the bytes of a route travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RouteKind {
    /// They stay where they are.
    SameDevice,
    /// From memory to memory over one link, or over several that only switches join.
    Direct,
    /// From memory to memory through other devices.
    MultiHop,
    /// Into host memory, and out of it again.
    HostMediated,
}

impl Route {
    /// How many links the bytes cross, where links in a row that only switches join count as one.
    /// Through the host it is two.
    pub fn hops(&self) -> usize {
        match self.kind {
            RouteKind::HostMediated => 2,
            _ => self.path.len() - 1,
        }
    }

    /// The links that the bytes cross, in order: from what to what. None on the same device, and
    /// none through the host, whose links are those of the two devices to it.
    pub fn links(&self) -> Vec<(End, End)> {
        links_of(self.kind, &self.stops)
    }

    /// The devices between the two ends.
    pub fn relays(&self) -> &[usize] {
        self.path.get(1..self.path.len() - 1).unwrap_or_default()
    }

    /// The expected time of `bytes` in microseconds by the formula of [`Route`]; zero on the same
    /// device, `None` if a figure of the route is unknown.
    pub fn time_us(&self, bytes: u64) -> Option<f64> {
        known(self.cost().time_us(bytes))
    }

    /// `Less` if this route is the better one for `bytes`.
    ///
    /// The lesser time is better, and then fewer hops. A route whose time is unknown is worse than
    /// any whose time is known. Between two of those, fewer hops are better, then the greater
    /// bandwidth, then the lesser latency, where an unknown figure is worse than a known one.
    pub fn compare(&self, other: &Self, bytes: u64) -> Ordering {
        self.cost().compare(&other.cost(), bytes)
    }

    fn cost(&self) -> Cost {
        // A device that had more hops than 32 bits count would have more links than memory holds.
        let hops = u32::try_from(self.hops()).unwrap_or(u32::MAX);
        cost_of(self.kind, hops, self.latency_us, self.bandwidth_gb_per_s)
    }
}

fn cost_of(
    kind: RouteKind,
    hops: u32,
    latency_us: Option<f64>,
    bandwidth_gb_per_s: Option<f64>,
) -> Cost {
    if kind == RouteKind::SameDevice {
        return Cost::NOTHING;
    }
    let figure = |known: Option<f64>| known.unwrap_or(f64::NAN);
    Cost { latency_us: figure(latency_us), gb_per_s: figure(bandwidth_gb_per_s), hops }
}

/// A figure of a cost, if there is one.
fn known(figure: f64) -> Option<f64> {
    Some(figure).filter(|figure| figure.is_finite())
}

/// The kind of a route over links.
const fn kind_of(hops: u32) -> RouteKind {
    if hops > 1 { RouteKind::MultiHop } else { RouteKind::Direct }
}

/// The links between stops in a row, if the bytes travel over links.
fn links_of(kind: RouteKind, stops: &[End]) -> Vec<(End, End)> {
    match kind {
        RouteKind::Direct | RouteKind::MultiHop => {
            stops.windows(2).map(|pair| (pair[0], pair[1])).collect()
        }
        RouteKind::SameDevice | RouteKind::HostMediated => Vec::new(),
    }
}

/// The devices among the stops.
fn devices_of(stops: &[End]) -> Vec<usize> {
    let device = |end: &End| match end {
        End::Device(index) => Some(*index),
        End::Switch(_) => None,
    };
    stops.iter().filter_map(device).collect()
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
