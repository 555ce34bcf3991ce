//! What was measured, for the topology.

use std::collections::{BTreeMap, HashSet};

use hopwise_topology::{
    Figure, Format, GpuConnection, GpuTopology, HostLink, InterconnectType, Link, Node, NodeKind,
    Observations, Pair, Reading, Statement, Tool, TopologyError,
};

use super::{Calibration, DeviceCalibration, Measured, Outcome, PairCalibration, Way};
use crate::device_info::{BackendKind, DeviceIdentity};

impl Calibration {
    /// The measured connections: pairs whose bytes went from device to device. A pair that went
    /// through the host has none; its figures follow from those of the two host links.
    ///
    /// The kind is that of `topology`, where it knows one.
    #[must_use]
    pub fn connections(&self, topology: &GpuTopology) -> Vec<GpuConnection> {
        let of = |pair: &PairCalibration| {
            let measured = pair.outcome.measured().filter(|_| pair.way == Way::PeerCopy)?;
            let known = topology.direct_connection(pair.from, pair.to).map(|link| link.kind);
            let kind = known.unwrap_or_else(|| self.kind(pair));
            let (bandwidth, latency) = self.figures(measured);
            let connection = GpuConnection::new(pair.from, pair.to, kind)
                .with_bandwidth(bandwidth)
                .with_latency(latency)
                .with_peer_access(true);
            Some(connection)
        };
        self.pairs.iter().filter_map(of).collect()
    }

    /// Puts the measured figures of connections and host links into a topology whose devices are
    /// numbered as those that were measured.
    ///
    /// # Errors
    ///
    /// [`TopologyError`] when the topology has no device of such a number.
    pub fn apply(&self, topology: &mut GpuTopology) -> Result<(), TopologyError> {
        for connection in self.connections(topology) {
            topology.set_connection(connection)?;
        }
        for (at, device) in self.devices.iter().enumerate() {
            let mut link =
                topology.host_link(at).unwrap_or_else(|| HostLink::new(at, device.kind()));
            let ends =
                [(&device.to_host, &mut link.to_host), (&device.from_host, &mut link.from_host)];
            for (outcome, figures) in ends {
                if let Outcome::Measured(measured) = outcome {
                    (figures.bandwidth, figures.latency) = self.figures(measured);
                }
            }
            topology.set_host_link(link)?;
        }
        Ok(())
    }

    /// The measurement as a source for [`Machine::merge`](hopwise_topology::Machine::merge).
    #[must_use]
    pub fn reading(&self) -> Reading {
        Reading { format: Format::Measurement, observations: self.observations() }
    }

    /// A node for each device and for the host memory that it was measured with, the figures of
    /// both ways, and those of pairs whose bytes went from device to device.
    ///
    /// Of several logical devices of one card the first stands for the card.
    #[must_use]
    pub fn observations(&self) -> Observations {
        let mut all = Observations::default();
        let mut seen = HashSet::new();
        let mut positions = BTreeMap::new();
        for (at, device) in self.devices.iter().enumerate() {
            if seen.insert(&device.identity) {
                positions.insert(at, all.add_node(node(at, device)));
            }
        }
        for (&at, &position) in &positions {
            self.add_host_link(&self.devices[at], position, &mut all);
        }
        for pair in &self.pairs {
            let ends = positions.get(&pair.from).zip(positions.get(&pair.to));
            let measured = pair.outcome.measured().filter(|_| pair.way == Way::PeerCopy);
            let (Some((&from, &to)), Some(measured)) = (ends, measured) else { continue };
            let (bandwidth, latency) = self.figures(measured);
            let statements = [Statement::Bandwidth(bandwidth), Statement::Latency(latency)];
            let kind = self.kind(pair);
            let class = (kind != InterconnectType::Unknown).then_some(Statement::Class(kind));
            let statements = statements.into_iter().chain(class);
            all.pairs.extend(statements.map(|statement| Pair { from, to, statement, line: None }));
        }
        all
    }

    fn add_host_link(&self, device: &DeviceCalibration, position: usize, all: &mut Observations) {
        let figures = |outcome: &Outcome| outcome.measured().map(|it| self.figures(it));
        let ways = [(figures(&device.to_host), false), (figures(&device.from_host), true)];
        if ways.iter().all(|(figures, _)| figures.is_none()) {
            return;
        }
        let memory = host_memory(device.numa_node, all);
        let kind = device.kind();
        for (figures, is_back) in ways {
            let Some((bandwidth, latency)) = figures else { continue };
            let (from, to) = if is_back { (memory, position) } else { (position, memory) };
            all.links.push(Link { from, to, kind, bandwidth, latency });
        }
    }

    fn figures(&self, measured: &Measured) -> (Figure, Figure) {
        let figure = |value| Figure::measured(value, self.unix_seconds).unwrap_or_default();
        (figure(measured.bandwidth_gb_per_s()), figure(measured.latency_us()))
    }

    /// What joins a pair, as far as that is clear without a source.
    fn kind(&self, pair: &PairCalibration) -> InterconnectType {
        let is_host = |at: usize| self.devices[at].backend == BackendKind::Host;
        if is_host(pair.from) && is_host(pair.to) {
            InterconnectType::HostMemory
        } else {
            InterconnectType::Unknown
        }
    }
}

impl DeviceCalibration {
    /// What joins it to host memory, as far as that is clear without a source.
    const fn kind(&self) -> InterconnectType {
        match self.backend {
            BackendKind::Host => InterconnectType::HostMemory,
            _ => InterconnectType::Unknown,
        }
    }
}

/// The node of a device. One that is recognised again has no label of ours beside its name.
fn node(at: usize, device: &DeviceCalibration) -> Node {
    let mut node = Node::new(NodeKind::Gpu);
    node.model = Some(device.name.clone());
    node.numa_nodes.extend(device.numa_node);
    match &device.identity {
        DeviceIdentity::Uuid(uuid) => node.uuid = Some(uuid.clone()),
        DeviceIdentity::PciAddress(address) => node.pci = address.parse().ok(),
        _ => {}
    }
    if node.uuid.is_none() && node.pci.is_none() {
        return node.labelled(Tool::Own, format!("{} {at}", device.backend));
    }
    node
}

/// The node of host memory: of a NUMA node, or of the host where that is unknown.
fn host_memory(numa_node: Option<u32>, all: &mut Observations) -> usize {
    let label = numa_node.map(|node| node.to_string());
    let is_it =
        |node: &Node| node.kind == NodeKind::NumaNode && node.label(Tool::Numa) == label.as_deref();
    let known = all.nodes.iter().position(is_it);
    known.unwrap_or_else(|| {
        let mut node = Node::new(NodeKind::NumaNode);
        node.numa_nodes.extend(numa_node);
        all.add_node(match label {
            Some(label) => node.labelled(Tool::Numa, label),
            None => node,
        })
    })
}
