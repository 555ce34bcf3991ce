//! Random machines, and what follows from their links by brute force.

use std::ops::Range;

use hopwise_topology::{
    CHUNK_BYTES, End, Figure, GpuConnection, GpuTopology, HostLink, InterconnectType, LinkFigures,
    RouteTable, SwitchId, SwitchLink,
};
use proptest::prelude::*;

/// A link before it has figures: latency and bandwidth as small integers, if known. Ends are
/// numbered: first the devices, then the switches.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) from: usize,
    pub(crate) to: usize,
    kind: InterconnectType,
    latency: Option<u32>,
    bandwidth: Option<u32>,
    /// Of links between devices.
    peer_access: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) devices: usize,
    pub(crate) switches: usize,
    pub(crate) links: Vec<Link>,
    pub(crate) relays: Vec<bool>,
    pub(crate) host: Vec<Option<(u32, u32)>>,
    pub(crate) most_relays: usize,
}

fn figure(value: Option<u32>) -> Figure {
    value.map_or(Figure::unknown(), |value| Figure::measured(f64::from(value), 0).unwrap())
}

impl Machine {
    pub(crate) fn end(&self, number: usize) -> End {
        match number.checked_sub(self.devices) {
            None => End::Device(number),
            Some(switch) => End::Switch(SwitchId::new(switch)),
        }
    }

    pub(crate) fn topology(&self) -> GpuTopology {
        let mut topology = GpuTopology::new(0..self.devices);
        for _ in 0..self.switches {
            topology.add_switch();
        }
        for link in self.links.iter().filter(|link| link.from != link.to) {
            let (latency, bandwidth) = (figure(link.latency), figure(link.bandwidth));
            if link.from.max(link.to) < self.devices {
                let connection = GpuConnection::new(link.from, link.to, link.kind)
                    .with_latency(latency)
                    .with_bandwidth(bandwidth)
                    .with_peer_access(link.peer_access);
                topology.set_connection(connection).unwrap();
            } else {
                let link = SwitchLink::new(self.end(link.from), self.end(link.to), link.kind)
                    .with_latency(latency)
                    .with_bandwidth(bandwidth);
                topology.set_switch_link(link).unwrap();
            }
        }
        for (device, figures) in self.host.iter().enumerate() {
            let Some((latency, bandwidth)) = *figures else { continue };
            let mut link = HostLink::new(device, InterconnectType::HostBridge);
            link.to_host =
                LinkFigures { latency: figure(Some(latency)), bandwidth: figure(Some(bandwidth)) };
            link.from_host = LinkFigures {
                latency: figure(Some(latency + 1)),
                bandwidth: figure(Some(bandwidth + 1)),
            };
            topology.set_host_link(link).unwrap();
        }
        topology
    }

    pub(crate) fn routes(&self) -> RouteTable {
        RouteTable::build_within(&self.topology(), &|device| self.relays[device], self.most_relays)
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let devices = self.devices;
        (0..devices)
            .flat_map(move |from| (0..devices).map(move |to| (from, to)))
            .filter(|(from, to)| from != to)
    }
}

/// A value with the given probability, which may be 1.
fn sometimes(probability: f64, values: Range<u32>) -> impl Strategy<Value = Option<u32>> {
    (0.0..1.0, values).prop_map(move |(chance, value)| (chance < probability).then_some(value))
}

fn kind() -> impl Strategy<Value = InterconnectType> {
    prop_oneof![
        5 => Just(InterconnectType::NvLink { generation: None, links: 1 }),
        1 => Just(InterconnectType::InfinityFabric { links: 1 }),
        2 => Just(InterconnectType::PcieSwitch),
        1 => Just(InterconnectType::System),
        1 => Just(InterconnectType::HostMemory),
    ]
}

pub(crate) fn link(ends: usize, (latency, bandwidth): (f64, f64)) -> impl Strategy<Value = Link> {
    (
        (0..ends, 0..ends),
        kind(),
        sometimes(latency, 1_u32..6),
        sometimes(bandwidth, 1_u32..40),
        prop::bool::weighted(0.85),
    )
        .prop_map(|((from, to), kind, latency, bandwidth, peer_access)| Link {
            from,
            to,
            kind,
            latency,
            bandwidth,
            peer_access,
        })
}

/// All figures are known.
pub(crate) const KNOWN: (f64, f64) = (1.0, 1.0);

/// A machine of at most 8 devices and switches in which latencies and bandwidths are known with
/// these probabilities.
pub(crate) fn machine(known: (f64, f64)) -> impl Strategy<Value = Machine> {
    (2_usize..=8)
        .prop_flat_map(|ends| (2..=ends).prop_map(move |devices| (devices, ends - devices)))
        .prop_flat_map(move |(devices, switches)| {
            let ends = devices + switches;
            (
                prop::collection::vec(link(ends, known), 0..ends * 5),
                prop::collection::vec(prop::bool::weighted(0.8), devices),
                prop::collection::vec(prop::option::of((3_u32..12, 1_u32..20)), devices),
                prop_oneof![2 => Just(usize::MAX), 1 => 0_usize..3],
            )
                .prop_map(move |(links, relays, host, most_relays)| Machine {
                    devices,
                    switches,
                    links,
                    relays,
                    host,
                    most_relays,
                })
        })
}

/// A way from one device to another.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) hops: usize,
    pub(crate) latency: Option<f64>,
    pub(crate) bandwidth: Option<f64>,
}

/// A link that routes may use, by the numbers of its ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usable {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) latency: Option<f64>,
    pub(crate) bandwidth: Option<f64>,
    pub(crate) carries_relays: bool,
}

/// The links of the machine with peer access.
pub(crate) fn usable_links(machine: &Machine, topology: &GpuTopology) -> Vec<Usable> {
    let ends = machine.devices + machine.switches;
    let pairs = (0..ends).flat_map(|from| (0..ends).map(move |to| (from, to)));
    pairs
        .filter_map(|(from, to)| {
            let (kind, latency, bandwidth) = if from.max(to) < machine.devices {
                let link = topology.direct_connection(from, to).filter(|link| link.peer_access)?;
                (link.kind, &link.latency, &link.bandwidth)
            } else {
                let link = topology.switch_link(machine.end(from), machine.end(to))?;
                (link.kind, &link.latency, &link.bandwidth)
            };
            let carries_relays = kind.carries_relays();
            let (latency, bandwidth) = (latency.value(), bandwidth.value());
            Some(Usable { from, to, latency, bandwidth, carries_relays })
        })
        .collect()
}

/// Every simple way that keeps the rules: switches are passed at will, and only devices that may
/// relay are, in and out over links that carry relays.
pub(crate) fn simple_ways(
    machine: &Machine,
    links: &[Usable],
    (from, to): (usize, usize),
) -> Vec<Way> {
    let mut found = Vec::new();
    let nothing = Way { hops: 0, latency: Some(0.0), bandwidth: Some(f64::INFINITY) };
    go_on(machine, links, &mut vec![from], to, &nothing, &mut found);
    found
}

fn go_on(
    machine: &Machine,
    links: &[Usable],
    passed: &mut Vec<usize>,
    to: usize,
    way: &Way,
    found: &mut Vec<Way>,
) {
    let at = *passed.last().unwrap();
    let is_device = |end: usize| end < machine.devices;
    for link in links.iter().filter(|link| link.from == at) {
        let leaves_relay = passed.len() > 1 && is_device(at);
        if passed.contains(&link.to) || (leaves_relay && !link.carries_relays) {
            continue;
        }
        let longer = Way {
            hops: way.hops + usize::from(is_device(link.to)),
            latency: way.latency.zip(link.latency).map(|(a, b)| a + b),
            bandwidth: way.bandwidth.zip(link.bandwidth).map(|(a, b)| a.min(b)),
        };
        if link.to == to {
            found.push(longer);
        } else if longer.hops <= machine.most_relays
            && (!is_device(link.to) || (machine.relays[link.to] && link.carries_relays))
        {
            passed.push(link.to);
            go_on(machine, links, passed, to, &longer, found);
            passed.pop();
        }
    }
}

/// The formula of the documentation.
pub(crate) fn time_us(latency: f64, bandwidth: f64, hops: usize, bytes: u64) -> f64 {
    let chunks = (hops - 1) as f64 * bytes.min(CHUNK_BYTES) as f64;
    latency + (bytes as f64 + chunks) / (bandwidth * 1e9) * 1e6
}

/// The least time over all ways and the host, if any is known.
pub(crate) fn least_time(
    machine: &Machine,
    ways: &[Way],
    (from, to): (usize, usize),
    bytes: u64,
) -> Option<f64> {
    let over_links =
        ways.iter().filter_map(|way| Some(time_us(way.latency?, way.bandwidth?, way.hops, bytes)));
    let through_host = machine.host[from].zip(machine.host[to]).map(|(here, there)| {
        let bandwidth = here.1.min(there.1 + 1);
        time_us(f64::from(here.0 + there.0 + 1), f64::from(bandwidth), 2, bytes)
    });
    over_links.chain(through_host).min_by(f64::total_cmp)
}

pub(crate) fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}
