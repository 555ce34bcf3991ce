//! The narrowest balanced cut of a small machine, by branch and bound.

use super::{Crossing, Cut};

/// The narrowest of all balanced cuts.
pub(super) fn narrowest(crossing: &Crossing) -> Cut {
    // A cut and its complement are the same, so the first device may stay on this side.
    let mut cut = vec![false; crossing.devices];
    cut[0] = true;
    let larger = crossing.devices.div_ceil(2);
    let best_cut = (0..crossing.devices).map(|position| position < larger).collect();
    let mut search = Search { crossing, cut, larger, best: f64::INFINITY, best_cut };
    search.decide(1, 1, 0.0, 0.0);
    search.best_cut
}

struct Search<'a> {
    crossing: &'a Crossing,
    /// Sides of the positions decided so far.
    cut: Cut,
    /// The size that neither side may exceed.
    larger: usize,
    best: f64,
    best_cut: Cut,
}

impl Search<'_> {
    /// Tries both sides for `position`, when `here` positions are on this side and the decided
    /// ones carry `out` and `back`. Both sums only grow, so a branch that is no better already
    /// never will be.
    fn decide(&mut self, position: usize, here: usize, out: f64, back: f64) {
        if out.min(back) >= self.best {
            return;
        }
        if position == self.crossing.devices {
            self.best = out.min(back);
            self.best_cut.clone_from(&self.cut);
            return;
        }
        for side in [true, false] {
            let on_side = if side { here } else { position - here };
            if on_side == self.larger {
                continue;
            }
            let (mut out, mut back) = (out, back);
            for other in (0..position).filter(|&other| self.cut[other] != side) {
                let there = self.crossing.between(position, other);
                let here = self.crossing.between(other, position);
                out += if side { there } else { here };
                back += if side { here } else { there };
            }
            self.cut[position] = side;
            self.decide(position + 1, here + usize::from(side), out, back);
        }
    }
}
