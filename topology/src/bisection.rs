//! Bisection bandwidth: what still crosses when the machine is cut into halves.

use crate::GpuTopology;
use crossing::Crossing;

mod contract;
mod crossing;
mod exact;
mod swap;
mod switches;
#[cfg(test)]
mod tests;

/// Up to this many devices all balanced cuts are considered; beyond it a bound is given.
pub const EXACT_BISECTION_DEVICES: usize = 20;

/// Up to so many switches that are linked to each other, and that no others can stand for, the same.
const EXACT_LINKED_SWITCHES: usize = 32;

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
    /// two directions carries, and switches stand on whichever side lets the least through: that is
    /// the maximum flow from the one side to the other. `None` for fewer than two devices.
    ///
    /// All links count that were set between devices, each as a wire of its own, and all links of
    /// switches. So connections that stand for ways through one bridge are counted too high, and
    /// ways through the host not at all.
    ///
    /// Exact up to [`EXACT_BISECTION_DEVICES`], by branch and bound over at most 2^19 cuts, for
    /// each of which the sides of switches that are linked to each other are found as a minimum cut:
    /// mostly some milliseconds, at worst some seconds. Trees of switches are contracted first; more
    /// than 32 switches that are linked in other ways give a bound, too.
    ///
    /// The bound is from above: the best cut that swaps of two devices reach from a few starts. A
    /// swap costs O(links + n log n) for n devices, and seldom more if many links join the two
    /// sides; there are at most n from each start.
    pub fn bisection_bandwidth_gb_per_s(&self) -> Option<Bisection> {
        let devices: Vec<usize> = self.devices().collect();
        if devices.len() < 2 {
            return None;
        }
        let crossing = Crossing::new(self, &devices);
        let is_exact = devices.len() <= EXACT_BISECTION_DEVICES
            && crossing.linked_switches() <= EXACT_LINKED_SWITCHES;
        let mut cut = swap::narrow(&crossing);
        if is_exact {
            cut = exact::narrowest(&crossing, cut);
        }
        let bound = match (is_exact, crossing.unknown_links) {
            (true, 0) => BisectionBound::Exact,
            (false, 0) => BisectionBound::AtMost,
            (true, _) => BisectionBound::AtLeast,
            (false, _) => BisectionBound::Neither,
        };
        let side = devices.iter().zip(&cut).filter_map(|(&device, &here)| here.then_some(device));
        Some(Bisection {
            gb_per_s: crossing.least(&cut),
            bound,
            side: side.collect(),
            unknown_links: crossing.unknown_links,
        })
    }
}
