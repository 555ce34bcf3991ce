//! The narrowest balanced cut of a small machine, by branch and bound.
//!
//! Devices are put on a side one by one. What crosses between those that are placed only grows, and
//! what the switches will carry is at least their minimum cut with the ports of the placed devices
//! and, since the sides end balanced, the narrowest ports of so many others as must still come. A
//! branch that is no better already than the best cut is left.

use super::crossing::Crossing;
use super::switches::SwitchNetwork;

/// The narrowest of all balanced cuts of the devices, or `known` if none is narrower.
pub(super) fn narrowest(crossing: &Crossing, known: Vec<bool>) -> Vec<bool> {
    let devices = crossing.devices;
    let ports = Ports::new(crossing);
    let mut search = Search {
        crossing,
        switches: SwitchNetwork::new(crossing),
        into: vec![0.0; crossing.switches()],
        out_of: vec![0.0; crossing.switches()],
        sums: vec![Sums::new(crossing.switches()); devices + 1],
        ports,
        cut: vec![false; devices],
        best: crossing.least(&known),
        best_cut: known,
    };
    // A cut and its complement are the same, so the first device may stay on this side.
    search.place(0, true);
    search.decide(1, 1, 0.0, 0.0);
    search.best_cut
}

struct Search<'a> {
    crossing: &'a Crossing,
    switches: SwitchNetwork,
    /// What devices on the one side give the switches, and what those on the other take.
    into: Vec<f64>,
    out_of: Vec<f64>,
    /// By the number of devices placed.
    sums: Vec<Sums>,
    ports: Ports,
    /// Sides of the devices placed so far.
    cut: Vec<bool>,
    best: f64,
    best_cut: Vec<bool>,
}

/// By side, of which the second is this one, and switch: GB/s of the placed devices to it, and from
/// it.
#[derive(Clone)]
struct Sums {
    up: [Vec<f64>; 2],
    down: [Vec<f64>; 2],
}

impl Sums {
    fn new(switches: usize) -> Self {
        let zeros = || [vec![0.0; switches], vec![0.0; switches]];
        Self { up: zeros(), down: zeros() }
    }
}

impl Search<'_> {
    /// Tries both sides for `device`, when `here` of those before it are on this side, and `out` and
    /// `back` cross between them without a switch.
    fn decide(&mut self, device: usize, here: usize, out: f64, back: f64) {
        let least = self.at_least(device, here, out, back);
        if least >= self.best {
            return;
        }
        let devices = self.crossing.devices;
        if device == devices {
            self.best = least;
            self.best_cut.clone_from(&self.cut);
            return;
        }
        for side in [true, false] {
            let on_side = if side { here } else { device - here };
            if on_side == devices.div_ceil(2) {
                continue;
            }
            let (mut out, mut back) = (out, back);
            let placed = self.crossing.wires[device].iter().take_while(|wire| wire.other < device);
            for wire in placed.filter(|wire| self.cut[wire.other] != side) {
                out += if side { wire.out } else { wire.back };
                back += if side { wire.back } else { wire.out };
            }
            self.place(device, side);
            self.decide(device + 1, here + usize::from(side), out, back);
        }
    }

    /// Puts a device on a side, after all those before it.
    fn place(&mut self, device: usize, side: bool) {
        self.cut[device] = side;
        let (before, after) = self.sums.split_at_mut(device + 1);
        let (before, after) = (&before[device], &mut after[0]);
        after.clone_from(before);
        for (switch, port) in self.ports.of(device).iter().enumerate() {
            after.up[usize::from(side)][switch] += port.up;
            after.down[usize::from(side)][switch] += port.down;
        }
    }

    /// No balanced cut carries less in its weaker direction that has the first `placed` devices on
    /// their present sides. If all are placed, it is what the cut carries; before that one direction
    /// is enough to know that the branch may hold a better cut.
    fn at_least(&mut self, placed: usize, here: usize, out: f64, back: f64) -> f64 {
        let (devices, switches) = (self.crossing.devices, self.crossing.switches());
        let missing = [placed - here, here].map(|placed| (devices / 2).saturating_sub(placed));
        let mut least = f64::INFINITY;
        for (direct, from, to) in [(out, 1, 0), (back, 0, 1)] {
            let sums = &self.sums[placed];
            let least_up = self.ports.least_up(placed, missing[from]);
            let least_down = self.ports.least_down(placed, missing[to]);
            for switch in 0..switches {
                self.into[switch] = sums.up[from][switch] + least_up[switch];
                self.out_of[switch] = sums.down[to][switch] + least_down[switch];
            }
            least = least.min(direct + self.switches.least(&self.into, &self.out_of));
            if placed < devices && least < self.best {
                break;
            }
        }
        least
    }
}

/// GB/s between devices and switches.
struct Ports {
    devices: usize,
    switches: usize,
    /// By device and switch.
    all: Vec<Port>,
    /// By the first device, a number of devices and switch: the least that so many of the devices
    /// from the first on have together to the switch, and from it.
    least_up: Vec<f64>,
    least_down: Vec<f64>,
}

#[derive(Clone, Copy, Default)]
struct Port {
    up: f64,
    down: f64,
}

impl Ports {
    fn new(crossing: &Crossing) -> Self {
        let (devices, switches) = (crossing.devices, crossing.switches());
        let mut all = vec![Port::default(); devices * switches];
        for (device, wires) in crossing.wires[..devices].iter().enumerate() {
            for wire in wires.iter().filter(|wire| wire.other >= devices) {
                let port = Port { up: wire.out, down: wire.back };
                all[device * switches + wire.other - devices] = port;
            }
        }
        let mut ports =
            Self { devices, switches, all, least_up: Vec::new(), least_down: Vec::new() };
        ports.least_up = ports.least(|port| port.up);
        ports.least_down = ports.least(|port| port.down);
        ports
    }

    fn least(&self, way: fn(&Port) -> f64) -> Vec<f64> {
        let mut least = vec![0.0; (self.devices + 1) * (self.devices + 1) * self.switches];
        for first in 0..=self.devices {
            for switch in 0..self.switches {
                let mut widths: Vec<f64> =
                    (first..self.devices).map(|device| way(&self.of(device)[switch])).collect();
                widths.sort_unstable_by(f64::total_cmp);
                let mut sum = 0.0;
                for (count, width) in (1..).zip(widths) {
                    sum += width;
                    least[self.row(first, count) + switch] = sum;
                }
            }
        }
        least
    }

    fn row(&self, first: usize, count: usize) -> usize {
        (first * (self.devices + 1) + count) * self.switches
    }

    fn of(&self, device: usize) -> &[Port] {
        &self.all[device * self.switches..][..self.switches]
    }

    /// By switch: at least so much goes from `count` of the devices from `first` on to it.
    fn least_up(&self, first: usize, count: usize) -> &[f64] {
        &self.least_up[self.row(first, count)..][..self.switches]
    }

    /// By switch: at least so much goes from it to `count` of the devices from `first` on.
    fn least_down(&self, first: usize, count: usize) -> &[f64] {
        &self.least_down[self.row(first, count)..][..self.switches]
    }
}
