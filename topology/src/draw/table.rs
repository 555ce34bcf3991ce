//! The machine as `nvidia-smi topo -m` prints it, and what its links carry.

use std::collections::BTreeSet;

use crate::table::layout;
use crate::{GpuTopology, Machine, NodeKind, Quality, Tool};

/// What the classes mean, as nvidia-smi's legend and AMD's and Intel's words have it.
const MEANINGS: [(&str, &str); 13] = [
    ("X", "itself"),
    ("NV", "NVLinks, # of them bonded; through NVSwitches, those of one GPU"),
    ("XGMI", "AMD Infinity Fabric"),
    ("XL*", "Xe Link, through another tile"),
    ("XL", "Xe Links, # of them"),
    ("MDF", "the fabric between the tiles of one card"),
    ("PIX", "PCIe over at most one switch"),
    ("PXB", "PCIe over several switches, no host bridge"),
    ("PHB", "PCIe over a host bridge"),
    ("NODE", "between the host bridges of one NUMA node"),
    ("SYS", "between NUMA nodes"),
    ("PCIE", "PCIe, by a way that is not told"),
    ("?", "nothing is known"),
];

impl Machine {
    /// Classes of all pairs with affinities, as `nvidia-smi topo -m` prints them; then GB/s between
    /// the GPUs that have a connection; then a legend of what occurs.
    ///
    /// Every figure carries the mark of its quality ([`Quality::mark`]).
    pub fn table(&self) -> String {
        if self.gpus().is_empty() && self.nics().is_empty() {
            return self.without_devices();
        }
        let classes = self.classes();
        let mut text = layout(&self.class_rows(&classes));
        let topology = self.topology();
        let is_connected = topology.devices().any(|from| !topology.neighbors(from).is_empty());
        if is_connected {
            text.push('\n');
            text.push_str(&layout(&self.bandwidth_rows(&topology)));
        }
        text.push('\n');
        text.push_str(&self.legend(&classes));
        text
    }

    fn without_devices(&self) -> String {
        let count = |kind| self.nodes().iter().filter(|node| node.kind == kind).count();
        let (numa, pci) = (count(NodeKind::NumaNode), count(NodeKind::PciDevice));
        format!("no GPUs and no network interfaces; {numa} NUMA nodes, {pci} other PCI devices\n")
    }

    fn class_rows(&self, classes: &[Vec<String>]) -> Vec<Vec<String>> {
        let shown: Vec<usize> = self.gpus().iter().chain(self.nics()).copied().collect();
        let names = shown.iter().map(|&at| self.name(at));
        let titles = ["CPU Affinity", "NUMA Affinity"].map(str::to_owned);
        let mut rows = vec![std::iter::once(String::new()).chain(names).chain(titles).collect()];
        for (&at, cells) in shown.iter().zip(classes) {
            let node = &self.nodes()[at];
            let numa: Vec<_> = node.numa_nodes.iter().map(u32::to_string).collect();
            let numa = match &numa[..] {
                [] => "?".to_owned(),
                [only] => only.clone(),
                [first, .., last] => format!("{first}-{last}"),
            };
            let cpus = node.cpu_affinity.clone().unwrap_or_else(|| "?".to_owned());
            let name = std::iter::once(self.name(at));
            rows.push(name.chain(cells.iter().cloned()).chain([cpus, numa]).collect());
        }
        rows
    }

    fn bandwidth_rows(&self, topology: &GpuTopology) -> Vec<Vec<String>> {
        let names = self.gpus().iter().map(|&gpu| self.name(gpu));
        let mut rows = vec![std::iter::once("GB/s".to_owned()).chain(names).collect::<Vec<_>>()];
        for (from, &gpu) in self.gpus().iter().enumerate() {
            let cells = (0..self.gpus().len()).map(|to| match topology.connection(from, to) {
                _ if from == to => "X".to_owned(),
                Some(link) => link.bandwidth.to_string(),
                None => "?".to_owned(),
            });
            rows.push(std::iter::once(self.name(gpu)).chain(cells).collect());
        }
        rows
    }

    fn legend(&self, classes: &[Vec<String>]) -> String {
        let starts: BTreeSet<usize> = classes
            .iter()
            .flatten()
            .filter_map(|class| MEANINGS.iter().position(|(start, _)| class.starts_with(start)))
            .collect();
        let mut lines: Vec<String> = starts
            .into_iter()
            .map(|at| {
                let (start, meaning) = MEANINGS[at];
                let name = if matches!(start, "NV" | "XL") {
                    format!("{start}#")
                } else {
                    start.to_owned()
                };
                format!("{name:<5} {meaning}")
            })
            .collect();
        let [reported, estimated, unknown] =
            [Quality::Reported, Quality::Estimated, Quality::Unknown].map(Quality::mark);
        lines.push(format!(
            "GB/s: 12 measured, {reported}12 reported, {estimated}12 estimated, {unknown} unknown"
        ));
        for &nic in self.nics() {
            let node = &self.nodes()[nic];
            if let (Some(_), Some(device)) = (node.label(Tool::NvidiaSmi), node.label(Tool::Os)) {
                lines.push(format!("{}: {device}", self.name(nic)));
            }
        }
        lines.join("\n") + "\n"
    }
}
