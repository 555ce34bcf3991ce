//! A narrow balanced cut of a large machine, by swaps of two devices.

use super::{Crossing, Cut};

#[cfg(test)]
mod tests;

/// The narrowest cut that swaps reach from three starts: the lower half of the indices against
/// the upper, every second device, and every second pair.
pub(super) fn narrow(crossing: &Crossing) -> Cut {
    let devices = crossing.devices;
    let starts: [fn(usize, usize) -> bool; 3] = [
        |position, devices| position < devices / 2,
        |position, _| position % 2 == 1,
        |position, _| position % 4 >= 2,
    ];
    starts
        .into_iter()
        .map(|start| {
            let mut cut = (0..devices).map(|position| start(position, devices)).collect();
            rebalance(&mut cut);
            improve(crossing, &mut cut);
            cut
        })
        .min_by(|a, b| crossing.gb_per_s(a).total_cmp(&crossing.gb_per_s(b)))
        .expect("there are three starts")
}

/// Moves positions until the sides differ by one at most, with this side the smaller.
fn rebalance(cut: &mut Cut) {
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
fn improve(crossing: &Crossing, cut: &mut Cut) {
    // Each swap lowers the bandwidth; the limit only guards against gains that are rounding.
    for _ in 0..crossing.devices {
        let sums = Sums::new(crossing, cut);
        let now = sums.out.min(sums.back);
        let swaps = positions(cut, true)
            .flat_map(|here| positions(cut, false).map(move |there| (here, there)));
        let best = swaps
            .map(|(here, there)| (sums.after_swap(crossing, here, there), here, there))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        match best {
            Some((after, here, there)) if after < now * (1.0 - 1e-12) => cut.swap(here, there),
            _ => return,
        }
    }
}

fn positions(cut: &[bool], side: bool) -> impl Iterator<Item = usize> + '_ {
    (0..cut.len()).filter(move |&position| cut[position] == side)
}

/// What crosses the cut, and for each position how that changes if it changes sides.
struct Sums {
    out: f64,
    back: f64,
    /// Change of `out` and of `back`, by position.
    moved: Vec<(f64, f64)>,
}

impl Sums {
    fn new(crossing: &Crossing, cut: &[bool]) -> Self {
        let (out, back) = crossing.both_ways(cut);
        let moved = (0..cut.len())
            .map(|position| {
                let (mut out, mut back) = (0.0, 0.0);
                for other in 0..cut.len() {
                    let (to, from) =
                        (crossing.between(position, other), crossing.between(other, position));
                    match (cut[position], cut[other]) {
                        (true, true) => (out, back) = (out + from, back + to),
                        (true, false) => (out, back) = (out - to, back - from),
                        (false, true) => (out, back) = (out - from, back - to),
                        (false, false) => (out, back) = (out + to, back + from),
                    }
                }
                (out, back)
            })
            .collect();
        Self { out, back, moved }
    }

    /// What crosses after `here`, on this side, and `there`, on the other, have changed places.
    fn after_swap(&self, crossing: &Crossing, here: usize, there: usize) -> f64 {
        // Each of the two moves was reckoned as if the other stayed; the links between the pair
        // cross before and after, so what either move took away is put back.
        let (go, come) = (crossing.between(here, there), crossing.between(there, here));
        let pair = go + come;
        let out = self.out + self.moved[here].0 + self.moved[there].0 + pair;
        let back = self.back + self.moved[here].1 + self.moved[there].1 + pair;
        out.min(back)
    }
}
