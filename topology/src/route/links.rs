//! The links that routes may cross, by place.
//!
//! A place is a device, a switch, or the arrival at a device over a link on which no route goes on:
//! a path ends there. So the rule of relays is in the links, and a search need not know it.
//!
//! ```text
//!   0 .. devices                  a device
//!   devices .. onward             a switch
//!   onward .. onward + devices    the arrival at a device
//! ```

use super::positions::Positions;
use crate::{End, Figure, GpuTopology, InterconnectType, Quality, SwitchId};

/// The links of a topology that routes may cross.
#[derive(Clone, Debug)]
pub(super) struct Links {
    /// The devices by position, in ascending order.
    devices: Vec<usize>,
    /// By place, up to the last switch: links over which a path goes on from there.
    onward: Vec<Fan>,
    /// By position: links that only a path which starts at this device may take.
    first: Vec<Fan>,
    /// By place: whether a path may go on from there.
    goes_on: Vec<bool>,
    /// How many devices a path may pass between its ends.
    most_relays: u32,
    /// By place: whether a link with both figures leads there.
    is_target: Vec<bool>,
    has_unknown: bool,
}

/// The links from one place, in ascending order of where they lead.
#[derive(Clone, Debug, Default)]
pub(super) struct Fan {
    /// Those with both figures come first.
    hops: Vec<Hop>,
    known: usize,
    /// A hop as good in everything as each of the known ones, wherever it leads.
    best: Option<Hop>,
}

/// A link as seen from where it starts. A figure that is not known is not a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop {
    pub(super) latency_us: f64,
    pub(super) gb_per_s: f64,
    /// The place where it leads.
    pub(super) to: u32,
    /// How many hops of the chunk formula it is: none if it leads to a switch.
    pub(super) hops: u16,
    pub(super) quality: Quality,
}

impl Links {
    /// Asks `may_relay` once for each device.
    pub(super) fn new(
        topology: &GpuTopology,
        positions: &Positions,
        may_relay: &dyn Fn(usize) -> bool,
        most_relays: usize,
    ) -> Self {
        let devices: Vec<usize> = topology.devices().collect();
        let onward = devices.len() + topology.switch_count();
        let mut goes_on: Vec<bool> = devices.iter().map(|&device| may_relay(device)).collect();
        goes_on.resize(onward, true);
        goes_on.resize(onward + devices.len(), false);
        let mut links = Self {
            is_target: vec![false; goes_on.len()],
            onward: vec![Fan::default(); onward],
            first: vec![Fan::default(); devices.len()],
            devices,
            goes_on,
            most_relays: u32::try_from(most_relays).unwrap_or(u32::MAX),
            has_unknown: false,
        };
        for link in topology.unsorted_connections().filter(|link| link.peer_access) {
            let ends = [End::Device(link.from), End::Device(link.to)];
            links.add(positions, ends, link.kind, &link.bandwidth, &link.latency);
        }
        for link in topology.unsorted_switch_links() {
            let ends = [link.from, link.to];
            links.add(positions, ends, link.kind, &link.bandwidth, &link.latency);
        }
        links.sort();
        links
    }

    fn add(
        &mut self,
        positions: &Positions,
        [from, to]: [End; 2],
        kind: InterconnectType,
        bandwidth: &Figure,
        latency: &Figure,
    ) {
        let place = |end| match end {
            End::Device(index) => positions.of(index).expect("links join devices"),
            End::Switch(switch) => self.devices.len() + switch.number(),
        };
        let ends_only = |end| matches!(end, End::Device(_)) && !kind.carries_relays();
        let (at, target) = (place(from), place(to));
        let target = if ends_only(to) { self.onward.len() + target } else { target };
        let fan = if ends_only(from) { &mut self.first[at] } else { &mut self.onward[at] };
        fan.hops.push(Hop {
            latency_us: latency.value().unwrap_or(f64::NAN),
            gb_per_s: bandwidth.value().unwrap_or(f64::NAN),
            to: u32::try_from(target).expect("there are fewer than 2^32 places"),
            hops: u16::from(matches!(to, End::Device(_))),
            quality: latency.quality().min(bandwidth.quality()),
        });
    }

    fn sort(&mut self) {
        for fan in self.onward.iter_mut().chain(&mut self.first) {
            fan.hops.sort_unstable_by_key(|hop| (!hop.is_known(), hop.to));
            fan.hops.shrink_to_fit();
            fan.known = fan.hops.partition_point(Hop::is_known);
            fan.best = fan.known().iter().copied().reduce(|a, b| Hop {
                latency_us: a.latency_us.min(b.latency_us),
                gb_per_s: a.gb_per_s.max(b.gb_per_s),
                hops: a.hops.min(b.hops),
                ..a
            });
            self.has_unknown |= fan.known < fan.hops.len();
            for hop in &fan.hops[..fan.known] {
                self.is_target[hop.to as usize] = true;
            }
        }
    }

    /// Whether a path of so many hops may be continued.
    pub(super) const fn may_continue(&self, hops: u32) -> bool {
        hops <= self.most_relays
    }

    /// Whether some figure is unknown.
    pub(super) const fn has_unknown(&self) -> bool {
        self.has_unknown
    }

    /// How many devices there are.
    pub(super) fn device_count(&self) -> usize {
        self.devices.len()
    }

    /// How many places there are.
    pub(super) fn place_count(&self) -> usize {
        self.goes_on.len()
    }

    /// The place where paths to a device end, if they arrive over a link that serves its ends only.
    pub(super) fn arrival(&self, position: usize) -> usize {
        self.onward.len() + position
    }

    /// What is at a place.
    pub(super) fn end(&self, place: usize) -> End {
        match place.checked_sub(self.onward.len()) {
            Some(position) => End::Device(self.devices[position]),
            None => self.devices.get(place).map_or_else(
                || End::Switch(SwitchId::new(place - self.devices.len())),
                |&device| End::Device(device),
            ),
        }
    }

    /// Whether a path that does not start at a place may go on from there.
    pub(super) fn goes_on(&self, place: usize) -> bool {
        self.goes_on[place]
    }

    /// Whether a link with both figures leads to a place.
    pub(super) fn is_target(&self, place: usize) -> bool {
        self.is_target[place]
    }

    /// The links on which any path goes on from a device or switch.
    pub(super) fn onward(&self, place: usize) -> &Fan {
        &self.onward[place]
    }

    /// The links on which only a path goes on that starts at this device.
    pub(super) fn first(&self, position: usize) -> &Fan {
        &self.first[position]
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let fans = self.onward.iter().chain(&self.first);
        let hops: usize = fans.clone().map(|fan| fan.hops.capacity()).sum();
        self.devices.capacity() * size_of::<usize>()
            + self.goes_on.capacity()
            + self.is_target.capacity()
            + fans.count() * size_of::<Fan>()
            + hops * size_of::<Hop>()
    }
}

impl Fan {
    /// The links with both figures.
    pub(super) fn known(&self) -> &[Hop] {
        &self.hops[..self.known]
    }

    pub(super) fn all(&self) -> &[Hop] {
        &self.hops
    }

    /// A hop as good in everything as each of those with both figures; `None` if there are none.
    pub(super) const fn best(&self) -> Option<&Hop> {
        self.best.as_ref()
    }
}

impl Hop {
    const fn is_known(&self) -> bool {
        !self.latency_us.is_nan() && !self.gb_per_s.is_nan()
    }
}
