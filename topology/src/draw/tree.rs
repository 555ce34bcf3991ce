//! What hangs on what, as an indented tree.

use std::collections::BTreeMap;

use super::groups::groups;
use crate::{InterconnectType, Machine, NodeKind, PcieWidth};

impl Machine {
    /// NUMA nodes with the host bridges, switches and devices that hang on them, then the links of
    /// the fabric.
    ///
    /// Where no source shows what hangs on what, devices are grouped by NUMA node and by what they
    /// share.
    pub fn tree(&self) -> String {
        let mut text = String::new();
        if self.nodes().iter().any(|node| node.parent.is_some()) {
            let mut children: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
            for (position, node) in self.nodes().iter().enumerate() {
                children.entry(node.parent).or_default().push(position);
            }
            for &root in children.get(&None).into_iter().flatten() {
                self.add_branch(&children, root, 0, &mut text);
            }
        } else {
            self.add_groups(&mut text);
        }
        let fabric = self.fabric_lines();
        if !fabric.is_empty() {
            text.push('\n');
            text.push_str(&(fabric.join("\n") + "\n"));
        }
        if text.is_empty() { "nothing is known of this machine\n".to_owned() } else { text }
    }

    fn add_branch(
        &self,
        children: &BTreeMap<Option<usize>, Vec<usize>>,
        position: usize,
        depth: usize,
        text: &mut String,
    ) {
        text.push_str(&"  ".repeat(depth));
        text.push_str(&self.tree_line(position));
        text.push('\n');
        for &child in children.get(&Some(position)).into_iter().flatten() {
            self.add_branch(children, child, depth + 1, text);
        }
    }

    /// `GPU0  10de:2330  0000:19:00.0  Gen1 x16 now, Gen5 x16 at best`
    fn tree_line(&self, position: usize) -> String {
        let node = &self.nodes()[position];
        let mut parts = vec![self.name(position)];
        parts.extend(node.model.clone());
        let is_named_by_address = parts[0].contains(':');
        parts.extend(node.pci.filter(|_| !is_named_by_address).map(|pci| pci.to_string()));
        if let Some(uplink) = node.uplink {
            let (now, best) = (uplink.current, uplink.maximum);
            let none = PcieWidth::default();
            if now != none && best != none && now != best {
                parts.push(format!("{now} now, {best} at best"));
            } else if best != none || now != none {
                parts.push(if best == none { now.to_string() } else { best.to_string() });
            }
        }
        parts.join("  ")
    }

    fn add_groups(&self, text: &mut String) {
        for group in groups(self) {
            text.push_str(&format!("{}\n", group.title));
            for part in &group.parts {
                let indent = if part.title.is_empty() {
                    "  "
                } else {
                    text.push_str(&format!("  {}\n", part.title));
                    "    "
                };
                for &position in part.gpus.iter().chain(&part.nics) {
                    text.push_str(&format!("{indent}{}\n", self.tree_line(position)));
                }
            }
        }
    }

    /// A line for each kind of fabric link: `NV2: GPU0-GPU3, GPU0-GPU4`.
    fn fabric_lines(&self) -> Vec<String> {
        let mut pairs: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut through: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for link in self.links().iter().filter(|link| is_fabric(link.kind)) {
            let (from, to) = (link.from, link.to);
            let (name, class) = (self.name(from), link.kind.class_name());
            let figure = &link.bandwidth;
            match (self.nodes()[from].kind, self.nodes()[to].kind) {
                (NodeKind::Gpu, NodeKind::Gpu) => {
                    let is_pair =
                        self.links().iter().any(|back| (back.from, back.to) == (to, from));
                    if !is_pair || from < to {
                        let sign = if is_pair { "-" } else { ">" };
                        let pair = format!("{name}{sign}{}", self.name(to));
                        pairs.entry(format!("{class} ({figure} GB/s)")).or_default().push(pair);
                    }
                }
                (NodeKind::Gpu, NodeKind::NvSwitch) => {
                    let key = format!("{} with {class} each ({figure} GB/s)", self.name(to));
                    through.entry(key).or_default().push(name);
                }
                _ => {}
            }
        }
        let line = |(key, names): (String, Vec<String>)| format!("{key}: {}", names.join(", "));
        pairs.into_iter().chain(through).map(line).collect()
    }
}

/// Whether a link is one of the fabrics between GPUs.
pub(super) const fn is_fabric(kind: InterconnectType) -> bool {
    kind.implies_peer_access() && !matches!(kind, InterconnectType::HostMemory)
}
