//! Our own JSON: a machine with all that is known about it, or a topology of devices.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Format, SourceError};
use crate::{
    GpuTopology, InterconnectType, Link, LinkFigures, Machine, Node, NodeKind, Observations, Pair,
    PeerCapability, PeerStatus, Statement, Tool, TopologyError,
};

#[cfg(test)]
mod tests;

/// The value of `format` in a machine's document.
const FORMAT: &str = "hopwise-machine";

/// The only version so far.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: String,
    version: u32,
    machine: Observations,
}

impl Machine {
    /// The machine as JSON, described in `docs/machine-json.md`. Reading it back with
    /// [`read_text`](crate::read_text) and [`merge`](Self::merge) gives an equal machine.
    #[expect(clippy::missing_panics_doc, reason = "no map has keys that are not text")]
    pub fn to_json(&self) -> String {
        let machine = self.observations().clone();
        let document = Document { format: FORMAT.to_owned(), version: VERSION, machine };
        let mut text =
            serde_json::to_string_pretty(&document).expect("all of it can be written as JSON");
        text.push('\n');
        text
    }
}

/// Whether the text names one of our formats.
pub(super) fn recognizes(text: &str) -> bool {
    text.trim_start().starts_with('{')
        && (text.contains("\"hopwise-machine\"") || text.contains("\"hopwise-topology\""))
}

/// Reads a machine or a topology.
pub(super) fn read(text: &str) -> Result<Observations, SourceError> {
    if text.contains("\"hopwise-topology\"") && !text.contains("\"hopwise-machine\"") {
        let topology = GpuTopology::from_json(text).map_err(|error| match error {
            TopologyError::Json { line, column, reason } => {
                SourceError::new(Format::Json, line, format!("column {column}: {reason}"))
            }
            other => SourceError::new(Format::Json, None, other.to_string()),
        })?;
        return Ok(of_topology(&topology));
    }
    let document: Document = serde_json::from_str(text).map_err(|error| {
        SourceError::new(Format::Json, error.line(), format!("{error}; see docs/machine-json.md"))
    })?;
    if document.format != FORMAT || document.version != VERSION {
        let reason = format!(
            "`format` and `version` are {:?} and {}, but only {FORMAT:?} and {VERSION} are known",
            document.format, document.version
        );
        return Err(SourceError::new(Format::Json, 1, reason));
    }
    check(&document.machine)?;
    Ok(document.machine)
}

/// Positions must be those of nodes, and links and pairs must join two different ones.
fn check(machine: &Observations) -> Result<(), SourceError> {
    let count = machine.nodes.len();
    let refuse = |what: String| {
        let reason = format!("{what}; correct the position, there are {count} nodes from 0");
        Err(SourceError::new(Format::Json, None, reason))
    };
    for (position, node) in machine.nodes.iter().enumerate() {
        for other in [node.parent, node.card].into_iter().flatten() {
            if other >= count || other == position {
                return refuse(format!("node {position} hangs on node {other}"));
            }
        }
    }
    let links = machine.links.iter().map(|link| ("link", link.from, link.to));
    let pairs = machine.pairs.iter().map(|pair| ("pair", pair.from, pair.to));
    for (what, from, to) in links.chain(pairs) {
        if from >= count || to >= count || from == to {
            return refuse(format!("a {what} leads from node {from} to node {to}"));
        }
    }
    let is_empty = |link: &&Link| link.kind.link_count() == Some(0);
    if let Some(link) = machine.links.iter().find(is_empty) {
        let reason = format!(
            "the link from node {} to node {} is made of zero links; give their number, or leave \
             it out",
            link.from, link.to
        );
        return Err(SourceError::new(Format::Json, None, reason));
    }
    Ok(())
}

/// What a topology of devices says.
fn of_topology(topology: &GpuTopology) -> Observations {
    let mut all = Observations::default();
    let mut position_of = BTreeMap::new();
    for device in topology.devices() {
        let mut node = Node::new(NodeKind::Gpu).labelled(Tool::Own, format!("GPU{device}"));
        node.numa_nodes.extend(topology.numa_node(device));
        position_of.insert(device, all.add_node(node));
    }
    let links: Vec<_> =
        topology.devices().filter_map(|device| topology.host_link(device)).collect();
    if !links.is_empty() {
        let host = all.add_node(Node::new(NodeKind::NumaNode).labelled(Tool::Own, "host"));
        for link in links {
            let (device, kind) = (position_of[&link.device], link.kind);
            let leg = |from, to, LinkFigures { bandwidth, latency }| Link {
                from,
                to,
                kind,
                bandwidth,
                latency,
            };
            all.links.push(leg(device, host, link.to_host));
            all.links.push(leg(host, device, link.from_host));
        }
    }
    for link in topology.connections() {
        let (from, to) = (position_of[&link.from], position_of[&link.to]);
        let status =
            if link.peer_access { PeerStatus::Supported } else { PeerStatus::NotSupported };
        let mut say = |statement| all.pairs.push(Pair { from, to, statement, line: None });
        say(Statement::Class(link.kind));
        say(Statement::Peer { capability: PeerCapability::Read, status });
        if !link.bandwidth.is_unknown() {
            say(Statement::Bandwidth(link.bandwidth.clone()));
        }
        if !link.latency.is_unknown() {
            say(Statement::Latency(link.latency.clone()));
        }
        if link.kind != InterconnectType::Unknown && link.kind.implies_peer_access() {
            let (bandwidth, latency) = (link.bandwidth.clone(), link.latency.clone());
            all.links.push(Link { from, to, kind: link.kind, bandwidth, latency });
        }
    }
    all
}
