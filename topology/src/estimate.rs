//! A topology from general facts, for a machine that nobody has probed.
//!
//! Every figure made here is `Estimated` and names its rule. The rules:
//!
//! - PCIe bandwidth is that of NCCL 2.30 (`src/graph/topo.h`): width x speed / 80, where speed is
//!   15 for generation 1 and doubles with each generation up to 6.
//! - NVLink bandwidth is the vendor's, per link and direction: 20 GB/s in generation 1, 25 in 2 to
//!   4, 50 in 5.
//! - One hop's latency is that of NCCL's tuning table (`src/graph/tuning.cc`, ring algorithm,
//!   simple protocol): 3.4 us over NVLink, 5.7 us over PCIe.
//!
//! No rule makes up a link. Above all none makes up NVLink: whether two cards are bridged cannot
//! be told from the cards.

use std::collections::BTreeMap;

use crate::{Figure, GpuConnection, GpuTopology, HostLink, InterconnectType};

pub(crate) mod rules;
#[cfg(test)]
mod tests;

/// Latency of one hop over NVLink in microseconds, from NCCL's tuning table.
const NVLINK_LATENCY_US: f64 = 3.4;

/// Latency of one hop over PCIe in microseconds, from NCCL's tuning table.
const PCIE_LATENCY_US: f64 = 5.7;

/// What is known about a device without looking at its links.
///
/// ```
/// use hopwise_topology::{DeviceFacts, GpuTopology};
///
/// let mut facts = DeviceFacts::new(0);
/// facts.pcie = Some((4, 16));
/// facts.peer_capable = true;
/// let other = DeviceFacts { index: 1, ..facts.clone() };
/// let topology = GpuTopology::estimate(&[facts, other]);
/// let link = topology.connection(0, 1).expect("both are capable of peer access");
/// assert_eq!(link.bandwidth.to_string(), "~24");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceFacts {
    /// The coordinator's index of the device.
    pub index: usize,
    /// Through what the device is driven ("cuda", say). Devices of different backends have no
    /// access to each other's memory.
    pub backend: Option<String>,
    /// The NUMA node that it is attached to.
    pub numa_node: Option<u32>,
    /// Whether its driver offers access to the memory of its peers.
    pub peer_capable: bool,
    /// Generation and lanes of its PCIe link. Take those under load: an idle card runs at
    /// generation 1.
    pub pcie: Option<(u8, u8)>,
    /// Whether it is a share of the host's threads, with its memory in host memory.
    pub host: bool,
}

impl DeviceFacts {
    /// Facts about a device of which nothing is known but its index.
    pub const fn new(index: usize) -> Self {
        Self { index, backend: None, numa_node: None, peer_capable: false, pcie: None, host: false }
    }

    /// The kind of its PCIe link. Some drivers say zero lanes for "not known".
    fn pcie_kind(&self) -> InterconnectType {
        self.pcie.map_or(InterconnectType::Unknown, |(generation, lanes)| InterconnectType::Pcie {
            generation: Some(generation),
            lanes: Some(lanes).filter(|&lanes| lanes > 0),
        })
    }

    fn host_link(&self) -> HostLink {
        let kind = if self.host { InterconnectType::HostMemory } else { self.pcie_kind() };
        HostLink::new(self.index, kind)
            .with_bandwidth(kind.estimated_bandwidth())
            .with_latency(kind.estimated_latency())
    }

    /// The link to another device, if the facts about the two say that there is one.
    fn connection(&self, other: &Self) -> Option<GpuConnection> {
        let peers = self.peer_capable && other.peer_capable && self.backend == other.backend;
        if self.host && other.host {
            let kind = InterconnectType::HostMemory;
            return Some(GpuConnection::new(self.index, other.index, kind).with_peer_access(peers));
        }
        if self.host || other.host || !peers {
            return None;
        }
        let pcie = self.narrower_pcie(other);
        let kind = if self.is_across_numa_nodes(other) { InterconnectType::System } else { pcie };
        Some(
            GpuConnection::new(self.index, other.index, kind)
                // Across NUMA nodes this leaves the processors' own link out: nobody knows it.
                .with_bandwidth(pcie.estimated_bandwidth())
                .with_latency(kind.estimated_latency())
                .with_peer_access(true),
        )
    }

    /// The PCIe link that limits a transfer between the two; unknown if either is.
    fn narrower_pcie(&self, other: &Self) -> InterconnectType {
        let (here, there) = (self.pcie_kind(), other.pcie_kind());
        match (here.estimated_bandwidth().value(), there.estimated_bandwidth().value()) {
            (Some(a), Some(b)) if a <= b => here,
            (Some(_), Some(_)) => there,
            _ => InterconnectType::Unknown,
        }
    }

    fn is_across_numa_nodes(&self, other: &Self) -> bool {
        matches!((self.numa_node, other.numa_node), (Some(a), Some(b)) if a != b)
    }
}

impl GpuTopology {
    /// The topology of a machine that has not been probed: what follows from facts about its
    /// devices, and nothing else.
    ///
    /// Two devices of one backend that are capable of peer access get a PCIe link (`SYS` across
    /// NUMA nodes); two shares of the host's threads are joined by host memory. All other pairs
    /// get no link, and reach each other through the host. If an index occurs twice, its last
    /// facts count. Costs O(devices^2).
    #[expect(
        clippy::missing_panics_doc,
        reason = "the devices are added just before, and no kind made here is empty"
    )]
    pub fn estimate(facts: &[DeviceFacts]) -> Self {
        let facts: BTreeMap<usize, &DeviceFacts> =
            facts.iter().map(|device| (device.index, device)).collect();
        let mut topology = Self::new(facts.keys().copied());
        let valid = "the ends are different devices of the topology, and the kind is not empty";
        for device in facts.values() {
            topology.set_numa_node(device.index, device.numa_node).expect(valid);
            topology.set_host_link(device.host_link()).expect(valid);
            for other in facts.values().filter(|other| other.index != device.index) {
                if let Some(link) = device.connection(other) {
                    topology.set_connection(link).expect(valid);
                }
            }
        }
        topology
    }
}

impl InterconnectType {
    /// The bandwidth in GB/s, one direction, that such a link has by the rules of this module;
    /// unknown where no rule applies.
    ///
    /// PCIe with no lanes stated counts as 16 lanes, as in NCCL.
    pub fn estimated_bandwidth(self) -> Figure {
        match self {
            Self::NvLink { generation: Some(generation), links }
            | Self::NvSwitch { generation: Some(generation), links } => {
                rules::nvlink_of_generation(generation, links)
            }
            Self::Pcie { generation: Some(generation @ 1..=6), lanes } => {
                let lanes = lanes.filter(|&lanes| lanes > 0).unwrap_or(16);
                let speed = 15.0 * f64::from(1_u32 << (generation - 1));
                let rule = format!("NCCL 2.30, PCIe {generation} x{lanes}");
                Figure::estimated(f64::from(lanes) * speed / 80.0, rule).unwrap_or_default()
            }
            _ => Figure::unknown(),
        }
    }

    /// The latency in microseconds that one hop over such a link has by the rules of this module;
    /// unknown where no rule applies.
    pub fn estimated_latency(self) -> Figure {
        let (latency_us, rule) = match self {
            Self::NvLink { .. } | Self::NvSwitch { .. } => {
                (NVLINK_LATENCY_US, "NCCL tuning, one NVLink hop")
            }
            Self::Pcie { .. }
            | Self::PcieSwitch
            | Self::PcieSwitches
            | Self::HostBridge
            | Self::Node
            | Self::System => (PCIE_LATENCY_US, "NCCL tuning, one PCIe hop"),
            _ => return Figure::unknown(),
        };
        Figure::estimated(latency_us, rule).unwrap_or_default()
    }
}
