//! Links that hwloc states: NVLink as bandwidths, xGMI as bandwidths, hops and lists of peers.

use std::collections::{BTreeMap, BTreeSet};

use super::super::xml::Element;
use super::distances::Matrix;
use super::nvlink;
use crate::{Figure, InterconnectType, Link, NodeKind, Observations, Pair, Statement, Tool};

/// What hwloc writes for each xGMI path, in MB/s, when it asks ROCm SMI, which does not say.
const ASSUMED_XGMI_MB_PER_S: u64 = 100_000;

/// Infinity Fabric; hwloc does not count the links.
const INFINITY_FABRIC: InterconnectType = InterconnectType::InfinityFabric { links: 1 };

/// What is said about links so far.
pub(super) struct Fabric<'o> {
    observed: &'o mut Observations,
    /// Names of the matrices that were read.
    read: BTreeSet<String>,
    /// Pairs that xGMI joins, with the line that says so.
    xgmi: BTreeMap<(usize, usize), usize>,
    /// Positions of GPUs by ROCm SMI's labels.
    by_label: BTreeMap<String, usize>,
}

/// A matrix between nodes.
struct Between<'a> {
    matrix: Matrix<'a>,
    positions: Vec<Option<usize>>,
}

impl Between<'_> {
    /// Values that are not zero, between two different nodes.
    fn values(&self) -> impl Iterator<Item = (usize, usize, u64)> {
        self.matrix.values().filter_map(|(from, to, value)| {
            let (from, to) = (self.positions[from]?, self.positions[to]?);
            (value > 0).then_some((from, to, value))
        })
    }

    fn names_a_node_twice(&self) -> bool {
        let named: Vec<usize> = self.positions.iter().flatten().copied().collect();
        named.iter().collect::<BTreeSet<_>>().len() < named.len()
    }

    fn pair(&self, from: usize, to: usize, statement: Statement) -> Pair {
        Pair { from, to, statement, line: Some(self.matrix.line) }
    }

    /// A figure that the matrix states in MB/s.
    fn bandwidth(&self, megabytes_per_s: u64) -> Figure {
        let by = format!("hwloc {}", self.matrix.name);
        let megabytes_per_s = u32::try_from(megabytes_per_s).ok().map(f64::from);
        let figure = megabytes_per_s.and_then(|value| Figure::reported(value / 1000.0, by).ok());
        figure.unwrap_or_default()
    }
}

impl<'o> Fabric<'o> {
    pub(super) fn new(observed: &'o mut Observations) -> Self {
        let labelled = observed.nodes.iter().enumerate().filter_map(|(position, node)| {
            node.label(Tool::RocmSmi).map(|label| (label.to_owned(), position))
        });
        let by_label = labelled.collect();
        Self { observed, read: BTreeSet::new(), xgmi: BTreeMap::new(), by_label }
    }

    /// Reads a matrix of a topology. `position` gives the node of an object by its number.
    pub(super) fn matrix(&mut self, element: &Element, position: impl Fn(u64) -> Option<usize>) {
        let name = element.attribute("name").unwrap_or("");
        let add = match name {
            "NVLinkBandwidth" => Self::nvlink_bandwidth,
            "XGMIBandwidth" => Self::xgmi_bandwidth,
            "XGMIHops" => Self::xgmi_hops,
            "XeLinkBandwidth" => {
                let text = "XeLinkBandwidth is left out: its unit is not the MB/s of others, and \
                            links are not counted";
                self.observed.warn(element.line, text);
                return;
            }
            // Others are not about links of GPUs.
            _ => return,
        };
        let Some(matrix) = Matrix::of(element, self.observed) else { return };
        let positions = matrix.ends.iter().map(|&end| position(end)).collect();
        let between = Between { matrix, positions };
        if between.names_a_node_twice() || !self.read.insert(name.to_owned()) {
            let text = format!("{name} is left out: it is listed before, or names a GPU twice");
            self.observed.warn(element.line, text);
            return;
        }
        add(self, &between);
    }

    fn nvlink_bandwidth(&mut self, between: &Between<'_>) {
        let mut uncounted = 0_usize;
        for (from, to, megabytes_per_s) in between.values() {
            let ends = [from, to].map(|end| &self.observed.nodes[end]);
            if ends.iter().all(|node| node.kind != NodeKind::Gpu) {
                continue;
            }
            let bandwidth = between.bandwidth(megabytes_per_s);
            if let Some((generation, links)) = nvlink::count(ends, megabytes_per_s) {
                let kind = InterconnectType::NvLink { generation: Some(generation), links };
                let latency = Figure::unknown();
                self.observed.links.push(Link { from, to, kind, bandwidth, latency });
            } else {
                uncounted += 1;
                self.observed.pairs.push(between.pair(from, to, Statement::Bandwidth(bandwidth)));
            }
        }
        if uncounted > 0 {
            let text = format!(
                "NVLinkBandwidth of {uncounted} pairs is no multiple of what one NVLink of such \
                 GPUs carries, so their links are not counted"
            );
            self.observed.warn(between.matrix.line, text);
        }
    }

    fn xgmi_bandwidth(&mut self, between: &Between<'_>) {
        let mut are_assumed = true;
        for (from, to, megabytes_per_s) in between.values() {
            self.xgmi.insert((from, to), between.matrix.line);
            are_assumed &= megabytes_per_s == ASSUMED_XGMI_MB_PER_S;
            let statement = Statement::Bandwidth(between.bandwidth(megabytes_per_s));
            self.observed.pairs.push(between.pair(from, to, statement));
        }
        if are_assumed && between.values().count() > 2 {
            let text = "XGMIBandwidth is 100 GB/s for all pairs: ROCm SMI does not tell hwloc how \
                        many links a pair has, so the real figures may differ";
            self.observed.warn(between.matrix.line, text);
        }
    }

    fn xgmi_hops(&mut self, between: &Between<'_>) {
        for (from, to, hops) in between.values() {
            self.xgmi.insert((from, to), between.matrix.line);
            if let Ok(hops) = u32::try_from(hops) {
                self.observed.pairs.push(between.pair(from, to, Statement::Hops(hops)));
            }
        }
    }

    /// Reads the names of the GPUs that xGMI joins with one: `rsmi1 rsmi2`.
    pub(super) fn xgmi_peers(&mut self, from: usize, peers: &str, line: usize) {
        for peer in peers.split_whitespace() {
            let label = peer.strip_prefix("rsmi").map(|number| format!("GPU{number}"));
            let to = label.and_then(|label| self.by_label.get(&label)).copied();
            if let Some(to) = to.filter(|&to| to != from) {
                self.xgmi.entry((from, to)).or_insert(line);
            } else {
                let text = format!("the xGMI peer {peer} is no other GPU of this file");
                self.observed.warn(line, text);
            }
        }
    }

    /// Adds what follows from all that was read.
    pub(super) fn finish(self) {
        for ((from, to), line) in self.xgmi {
            let statement = Statement::Class(INFINITY_FABRIC);
            self.observed.pairs.push(Pair { from, to, statement, line: Some(line) });
        }
    }
}
