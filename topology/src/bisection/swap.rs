//! A narrow balanced cut, by swaps of two devices (Kernighan and Lin 1970, one swap at a time).
//!
//! While devices are swapped the switches stay where they are; then each goes where it lets the
//! least through, and swapping begins again.

use std::collections::BinaryHeap;

use super::crossing::Crossing;

#[cfg(test)]
mod tests;

/// A gain below this share of what crosses is rounding.
const ROUNDING: f64 = 1e-12;

/// The narrowest cut of the devices that swaps reach from five starts: the lower half of the indices
/// against the upper, every second device, every second pair, and what is joined most widely to
/// the first device and to the last.
pub(super) fn narrow(crossing: &Crossing) -> Vec<bool> {
    let devices = crossing.devices;
    let by_position: [fn(usize, usize) -> bool; 3] = [
        |position, devices| position < devices / 2,
        |position, _| position % 2 == 1,
        |position, _| position % 4 >= 2,
    ];
    let numbered =
        by_position.map(|start| (0..devices).map(|position| start(position, devices)).collect());
    let grown = [grown_from(crossing, 0), grown_from(crossing, devices - 1)];
    numbered
        .into_iter()
        .chain(grown)
        .map(|mut cut| {
            rebalance(&mut cut);
            let cut = improve(crossing, cut);
            (crossing.least(&cut), cut)
        })
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, cut)| cut)
        .expect("there are five starts")
}

/// Half of the devices, gathered from one on over the widest link that leads on.
fn grown_from(crossing: &Crossing, first: usize) -> Vec<bool> {
    let half = crossing.devices / 2;
    let mut cut = vec![false; crossing.wires.len()];
    let mut gathered = 0;
    // Bandwidths that are not negative are in the order of their bits; of equals the lowest number.
    let mut reach = BinaryHeap::from([(0, usize::MAX - first)]);
    while gathered < half
        && let Some((_, number)) = reach.pop()
    {
        let position = usize::MAX - number;
        if cut[position] {
            continue;
        }
        cut[position] = true;
        gathered += usize::from(position < crossing.devices);
        let onward = crossing.wires[position].iter().filter(|wire| !cut[wire.other]);
        reach
            .extend(onward.map(|wire| ((wire.out + wire.back).to_bits(), usize::MAX - wire.other)));
    }
    cut.truncate(crossing.devices);
    cut
}

/// Moves positions until the sides differ by one at most, with this side the smaller.
fn rebalance(cut: &mut [bool]) {
    let half = cut.len() / 2;
    let mut here = cut.iter().filter(|&&side| side).count();
    for side in cut.iter_mut() {
        if *side && here > half {
            *side = false;
            here -= 1;
        } else if !*side && here < half {
            *side = true;
            here += 1;
        }
    }
}

/// Makes the best swap again and again, until none gains anything.
fn improve(crossing: &Crossing, devices: Vec<bool>) -> Vec<bool> {
    let mut cut = crossing.with_switches(&devices);
    // Each swap lowers the bandwidth; the limit only guards against gains that are rounding.
    for _ in 0..crossing.devices {
        let sums = Sums::new(crossing, &cut);
        let now = sums.out.min(sums.back);
        let is_gain = |after: f64| after < now * (1.0 - ROUNDING);
        match sums.best_swap(crossing, &cut) {
            Some((after, here, there)) if is_gain(after) => cut.swap(here, there),
            _ => {
                let moved = crossing.with_switches(&cut[..crossing.devices]);
                let (out, back) = crossing.both_ways(&moved);
                if !is_gain(out.min(back)) {
                    break;
                }
                cut = moved;
            }
        }
    }
    cut.truncate(crossing.devices);
    cut
}

/// What crosses the cut, and for each device how that changes if it changes sides.
struct Sums {
    out: f64,
    back: f64,
    /// Change of `out` and of `back`, by device.
    moved: Vec<(f64, f64)>,
}

impl Sums {
    fn new(crossing: &Crossing, cut: &[bool]) -> Self {
        let (out, back) = crossing.both_ways(cut);
        let change = |position: usize| {
            let (mut out, mut back) = (0.0, 0.0);
            for wire in &crossing.wires[position] {
                match (cut[position], cut[wire.other]) {
                    (true, true) => (out, back) = (out + wire.back, back + wire.out),
                    (true, false) => (out, back) = (out - wire.out, back - wire.back),
                    (false, true) => (out, back) = (out - wire.back, back - wire.out),
                    (false, false) => (out, back) = (out + wire.out, back + wire.back),
                }
            }
            (out, back)
        };
        Self { out, back, moved: (0..crossing.devices).map(change).collect() }
    }

    /// The swap of a device on this side and one on the other after which the least crosses in the
    /// weaker direction, with what crosses then.
    fn best_swap(&self, crossing: &Crossing, cut: &[bool]) -> Option<(f64, usize, usize)> {
        let out = self.best_swap_for(crossing, cut, self.out, |moved| moved.0);
        let back = self.best_swap_for(crossing, cut, self.back, |moved| moved.1);
        out.into_iter().chain(back).min_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// The same for one direction, in which `now` crosses.
    fn best_swap_for(
        &self,
        crossing: &Crossing,
        cut: &[bool],
        now: f64,
        way: fn(&(f64, f64)) -> f64,
    ) -> Option<(f64, usize, usize)> {
        let sorted = |side: bool| {
            let on_side = (0..crossing.devices).filter(|&device| cut[device] == side);
            let mut moves: Vec<_> =
                on_side.map(|device| (way(&self.moved[device]), device)).collect();
            moves.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            moves
        };
        let (from_here, from_there) = (sorted(true), sorted(false));
        let mut best: Option<(f64, usize, usize)> = None;
        for &(here_moves, here) in &from_here {
            for &(there_moves, there) in &from_there {
                // The links between a pair cross before and after the swap. What either move took
                // away, reckoned as if the other stayed, is put back; so a swap only gets worse.
                let at_best = now + here_moves + there_moves;
                if best.is_some_and(|(least, ..)| at_best >= least) {
                    break;
                }
                let after = at_best + crossing.between(here, there);
                if best.is_none_or(|(least, ..)| after < least) {
                    best = Some((after, here, there));
                }
            }
        }
        best
    }
}
