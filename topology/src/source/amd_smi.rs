//! `amd-smi topology`, as text or JSON. GPUs are known by PCI address.

use serde_json::Value;

use super::gpu_tables;
use super::text::{lines, without_escapes};
use super::{Format, SourceError};
use crate::{
    Figure, InterconnectType, Node, NodeKind, Observations, Pair, PciAddress, PeerCapability,
    PeerStatus, Statement, Tool,
};

#[cfg(test)]
mod tests;

/// GPUs that a text may name, at most.
const MOST_GPUS: usize = 1024;

/// Whether the text has amd-smi's titles or keys.
pub(super) fn recognizes(text: &str) -> bool {
    let tables = ["ACCESS TABLE:", "WEIGHT TABLE:", "HOPS TABLE:", "LINK TYPE TABLE:"];
    tables.iter().any(|title| text.contains(title))
        || (text.contains("\"bdf\"") && text.contains("\"link_type\""))
}

/// Reads the tables, or the JSON.
pub(super) fn read(text: &str) -> Result<Observations, SourceError> {
    if text.trim_start().starts_with(['[', '{']) {
        return read_json(text);
    }
    let plain = without_escapes(text);
    let mut all = Observations::default();
    let names = gpu_tables::read(&lines(&plain), &address, "amd-smi", &mut all);
    for name in names.iter().take(MOST_GPUS) {
        let mut node = Node::new(NodeKind::Gpu);
        node.pci = name.parse().ok();
        all.add_node(node);
    }
    if all.nodes.is_empty() || names.len() > MOST_GPUS {
        return Err(nothing());
    }
    Ok(all)
}

fn nothing() -> SourceError {
    let reason = "no table of GPUs was found; give the whole output of `amd-smi topology`";
    SourceError::new(Format::AmdSmi, None, reason)
}

/// A PCI address with its domain, as headers and rows name a GPU.
fn address(word: &str) -> Option<String> {
    let address: PciAddress = word.parse().ok()?;
    (word.matches(':').count() == 2).then(|| address.to_string())
}

/// Reads a list with an object for each GPU, which lists its links.
fn read_json(text: &str) -> Result<Observations, SourceError> {
    let document: Value = serde_json::from_str(text).map_err(|error| {
        let reason = format!("{error}; give the whole output of `amd-smi topology --json`");
        SourceError::new(Format::AmdSmi, error.line(), reason)
    })?;
    let list =
        document.as_array().or_else(|| document.as_object()?.values().find_map(Value::as_array));
    let gpus: Vec<&Value> =
        list.into_iter().flatten().filter(|gpu| pci(gpu).is_some()).take(MOST_GPUS).collect();
    if gpus.is_empty() {
        return Err(nothing());
    }
    let mut all = Observations::default();
    for gpu in &gpus {
        let mut node = Node::new(NodeKind::Gpu);
        if let Some(number) = number(&gpu["gpu"]) {
            node = node.labelled(Tool::RocmSmi, format!("GPU{number}"));
        }
        node.pci = pci(gpu);
        all.add_node(node);
    }
    for (from, gpu) in gpus.iter().enumerate() {
        for link in gpu["links"].as_array().into_iter().flatten() {
            let Some(to) = gpus.iter().position(|other| pci(other) == pci(link)) else {
                all.warn(None, format!("a link of GPU {from} leads to no GPU of the list"));
                continue;
            };
            if from != to {
                let statements = statements(link);
                let pair = |statement| Pair { from, to, statement, line: None };
                all.pairs.extend(statements.into_iter().map(pair));
            }
        }
    }
    Ok(all)
}

fn pci(entry: &Value) -> Option<PciAddress> {
    entry["bdf"].as_str()?.parse().ok()
}

fn number(value: &Value) -> Option<u32> {
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    number.or_else(|| value.as_str()?.parse().ok())
}

/// What an entry says about its link.
fn statements(link: &Value) -> Vec<Statement> {
    let class = match link["link_type"].as_str() {
        Some("XGMI") => Some(InterconnectType::InfinityFabric { links: 1 }),
        Some("PCIE") => Some(InterconnectType::Pcie { generation: None, lanes: None }),
        _ => None,
    };
    let status = match link["link_status"].as_str() {
        Some("ENABLED") => Some(PeerStatus::Supported),
        Some("DISABLED") => Some(PeerStatus::NotSupported),
        _ => None,
    };
    let known = |value: &Value| number(value).filter(|&number| number > 0);
    let bandwidth = link["bandwidth"].as_str().and_then(gpu_tables::range);
    let bandwidth =
        bandwidth.and_then(|most| Figure::reported(f64::from(most) / 1000.0, "amd-smi").ok());
    let capability = PeerCapability::Read;
    [
        class.map(Statement::Class),
        status.map(|status| Statement::Peer { capability, status }),
        known(&link["num_hops"]).map(Statement::Hops),
        known(&link["weight"]).map(Statement::Weight),
        bandwidth.map(Statement::Bandwidth),
    ]
    .into_iter()
    .flatten()
    .collect()
}
