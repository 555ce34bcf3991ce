//! Fewer switches that carry the same across every cut of the devices.
//!
//! A switch stands on the side where it lets the least through, so two rules leave the result as it
//! is (the second is one of Padberg and Rinaldi, 1990):
//!
//! - Switches with the same links to the same ends, as the spines of a network, have a best side in
//!   common. They become one.
//! - A switch whose link to one end carries no less than all its other links together, each
//!   direction against the other, may as well stand where that end does. It becomes part of it.

use std::collections::{HashMap, HashSet};

use super::crossing::{Crossing, Wire};

/// Applies both rules until they change nothing. Costs O(links log links) a round, of which a tree
/// takes one for each of its layers.
pub(super) fn contract(crossing: &mut Crossing) {
    loop {
        let mut joined = Joined::new(crossing.wires.len());
        join_twins(crossing, &mut joined);
        if !joined.any {
            join_hangers(crossing, &mut joined);
        }
        if !joined.any {
            return;
        }
        joined.apply(crossing);
    }
}

fn join_twins(crossing: &Crossing, joined: &mut Joined) {
    let mut first_of = HashMap::new();
    for position in crossing.devices..crossing.wires.len() {
        let bits = |wire: &Wire| (wire.other, wire.out.to_bits(), wire.back.to_bits());
        let key: Vec<_> = crossing.wires[position].iter().map(bits).collect();
        let first = *first_of.entry(key).or_insert(position);
        if first != position {
            joined.join(position, first);
        }
    }
}

fn join_hangers(crossing: &Crossing, joined: &mut Joined) {
    // What holds of a switch before others become part of it need not hold afterwards.
    let mut grown = HashSet::new();
    for position in crossing.devices..crossing.wires.len() {
        let wires = &crossing.wires[position];
        let out: f64 = wires.iter().map(|wire| wire.out).sum();
        let back: f64 = wires.iter().map(|wire| wire.back).sum();
        let outweighs = |wire: &&Wire| {
            let others = |total: f64, own: f64| if wires.len() > 1 { total - own } else { 0.0 };
            wire.out >= others(back, wire.back) && wire.back >= others(out, wire.out)
        };
        let holder = wires.iter().find(outweighs).filter(|_| !grown.contains(&position));
        if let Some(wire) = holder {
            grown.insert(wire.other);
            joined.join(position, wire.other);
        }
    }
}

/// What becomes one in a round.
struct Joined {
    /// By position: another one that it becomes part of, or itself.
    into: Vec<usize>,
    any: bool,
}

impl Joined {
    fn new(positions: usize) -> Self {
        Self { into: (0..positions).collect(), any: false }
    }

    fn join(&mut self, switch: usize, other: usize) {
        self.into[switch] = other;
        self.any = true;
    }

    /// Where a position ends up. Each step leads to what was joined to nothing before, so there is
    /// no way round.
    fn root(&self, mut position: usize) -> usize {
        while self.into[position] != position {
            position = self.into[position];
        }
        position
    }

    /// Joins them, and numbers what is left anew: devices keep their positions.
    fn apply(&self, crossing: &mut Crossing) {
        let mut number = vec![0; self.into.len()];
        let mut count = 0;
        for position in (0..number.len()).filter(|&position| self.into[position] == position) {
            number[position] = count;
            count += 1;
        }
        let new_position = |position| number[self.root(position)];
        let mut wires = vec![Vec::new(); count];
        for (position, old) in crossing.wires.iter().enumerate() {
            let here = new_position(position);
            let moved = old.iter().map(|wire| Wire { other: new_position(wire.other), ..*wire });
            wires[here].extend(moved.filter(|wire| wire.other != here));
        }
        crossing.wires = wires;
        crossing.merge_wires();
    }
}
