//! The machine for Graphviz.

use std::fmt::Write;

use super::groups::groups;
use super::tree::is_fabric;
use crate::{Link, Machine, NodeKind, Quality};

impl Machine {
    /// A graph in Graphviz's language: clusters for NUMA nodes and what devices hang on, an edge
    /// for each fabric link, without arrows where both directions are alike. Estimates are dashed,
    /// links of unknown bandwidth dotted.
    pub fn dot(&self) -> String {
        let mut text = String::from(
            "graph machine {\n  graph [fontname=\"sans-serif\", compound=true];\n  \
             node [fontname=\"sans-serif\", shape=box, style=rounded];\n  \
             edge [fontname=\"sans-serif\"];\n",
        );
        for (number, group) in groups(self).iter().enumerate() {
            let _ = writeln!(text, "  subgraph cluster_{number} {{");
            let _ = writeln!(text, "    label={};", quoted(&group.title));
            for (part_number, part) in group.parts.iter().enumerate() {
                let is_boxed = !part.title.is_empty();
                if is_boxed {
                    let _ = writeln!(text, "    subgraph cluster_{number}_{part_number} {{");
                    let _ = writeln!(text, "      label={};", quoted(&part.title));
                }
                for &position in part.gpus.iter().chain(&part.nics) {
                    let shape = if part.nics.contains(&position) { ", shape=ellipse" } else { "" };
                    let name = quoted(&self.name(position));
                    let _ = writeln!(text, "      n{position} [label={name}{shape}];");
                }
                if is_boxed {
                    text.push_str("    }\n");
                }
            }
            text.push_str("  }\n");
        }
        for (position, node) in self.nodes().iter().enumerate() {
            if node.kind == NodeKind::NvSwitch {
                let name = quoted(&self.name(position));
                let _ = writeln!(text, "  n{position} [label={name}, shape=hexagon];");
            }
        }
        for link in self.links().iter().filter(|link| self.is_drawn(link)) {
            let is_alike = self.is_alike_back(link);
            if is_alike && link.from > link.to {
                continue;
            }
            let style = match link.bandwidth.quality() {
                Quality::Unknown => "dotted",
                Quality::Estimated => "dashed",
                Quality::Reported | Quality::Measured => "solid",
            };
            let direction = if is_alike { "" } else { ", dir=forward" };
            let label = quoted(&format!("{} {}", link.kind, link.bandwidth));
            let (from, to) = (link.from, link.to);
            let _ = writeln!(text, "  n{from} -- n{to} [label={label}, style={style}{direction}];");
        }
        text.push_str("}\n");
        text
    }

    fn is_drawn(&self, link: &Link) -> bool {
        let is_end =
            |at: usize| matches!(self.nodes()[at].kind, NodeKind::Gpu | NodeKind::NvSwitch);
        is_fabric(link.kind) && is_end(link.from) && is_end(link.to)
    }

    /// Whether the way back is the same kind with the same bandwidth.
    fn is_alike_back(&self, link: &Link) -> bool {
        self.links().iter().any(|back| {
            (back.from, back.to) == (link.to, link.from)
                && back.kind == link.kind
                && back.bandwidth == link.bandwidth
        })
    }
}

/// A text as Graphviz wants it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
