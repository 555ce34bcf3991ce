//! The table of a device: boxed with the device beside its properties, boxed with it among them,
//! or plain lines.

use std::collections::BTreeMap;

use super::cell::is_cpu_list;
use crate::source::fact::Fact;
use crate::source::matrix_text::{LineEnd, TextLine, excerpt, lines};
use crate::{PciAddress, SourceWarning};

/// What the table says about a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Device {
    pub(super) cpu_affinity: Option<String>,
    /// The paths of the switches over it, each below the one before.
    pub(super) switches: Vec<String>,
}

/// Whether the text has such a table.
pub(super) fn is_in(text: &str) -> bool {
    text.contains("Local CPU List") && text.contains("PCIe Switch Count")
        || text.contains("Topology Information") && text.contains("Device ID")
}

/// Reads the tables in a text.
pub(super) fn read(text: &str, warnings: &mut Vec<SourceWarning>) -> BTreeMap<u32, Device> {
    let lines = lines(text);
    let mut reader = Reader::default();
    for line in &lines {
        reader.take(line);
    }
    reader.finish(warnings)
}

/// A property in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Device,
    CpuList,
    Cpus,
    SwitchCount,
    Switch,
}

/// The titles of the properties; none begins as an earlier one does.
const TITLES: [(&str, Key); 5] = [
    ("Device ID", Key::Device),
    ("Local CPU List", Key::CpuList),
    ("Local CPUs", Key::Cpus),
    ("PCIe Switch Count", Key::SwitchCount),
    ("PCIe Switch", Key::Switch),
];

/// A property with its value, which may go on in the next line of a box.
#[derive(Debug)]
struct Property {
    device: u32,
    key: Key,
    value: String,
    line: usize,
}

#[derive(Debug, Default)]
struct Reader {
    properties: Vec<Property>,
    device: Option<u32>,
    /// Whether the last property stands in a box that was not closed, nor followed by another.
    is_open: bool,
    /// Whether the text ends in a value.
    is_cut: bool,
}

impl Reader {
    fn take(&mut self, line: &TextLine<'_>) {
        self.is_cut = false;
        let text = line.text.replace('\u{2502}', "|");
        let text = text.trim();
        let Some(inner) = text.strip_prefix('|') else {
            return match property(text) {
                Some(said) => self.take_property(said, line, false),
                None if text.starts_with("+-") => self.is_open = false,
                None => self.leave(),
            };
        };
        let (inner, is_whole) = match inner.strip_suffix('|') {
            Some(inner) => (inner, true),
            None => (inner, line.end != LineEnd::Word),
        };
        let Some((first, value)) = inner.split_once('|') else { return };
        let (first, value) = (first.trim(), value.trim());
        if let Ok(device) = first.parse() {
            self.device = Some(device);
        }
        let said = match title(first) {
            Some((key, "")) => Some((key, value)),
            _ => property(value),
        };
        match said {
            Some(said) => self.take_property(said, line, true),
            None if first.is_empty() && self.is_open => {
                if let Some(property) = self.properties.last_mut() {
                    property.value.push_str(value);
                }
            }
            None => self.leave(),
        }
        self.is_cut = !is_whole;
    }

    fn take_property(&mut self, (key, value): (Key, &str), line: &TextLine<'_>, is_boxed: bool) {
        if key == Key::Device {
            self.is_open = false;
            self.device = value.parse().ok();
        } else if let Some(device) = self.device {
            let value = value.to_owned();
            self.properties.push(Property { device, key, value, line: line.number });
            self.is_open = is_boxed;
            self.is_cut = line.end == LineEnd::Word;
        }
    }

    /// A line that belongs to no table, or separates two.
    fn leave(&mut self) {
        self.is_open = false;
        self.device = None;
    }

    fn finish(mut self, warnings: &mut Vec<SourceWarning>) -> BTreeMap<u32, Device> {
        if let Some(last) = self.properties.pop_if(|_| self.is_open || self.is_cut) {
            let text = "the text ends in this value, which may go on; it is left out";
            warnings.push(SourceWarning { line: Some(last.line), text: text.to_owned() });
        }
        let mut stated: BTreeMap<u32, Stated> = BTreeMap::new();
        for property in self.properties {
            stated.entry(property.device).or_default().take(property);
        }
        stated
            .into_iter()
            .map(|(device, stated)| (device, stated.device(device, warnings)))
            .collect()
    }
}

/// `Local CPU List: 0-23`
fn property(text: &str) -> Option<(Key, &str)> {
    let (key, value) = title(text)?;
    Some((key, value.strip_prefix(':')?.trim()))
}

/// The property whose title a text begins with, and what stands behind the title.
fn title(text: &str) -> Option<(Key, &str)> {
    TITLES.iter().find_map(|(title, key)| Some((*key, text.strip_prefix(title)?.trim())))
}

/// What is stated about one device.
#[derive(Debug, Default)]
struct Stated {
    cpu_list: Fact<String>,
    switch_count: Fact<String>,
    switches: Vec<(String, usize)>,
    line: usize,
}

impl Stated {
    fn take(&mut self, property: Property) {
        self.line = property.line;
        match property.key {
            Key::CpuList => _ = self.cpu_list.set(property.value),
            Key::SwitchCount => _ = self.switch_count.set(property.value),
            Key::Switch => self.switches.push((property.value, property.line)),
            Key::Device | Key::Cpus => {}
        }
    }

    fn device(self, device: u32, warnings: &mut Vec<SourceWarning>) -> Device {
        if self.cpu_list == Fact::Contradicted || self.switch_count == Fact::Contradicted {
            let text = format!("two tables of device {device} differ; neither is taken");
            warnings.push(SourceWarning { line: Some(self.line), text });
            return Device::default();
        }
        let cpu_affinity = self.cpu_list.known().filter(|list| is_cpu_list(list));
        let count = self.switch_count.known().and_then(|count| count.parse().ok());
        let switches = switches(self.switches, count, warnings);
        Device { cpu_affinity, switches }
    }
}

/// The paths of switches in order, if they lie one below the other. The tool of today counts the
/// switches and shows one path only.
pub(super) fn switches(
    paths: Vec<(String, usize)>,
    count: Option<usize>,
    warnings: &mut Vec<SourceWarning>,
) -> Vec<String> {
    let mut sound = Vec::new();
    for (path, line) in paths {
        if is_path(&path) {
            sound.push((path, line));
        } else if !matches!(path.as_str(), "" | "N/A") {
            let text = format!("`{}` is no path of a switch; it is left out", excerpt(&path));
            warnings.push(SourceWarning { line: Some(line), text });
        }
    }
    sound.sort_by_key(|(path, _)| path.len());
    sound.dedup_by(|next, path| next.0 == path.0);
    let is_chain = sound.windows(2).all(|pair| {
        let below = pair[1].0.strip_prefix(pair[0].0.as_str());
        below.is_some_and(|below| below.starts_with('/'))
    });
    let Some((_, line)) = sound.first() else { return Vec::new() };
    if !is_chain || count.is_some_and(|count| count < sound.len()) {
        let text = "the paths of the switches do not fit together, or not their count; they are \
                    left out";
        warnings.push(SourceWarning { line: Some(*line), text: text.to_owned() });
        return Vec::new();
    }
    sound.into_iter().map(|(path, _)| path).collect()
}

/// `/sys/devices/pci0000:4a/0000:4a:02.0/0000:4b:00.0`. The tool has lost the function of the last
/// one.
fn is_path(path: &str) -> bool {
    let Some(inner) = path.strip_prefix("/sys/devices/pci") else { return false };
    let mut addresses: Vec<&str> = inner.split('/').skip(1).collect();
    let all = addresses.len();
    addresses.sort_unstable();
    addresses.dedup();
    all > 0 && addresses.len() == all && addresses.iter().all(|part| is_address(part))
}

fn is_address(part: &str) -> bool {
    part.matches(':').count() == 2 && part.parse::<PciAddress>().is_ok()
}
