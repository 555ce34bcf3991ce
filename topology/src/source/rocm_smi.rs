//! `rocm-smi --showtopo`, as text or JSON, whole or in parts.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::gpu_tables;
use super::text::{Line, lines, without_escapes};
use super::{Format, SourceError};
use crate::{InterconnectType, Node, NodeKind, Observations, Pair, Statement, Tool};

#[cfg(test)]
mod tests;

/// GPUs that a text may name; a number beyond it is none.
const MOST_GPUS: u32 = 1024;

/// Whether the text has rocm-smi's titles.
pub(super) fn recognizes(text: &str) -> bool {
    let marks = [
        "between two GPUs",
        "(Topology) ",
        "ROCm System Management Interface",
        "End of ROCm SMI Log",
    ];
    marks.iter().any(|mark| text.contains(mark)) || complaint(text).is_some()
}

/// Reads the tables and the NUMA nodes.
pub(super) fn read(text: &str) -> Result<Observations, SourceError> {
    if text.trim_start().starts_with('{') {
        return read_json(text);
    }
    let plain = without_escapes(text);
    let lines = lines(&plain);
    let mut all = Observations::default();
    let mut names = gpu_tables::read(&lines, &gpu_name, "rocm-smi", &mut all);
    let numa = numa_lines(&lines, &mut all);
    for number in numa.keys() {
        let name = format!("GPU{number}");
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for name in &names {
        let mut node = Node::new(NodeKind::Gpu).labelled(Tool::RocmSmi, name);
        let number = name.strip_prefix("GPU").and_then(|digits| digits.parse().ok());
        if let Some(numa) = number.and_then(|number: u32| numa.get(&number)) {
            node.numa_nodes = numa.nodes();
        }
        all.add_node(node);
    }
    if all.nodes.is_empty() {
        return Err(nothing(text));
    }
    Ok(all)
}

fn nothing(text: &str) -> SourceError {
    let (line, reason) = complaint(text).unwrap_or_else(|| {
        let reason = "no table of GPUs was found; give the whole output of `rocm-smi --showtopo`";
        (None, reason.to_owned())
    });
    SourceError::new(Format::RocmSmi, line, reason)
}

/// What is said when there is nothing to print, by how it begins, and what to do.
fn complaint(text: &str) -> Option<(Option<usize>, String)> {
    const COMPLAINTS: [(&str, &str); 5] = [
        ("Driver not initialized", "load the amdgpu driver"),
        ("Unable to open /dev/kfd", "run as a member of the groups render and video"),
        ("rocm-smi: command not found", "install ROCm's rocm-smi-lib"),
        ("rocm-smi: not found", "install ROCm's rocm-smi-lib"),
        ("No AMD GPUs specified", "there is no GPU that the driver can use"),
    ];
    lines(text).into_iter().find_map(|line| {
        let said = line.text.trim();
        let (_, remedy) = COMPLAINTS.iter().find(|(start, _)| said.contains(start))?;
        let said: String = said.chars().take(120).collect();
        Some((Some(line.number), format!("rocm-smi says `{said}`; {remedy}")))
    })
}

/// `GPU0`, as headers and rows name a GPU.
fn gpu_name(word: &str) -> Option<String> {
    let number: u32 = digits(word.strip_prefix("GPU")?)?;
    (number < MOST_GPUS).then(|| word.to_owned())
}

fn digits(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// What is said about the NUMA node of a GPU. The node is that of its memory; the affinity, where
/// there is one, is what it is near to.
#[derive(Default)]
struct Numa {
    node: Option<u32>,
    affinity: Option<i64>,
}

impl Numa {
    fn nodes(&self) -> Vec<u32> {
        let near = match self.affinity {
            Some(affinity) => u32::try_from(affinity).ok(), // -1: unknown
            None => self.node,
        };
        near.into_iter().collect()
    }
}

/// Reads `GPU[0]  : (Topology) Numa Affinity: 3`.
fn numa_lines(lines: &[Line<'_>], all: &mut Observations) -> BTreeMap<u32, Numa> {
    let mut found: BTreeMap<u32, Numa> = BTreeMap::new();
    for line in lines {
        let Some((number, said)) = numa_line(line.text) else { continue };
        let numa = found.entry(number).or_default();
        let value = said.rsplit(':').next().unwrap_or("").trim();
        let is_affinity = said.starts_with("Numa Affinity:");
        let is_node = said.starts_with("Numa Node:");
        let value: Option<i64> = value.parse().ok().filter(|_| !line.is_cut);
        match value {
            Some(value) if is_affinity && numa.affinity.is_none_or(|known| known == value) => {
                numa.affinity = Some(value);
            }
            Some(value) if is_node && numa.node.is_none_or(|known| i64::from(known) == value) => {
                numa.node = u32::try_from(value).ok();
            }
            _ => {
                let text =
                    format!("`{}` is not whole, or contradicts another line", line.text.trim());
                all.warn(line.number, text);
            }
        }
    }
    found
}

/// The number of the GPU, and what is said about it.
fn numa_line(line: &str) -> Option<(u32, &str)> {
    let (number, rest) = line.trim().strip_prefix("GPU[")?.split_once(']')?;
    let number = digits(number).filter(|&number| number < MOST_GPUS)?;
    let (_, said) = rest.split_once("(Topology)")?;
    Some((number, said.trim()))
}

/// Reads what `--json` prints: an object for each card, and one for the pairs.
fn read_json(text: &str) -> Result<Observations, SourceError> {
    let document: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
        let reason = format!("{error}; give the whole output of `rocm-smi --showtopo --json`");
        SourceError::new(Format::RocmSmi, error.line(), reason)
    })?;
    let mut all = Observations::default();
    let mut pairs = Vec::new();
    let mut numa: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (name, fields) in &document {
        let Some(fields) = fields.as_object() else { continue };
        if let Some(number) = name.strip_prefix("card").and_then(digits) {
            let number_of = |key: &str| {
                let value = fields.get(key)?;
                value.as_i64().or_else(|| value.as_str()?.parse().ok())
            };
            let affinity = number_of("(Topology) Numa Affinity");
            let node = number_of("(Topology) Numa Node").and_then(|node| u32::try_from(node).ok());
            numa.insert(number, Numa { node, affinity }.nodes());
        } else {
            pairs.extend(fields.iter().filter_map(|(key, value)| json_pair(key, value)));
        }
    }
    for ((from, to), _) in &pairs {
        numa.entry(*from).or_default();
        numa.entry(*to).or_default();
    }
    if numa.is_empty() || numa.len() > MOST_GPUS as usize {
        return Err(nothing(text));
    }
    let mut positions = BTreeMap::new();
    for (number, nodes) in numa {
        let mut node = Node::new(NodeKind::Gpu).labelled(Tool::RocmSmi, format!("GPU{number}"));
        node.numa_nodes = nodes;
        positions.insert(number, all.add_node(node));
    }
    for ((from, to), statement) in pairs.into_iter().filter(|((from, to), _)| from != to) {
        let (from, to) = (positions[&from], positions[&to]);
        for (from, to) in [(from, to), (to, from)] {
            all.pairs.push(Pair { from, to, statement: statement.clone(), line: None });
        }
    }
    Ok(all)
}

/// A pair and what is said, from `(Topology) Hops between DRM devices 0 and 1`.
fn json_pair(key: &str, value: &Value) -> Option<((u32, u32), Statement)> {
    let said = key.strip_prefix("(Topology) ")?;
    let (what, ends) = said.split_once(" between DRM devices ")?;
    let (from, to) = ends.split_once(" and ")?;
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let number = || text.parse().ok().filter(|&number: &u32| number > 0);
    let statement = match what.to_ascii_lowercase().as_str() {
        "weight" => Statement::Weight(number()?),
        "hops" => Statement::Hops(number()?),
        "link type" if text == "XGMI" => {
            Statement::Class(InterconnectType::InfinityFabric { links: 1 })
        }
        "link type" if text == "PCIE" => {
            Statement::Class(InterconnectType::Pcie { generation: None, lanes: None })
        }
        _ => return None,
    };
    let number = |text: &str| digits(text.trim()).filter(|&number| number < MOST_GPUS);
    Some(((number(from)?, number(to)?), statement))
}
