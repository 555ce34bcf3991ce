//! Bisection bandwidth: what still crosses when the machine is cut into halves.

use crate::GpuTopology;

mod exact;
mod swap;
#[cfg(test)]
mod tests;

/// Up to this many devices all balanced cuts are considered; beyond it a bound is given.
pub const EXACT_BISECTION_DEVICES: usize = 20;

/// The narrowest balanced cut that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Bisection {
    /// GB/s in one direction, the lesser of the two. Links of unknown bandwidth count nothing.
    pub gb_per_s: f64,
    /// How this relates to the true figure.
    pub bound: BisectionBound,
    /// The devices on one side of the cut, in ascending order.
    pub side: Vec<usize>,
    /// How many links of the whole topology have an unknown bandwidth.
    pub unknown_links: usize,
}

/// How a computed bisection bandwidth relates to the true one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BisectionBound {
    /// It is the minimum over all balanced cuts.
    Exact,
    /// The true figure is at most this: not all cuts were considered.
    AtMost,
    /// The true figure is at least this: some bandwidths are unknown.
    AtLeast,
    /// No statement: some bandwidths are unknown, and not all cuts were considered.
    Neither,
}

impl GpuTopology {
    /// The bisection bandwidth: over all cuts of the devices into two sides whose sizes differ by
    /// at most one, the least bandwidth that crosses the cut. A cut carries what the weaker of its
    /// two directions carries. `None` for fewer than two devices.
    ///
    /// All direct links count, each as a wire of its own; so links that share a switch or a
    /// bridge are counted too high, and ways through the host not at all.
    ///
    /// Exact up to [`EXACT_BISECTION_DEVICES`], by branch and bound over at most 2^19 cuts. Beyond
    /// it an upper bound: the best cut that swaps of two devices reach from a few starts,
    /// O(devices^3) at worst.
    pub fn bisection_bandwidth_gb_per_s(&self) -> Option<Bisection> {
        let devices: Vec<usize> = self.devices().collect();
        if devices.len() < 2 {
            return None;
        }
        let crossing = Crossing::new(self, &devices);
        let is_exact = devices.len() <= EXACT_BISECTION_DEVICES;
        let cut = if is_exact { exact::narrowest(&crossing) } else { swap::narrow(&crossing) };
        let bound = match (is_exact, crossing.unknown_links) {
            (true, 0) => BisectionBound::Exact,
            (false, 0) => BisectionBound::AtMost,
            (true, _) => BisectionBound::AtLeast,
            (false, _) => BisectionBound::Neither,
        };
        let side = devices.iter().zip(&cut).filter_map(|(&device, &here)| here.then_some(device));
        Some(Bisection {
            gb_per_s: crossing.gb_per_s(&cut),
            bound,
            side: side.collect(),
            unknown_links: crossing.unknown_links,
        })
    }
}

/// Bandwidths by position, and what a cut of them carries.
struct Crossing {
    devices: usize,
    /// GB/s from position to position, row by row; 0 where there is no link or no figure.
    bandwidth: Vec<f64>,
    unknown_links: usize,
}

/// For each position, whether it is on this side of the cut.
type Cut = Vec<bool>;

impl Crossing {
    fn new(topology: &GpuTopology, devices: &[usize]) -> Self {
        let position = |device| devices.binary_search(&device).expect("links join known devices");
        let mut bandwidth = vec![0.0; devices.len() * devices.len()];
        let mut unknown_links = 0;
        for link in topology.connections() {
            match link.bandwidth.value() {
                Some(value) => {
                    bandwidth[position(link.from) * devices.len() + position(link.to)] = value;
                }
                None => unknown_links += 1,
            }
        }
        Self { devices: devices.len(), bandwidth, unknown_links }
    }

    fn between(&self, from: usize, to: usize) -> f64 {
        self.bandwidth[from * self.devices + to]
    }

    /// What the cut carries in its weaker direction.
    fn gb_per_s(&self, cut: &[bool]) -> f64 {
        let (out, back) = self.both_ways(cut);
        out.min(back)
    }

    /// What the cut carries out of this side, and back into it.
    fn both_ways(&self, cut: &[bool]) -> (f64, f64) {
        let (mut out, mut back) = (0.0, 0.0);
        for from in 0..self.devices {
            for to in 0..self.devices {
                match (cut[from], cut[to]) {
                    (true, false) => out += self.between(from, to),
                    (false, true) => back += self.between(from, to),
                    _ => {}
                }
            }
        }
        (out, back)
    }
}
