//! The JSON forms: `topo_list` with an object for each ordered pair, and an object with the
//! properties of a device.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::Content;
use super::cell::{Cell, is_cpu_list};
use super::device_table::{Device, switches};
use super::nodes::End;
use crate::SourceWarning;
use crate::source::fact::Fact;
use crate::source::located_json::{Document, JsonError, Value};

/// The keys of the list of CPUs, of the number of switches, and of the switches: earlier and today.
const CPU_LIST: [&str; 2] = ["affinity_localcpulist", "local_cpu_list"];
const SWITCH_COUNT: [&str; 2] = ["switch_count", "pcie_switch_count"];
const SWITCHES: [&str; 2] = ["switch_list", "pcie_switch"];

/// Whether the text has such JSON in it.
pub(super) fn is_in(text: &str) -> bool {
    let has_key = |key: &str| text.contains(&format!("\"{key}\""));
    let is_device = has_key("device_id") && CPU_LIST.iter().any(|key| has_key(key));
    (has_key("topo_list") || is_device) && Document::new(text).has_start()
}

/// Reads the JSON in a text. The error is about what cannot be read.
pub(super) fn read(
    text: &str,
    content: &mut Content,
    warnings: &mut Vec<SourceWarning>,
) -> Option<JsonError> {
    let document = Document::new(text);
    let (values, error) = document.values();
    for value in &values {
        let Some(object) = Object::of(value) else { continue };
        if let Some(pairs) = object.get("topo_list").and_then(|pairs| pairs.list()) {
            read_pairs(&pairs, content, warnings);
        } else if let Some(device) = object.number("device_id") {
            let line = value.line();
            if content.devices.insert(device, object.device(line, warnings)).is_some() {
                content.devices.insert(device, Device::default());
                let text = format!("device {device} stands here twice; neither is taken");
                warnings.push(SourceWarning { line: Some(line), text });
            }
        }
    }
    error
}

/// The entries of an object.
struct Object<'a>(Vec<(Cow<'a, str>, Value<'a>)>);

impl<'a> Object<'a> {
    fn of(value: &Value<'a>) -> Option<Self> {
        value.object().map(Self)
    }

    fn get(&self, key: &str) -> Option<Value<'a>> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| *value)
    }

    fn either(&self, keys: &[&str]) -> Option<Value<'a>> {
        keys.iter().find_map(|key| self.get(key))
    }

    fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key)?.text()
    }

    fn number(&self, key: &str) -> Option<u32> {
        self.text(key)?.parse().ok()
    }

    /// What it says about a device.
    fn device(&self, line: usize, warnings: &mut Vec<SourceWarning>) -> Device {
        let text = |keys| self.either(keys)?.text();
        let cpu_affinity = text(&CPU_LIST).filter(|list| is_cpu_list(list)).map(Cow::into_owned);
        let count = text(&SWITCH_COUNT).and_then(|count| count.parse().ok());
        let paths = match self.either(&SWITCHES) {
            Some(value) => value.list().unwrap_or_else(|| vec![value]),
            None => Vec::new(),
        };
        let paths = paths.iter().filter_map(Value::text).map(|path| (path.into_owned(), line));
        Device { cpu_affinity, switches: switches(paths.collect(), count, warnings) }
    }

    /// The tile at one end of a pair; `side` is `local` or `remote`.
    fn end(&self, side: &str) -> Option<End> {
        let device = self.number(&format!("{side}_device_id"))?;
        let tile = self.number(&format!("{side}_subdevice_id"))?;
        Some(End::Tile { device, tile })
    }
}

/// Reads the objects about pairs. Network interfaces have no number there, and are passed over.
fn read_pairs(pairs: &[Value<'_>], content: &mut Content, warnings: &mut Vec<SourceWarning>) {
    let mut numa_nodes = BTreeMap::new();
    let mut links = Vec::new();
    for value in pairs {
        let Some(pair) = Object::of(value) else { continue };
        let (Some(from), Some(to)) = (pair.end("local"), pair.end("remote")) else { continue };
        let link = link_type(&pair);
        let line = value.line();
        if (from == to) != (Cell::of(&link) == Cell::Itself) {
            let text = format!("from {from} to {to} stands `{link}`; the pair is left out");
            warnings.push(SourceWarning { line: Some(line), text });
            continue;
        }
        let facts = content.ends.entry(from).or_default();
        if let Some(cpus) = pair.text("local_cpu_affinity").filter(|cpus| is_cpu_list(cpus)) {
            facts.cpu_affinity.set(cpus.into_owned());
        }
        if let Some(node) = pair.number("local_numa_index") {
            facts.numa_node.set(node);
            numa_nodes.insert(from, node);
        }
        if from != to {
            links.push((from, to, link, line));
        }
    }
    for (from, to, link, line) in links {
        if content.ends.contains_key(&to) {
            content.read_cell(from, to, &link, line, warnings);
        }
    }
    forget_invented_numa_nodes(content, &numa_nodes);
}

/// A Xe Link has its lanes in a list of ports.
fn link_type<'a>(pair: &Object<'a>) -> Cow<'a, str> {
    let link = pair.text("link_type").unwrap_or_default();
    let ports = pair.get("port_list").filter(|_| link == "XL").and_then(|ports| ports.list());
    let lanes = ports
        .unwrap_or_default()
        .iter()
        .try_fold(0_u32, |lanes, port| lanes.checked_add(port.text()?.parse().ok()?));
    match lanes {
        Some(lanes) if lanes > 0 => Cow::Owned(format!("XL{lanes}")),
        _ => link,
    }
}

/// A release of the tool wrote 0 for every NUMA node. Where the CPUs differ, one node for all is
/// none.
fn forget_invented_numa_nodes(content: &mut Content, numa_nodes: &BTreeMap<End, u32>) {
    let mut affinities: Vec<_> = content.ends.values().map(|facts| &facts.cpu_affinity).collect();
    affinities.dedup();
    let is_one_node = numa_nodes.values().all(|node| Some(node) == numa_nodes.values().next());
    if is_one_node && affinities.len() > 1 {
        for facts in content.ends.values_mut() {
            facts.numa_node = Fact::Open;
        }
    }
}
