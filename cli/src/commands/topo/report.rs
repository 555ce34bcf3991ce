//! What `topo --json` prints: the machine as a program wants it.

use hopwise_core::calibrate::Calibration;
use hopwise_topology::{
    Bisection, BisectionBound, ChannelGraph, Figure, Link, Machine, NodeKind, PcieWidth,
    Provenance, Quality,
};
use serde::Serialize;

use crate::machine::Described;

/// One object. `classes` has a row and a column for each name of `names`: GPUs first, then network
/// interfaces.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    format: String,
    gpus: usize,
    nics: usize,
    names: Vec<String>,
    classes: Vec<Vec<String>>,
    /// For each GPU; null where unknown or more than one.
    numa: Vec<Option<u32>>,
    devices: Vec<Device<'a>>,
    links: Vec<LinkEntry>,
    /// For each ordered pair of GPUs; null where nothing is said.
    peer_access: Vec<Vec<Option<bool>>>,
    /// Null where no wire is known.
    bisection: Option<BisectionEntry>,
    switches: usize,
    #[serde(skip_serializing_if = "<[ChannelGraph]>::is_empty")]
    channel_graphs: &'a [ChannelGraph],
    /// What `--measure` measured: every size, and the way that the bytes took.
    #[serde(skip_serializing_if = "Option::is_none")]
    measurement: Option<&'a Calibration>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct BisectionEntry {
    gb_per_s: f64,
    /// `exact`, `at most`, `at least` or `unknown`.
    bound: &'static str,
}

#[derive(Serialize)]
struct Device<'a> {
    name: String,
    pci: Option<String>,
    uuid: Option<&'a str>,
    model: Option<&'a str>,
    architecture: Option<&'a str>,
    numa_nodes: &'a [u32],
    cpu_affinity: Option<&'a str>,
    pcie_now: Option<String>,
    pcie_at_best: Option<String>,
    nvlinks: Option<u16>,
    /// What falls together with it, from the nearest to the widest.
    failure_domains: Vec<String>,
}

#[derive(Serialize)]
struct LinkEntry {
    from: String,
    to: String,
    class: String,
    count: Option<u16>,
    gb_per_s: Option<f64>,
    gb_per_s_source: Option<String>,
    latency_us: Option<f64>,
    latency_us_source: Option<String>,
}

impl<'a> Report<'a> {
    pub(super) fn new(described: &'a Described) -> Self {
        let machine = &described.machine;
        let shown = || machine.gpus().iter().chain(machine.nics());
        let nodes = machine.nodes();
        let access = |from: usize| {
            let to = machine.gpus().iter();
            to.map(move |&to| if to == from { Some(true) } else { machine.peer_access(from, to) })
        };
        let is_switch = |kind| matches!(kind, NodeKind::PcieSwitch | NodeKind::NvSwitch);
        Self {
            format: described.format(),
            gpus: machine.gpus().len(),
            nics: machine.nics().len(),
            names: shown().map(|&at| machine.name(at)).collect(),
            classes: machine.classes(),
            numa: machine.gpus().iter().map(|&gpu| nodes[gpu].numa_node()).collect(),
            devices: machine.gpus().iter().map(|&gpu| Device::new(machine, gpu)).collect(),
            links: machine.links().iter().map(|link| LinkEntry::new(machine, link)).collect(),
            peer_access: machine.gpus().iter().map(|&gpu| access(gpu).collect()).collect(),
            bisection: machine.bisection_bandwidth_gb_per_s().and_then(BisectionEntry::new),
            switches: nodes.iter().filter(|node| is_switch(node.kind)).count(),
            channel_graphs: machine.channel_graphs(),
            measurement: None,
            warnings: described.warnings(),
        }
    }

    /// Adds what was measured.
    pub(super) fn with_measurement(self, calibration: &'a Calibration) -> Self {
        Self { measurement: Some(calibration), ..self }
    }
}

impl BisectionEntry {
    fn new(found: Bisection) -> Option<Self> {
        let bound = match found.bound {
            BisectionBound::Exact => "exact",
            BisectionBound::AtMost => "at most",
            BisectionBound::AtLeast => "at least",
            BisectionBound::Neither => "unknown",
        };
        (found.gb_per_s > 0.0).then_some(Self { gb_per_s: found.gb_per_s, bound })
    }
}

impl<'a> Device<'a> {
    fn new(machine: &'a Machine, position: usize) -> Self {
        let node = &machine.nodes()[position];
        let uplink = node.uplink.unwrap_or_default();
        let width = |width: PcieWidth| (width != PcieWidth::default()).then(|| width.to_string());
        let domains = machine.failure_domains(position);
        Self {
            name: machine.name(position),
            pci: node.pci.map(|pci| pci.to_string()),
            uuid: node.uuid.as_deref(),
            model: node.model.as_deref(),
            architecture: node.architecture.as_deref(),
            numa_nodes: &node.numa_nodes,
            cpu_affinity: node.cpu_affinity.as_deref(),
            pcie_now: width(uplink.current),
            pcie_at_best: width(uplink.maximum),
            nvlinks: node.nvlinks_up,
            failure_domains: domains.into_iter().map(|at| machine.name(at)).collect(),
        }
    }
}

impl LinkEntry {
    fn new(machine: &Machine, link: &Link) -> Self {
        Self {
            from: machine.name(link.from),
            to: machine.name(link.to),
            class: link.kind.class_name(),
            count: link.kind.link_count(),
            gb_per_s: link.bandwidth.value(),
            gb_per_s_source: source(&link.bandwidth),
            latency_us: link.latency.value(),
            latency_us_source: source(&link.latency),
        }
    }
}

/// Where a figure comes from, in words; nothing for one that is not there.
fn source(figure: &Figure) -> Option<String> {
    match figure.provenance() {
        Provenance::Measured { unix_seconds } => Some(format!("measured at {unix_seconds}")),
        Provenance::Reported { by } => Some(format!("reported by {by}")),
        Provenance::Estimated { rule } => Some(format!("estimated: {rule}")),
        Provenance::Unknown => None,
    }
    .filter(|_| figure.quality() > Quality::Unknown)
}
