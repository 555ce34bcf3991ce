//! The ways through host memory.

use super::cost::Cost;
use crate::{GpuTopology, LinkFigures, Quality};

/// By position of a device: what its links to host memory are worth.
#[derive(Clone, Debug)]
pub(super) struct HostLinks(Vec<HostLegs>);

#[derive(Clone, Copy, Debug)]
struct HostLegs {
    to_host: Leg,
    from_host: Leg,
}

#[derive(Clone, Copy, Debug)]
struct Leg {
    cost: Cost,
    quality: Quality,
}

impl HostLinks {
    pub(super) fn new(topology: &GpuTopology) -> Self {
        let legs = topology.devices().map(|device| {
            let link = topology.host_link(device);
            let unknown = LinkFigures::unknown();
            HostLegs {
                to_host: Leg::new(link.as_ref().map_or(&unknown, |link| &link.to_host)),
                from_host: Leg::new(link.as_ref().map_or(&unknown, |link| &link.from_host)),
            }
        });
        Self(legs.collect())
    }

    /// Two links, into host memory and out of it; nothing from a device to itself.
    pub(super) fn way(&self, from: usize, to: usize) -> (Cost, Quality) {
        if from == to {
            return (Cost::NOTHING, Quality::Measured);
        }
        let (into, out) = (&self.0[from].to_host, &self.0[to].from_host);
        (into.cost.then(&out.cost), into.quality.min(out.quality))
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.0.capacity() * size_of::<HostLegs>()
    }
}

impl Leg {
    fn new(figures: &LinkFigures) -> Self {
        let cost = Cost {
            latency_us: figures.latency.value().unwrap_or(f64::NAN),
            gb_per_s: figures.bandwidth.value().unwrap_or(f64::NAN),
            hops: 1,
        };
        Self { cost, quality: figures.latency.quality().min(figures.bandwidth.quality()) }
    }
}
