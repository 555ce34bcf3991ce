//! The machine as programs see it: devices, direct connections, and ways through the host.

use std::collections::BTreeMap;

use super::class::{Classes, peer_access};
use super::{Machine, tree};
use crate::{
    End, Figure, GpuConnection, GpuTopology, HostLink, InterconnectType, Link, LinkFigures, Node,
    NodeKind, PcieWidth, Statement, SwitchLink,
};

const VALID: &str = "the ends are different devices of the topology, and the kind is not empty";

impl Machine {
    /// The devices with their direct connections. GPU number `i` of [`gpus`](Self::gpus) is device
    /// `i`.
    ///
    /// Fabric links are connections with peer access, unless a source denies it; NVSwitches are
    /// switches, and their GPUs share them. Other pairs get a connection of their class, with the bandwidth of the narrowest PCIe link that is known on
    /// the way between, and peer access only where a source says that there is. A pair about which
    /// nothing is known gets no connection.
    #[expect(clippy::missing_panics_doc, reason = "every end is added before it is used")]
    pub fn topology(&self) -> GpuTopology {
        let mut topology = GpuTopology::new(0..self.gpus.len());
        let classes = Classes::new(&self.all);
        let device_of: BTreeMap<usize, usize> =
            self.gpus.iter().enumerate().map(|(device, &gpu)| (gpu, device)).collect();
        self.add_nvswitches(&device_of, &mut topology);
        for (device, &gpu) in self.gpus.iter().enumerate() {
            topology.set_numa_node(device, self.all.nodes[gpu].numa_node()).expect(VALID);
            topology.set_host_link(self.host_link(device, gpu)).expect(VALID);
        }
        for (from, &from_gpu) in self.gpus.iter().enumerate() {
            for (to, &to_gpu) in self.gpus.iter().enumerate().filter(|&(to, _)| to != from) {
                if topology.connection(from, to).is_some() {
                    continue;
                }
                let ends = [(from, from_gpu), (to, to_gpu)];
                if let Some(connection) = self.connection(&classes, ends) {
                    topology.set_connection(connection).expect(VALID);
                }
            }
        }
        topology
    }

    fn add_nvswitches(&self, device_of: &BTreeMap<usize, usize>, topology: &mut GpuTopology) {
        let mut ends: BTreeMap<usize, End> =
            device_of.iter().map(|(&gpu, &device)| (gpu, End::Device(device))).collect();
        for (position, node) in self.all.nodes.iter().enumerate() {
            if node.kind == NodeKind::NvSwitch {
                ends.insert(position, End::Switch(topology.add_switch()));
            }
        }
        for link in &self.all.links {
            let (Some(&from), Some(&to)) = (ends.get(&link.from), ends.get(&link.to)) else {
                continue;
            };
            let is_to_switch = matches!(from, End::Switch(_)) || matches!(to, End::Switch(_));
            if is_to_switch && link.kind.implies_peer_access() {
                let link = SwitchLink::new(from, to, link.kind)
                    .with_bandwidth(link.bandwidth.clone())
                    .with_latency(link.latency.clone());
                topology.set_switch_link(link).expect(VALID);
            }
        }
    }

    fn connection(
        &self,
        classes: &Classes<'_>,
        [(from, from_gpu), (to, to_gpu)]: [(usize, usize); 2],
    ) -> Option<GpuConnection> {
        let said = self.said(from_gpu, to_gpu);
        let link = self.link(from_gpu, to_gpu).filter(|link| link.kind.implies_peer_access());
        if let Some(Link { kind, bandwidth, latency, .. }) = link {
            let connection = GpuConnection::new(from, to, *kind)
                .with_bandwidth(better(bandwidth.clone(), said.bandwidth))
                .with_latency(better(latency.clone(), said.latency));
            let access = said.peer_access.unwrap_or(connection.peer_access);
            return Some(connection.with_peer_access(access));
        }
        let kind = classes.of(from_gpu, to_gpu);
        if kind == InterconnectType::Unknown || kind == InterconnectType::XeLinkIndirect {
            return None;
        }
        let connection = GpuConnection::new(from, to, kind)
            .with_bandwidth(better(self.narrowest(from_gpu, to_gpu), said.bandwidth))
            .with_latency(better(kind.estimated_latency(), said.latency));
        let access = said.peer_access.unwrap_or(connection.peer_access);
        Some(connection.with_peer_access(access))
    }

    fn said(&self, from: usize, to: usize) -> Said {
        let mut said = Said { peer_access: peer_access(&self.all, from, to), ..Said::default() };
        for statement in self.statements(from, to) {
            match statement {
                Statement::Bandwidth(figure) => said.bandwidth = figure.clone(),
                Statement::Latency(figure) => said.latency = figure.clone(),
                _ => {}
            }
        }
        said
    }

    fn link(&self, from: usize, to: usize) -> Option<&Link> {
        self.all.links.iter().find(|link| (link.from, link.to) == (from, to))
    }

    /// The bandwidth of the narrowest link on the way through the tree; unknown if one is unknown.
    fn narrowest(&self, from: usize, to: usize) -> Figure {
        let Some(path) = tree::path(&self.all, from, to) else { return Figure::unknown() };
        let nodes = || path.up.iter().chain(&path.down).map(|&at| &self.all.nodes[at]);
        let wires = nodes().filter(|node| node.kind.has_uplink()).map(pcie_bandwidth);
        let sockets = match (path.top, path.up.last(), path.down.first()) {
            (None, Some(&here), Some(&there)) => self.between_sockets(here, there),
            _ => None,
        };
        let all: Option<Vec<Figure>> =
            wires.chain(sockets).map(|figure| (!figure.is_unknown()).then_some(figure)).collect();
        let narrower = |a: Figure, b: Figure| if a.value() <= b.value() { a } else { b };
        all.and_then(|all| all.into_iter().reduce(narrower)).unwrap_or_default()
    }

    pub(super) fn between_sockets(&self, here: usize, there: usize) -> Option<Figure> {
        let link = self.link(here, there).map(|link| link.bandwidth.clone());
        let cpu = self.all.nodes[here].architecture.as_deref();
        Some(
            link.filter(|figure| !figure.is_unknown())
                .unwrap_or_else(|| crate::estimate::rules::sockets(cpu)),
        )
    }

    fn host_link(&self, device: usize, gpu: usize) -> HostLink {
        let node = &self.all.nodes[gpu];
        let to_host =
            self.all.links.iter().find(|link| {
                link.from == gpu && self.all.nodes[link.to].kind == NodeKind::NumaNode
            });
        let figures = |link: &Link| LinkFigures {
            bandwidth: link.bandwidth.clone(),
            latency: link.latency.clone(),
        };
        if let Some(link) = to_host {
            let back = self.link(link.to, gpu).map(figures).unwrap_or_default();
            let (to_host, from_host) = (figures(link), back);
            return HostLink { device, kind: link.kind, to_host, from_host };
        }
        let kind = node.pcie_kind();
        let chain = std::iter::once(gpu).chain(tree::ancestors(&self.all, gpu));
        let wires = chain.map(|at| &self.all.nodes[at]).filter(|node| node.kind.has_uplink());
        let narrowest = wires.map(pcie_bandwidth).reduce(|a, b| {
            if a.is_unknown() || b.is_unknown() {
                Figure::unknown()
            } else if a.value() <= b.value() {
                a
            } else {
                b
            }
        });
        HostLink::new(device, kind)
            .with_bandwidth(narrowest.unwrap_or_default())
            .with_latency(kind.estimated_latency())
    }
}

/// What sources say about a pair, whatever lies between.
#[derive(Default)]
struct Said {
    bandwidth: Figure,
    latency: Figure,
    peer_access: Option<bool>,
}

/// The figure of the better quality; the first of two that are as good.
fn better(one: Figure, another: Figure) -> Figure {
    if another.quality() > one.quality() { another } else { one }
}

impl NodeKind {
    /// Whether it hangs on its parent by a PCIe link.
    const fn has_uplink(self) -> bool {
        matches!(self, Self::Gpu | Self::Nic | Self::PcieSwitch | Self::PciDevice | Self::NvSwitch)
    }
}

impl Node {
    /// Generation and lanes of its PCIe link at best; as it runs now where the best is unknown.
    fn pcie_width(&self) -> PcieWidth {
        let uplink = self.uplink.unwrap_or_default();
        PcieWidth {
            generation: uplink.maximum.generation.or(uplink.current.generation),
            lanes: uplink.maximum.lanes.or(uplink.current.lanes),
        }
    }

    fn pcie_kind(&self) -> InterconnectType {
        let PcieWidth { generation, lanes } = self.pcie_width();
        if generation.is_none() && lanes.is_none() {
            return InterconnectType::Unknown;
        }
        InterconnectType::Pcie { generation, lanes: lanes.filter(|&lanes| lanes > 0) }
    }
}

/// What the PCIe link of a node carries at best. An idle card runs slower to save power, so what
/// runs now says little.
pub(super) fn pcie_bandwidth(node: &Node) -> Figure {
    match node.pcie_width() {
        PcieWidth { lanes: Some(_), .. } => node.pcie_kind().estimated_bandwidth(),
        // Some lanes may be missing or broken, so none are assumed.
        PcieWidth { lanes: None, .. } => Figure::unknown(),
    }
}
