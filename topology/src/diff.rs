//! What changed between two descriptions of one machine.

use std::collections::BTreeSet;
use std::fmt;

use crate::merge::side_by_side;
use crate::{InterconnectType, Machine, Node, NodeKind, PcieWidth};

#[cfg(test)]
mod tests;

/// A difference between two descriptions of a machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// Whether someone should look at it.
    pub severity: Severity,
    /// What it is about: the name of a node, or of two.
    pub subject: String,
    /// What was, and what is now.
    pub text: String,
}

/// Whether someone should look at a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Something is gone, slower or narrower.
    Alarm,
    /// Something is new, better, or only different.
    Note,
}

/// `GPU3: PCIe at best was Gen4 x16, is Gen4 x8`.
impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.subject, self.text)
    }
}

impl Machine {
    /// What is different in this description from an older one of the same machine, alarms first.
    ///
    /// Nodes are matched as [`merge`](Self::merge) matches them: by PCI address, UUID or label. A
    /// PCIe link that runs slower now, but as wide as before and as well at best, is a note: idle
    /// cards save power. What only one of the two knows is no change.
    ///
    /// Costs O(nodes^2 x links) at worst.
    pub fn changes_since(&self, old: &Self) -> Vec<Change> {
        let nodes = side_by_side(old.observations(), self.observations());
        let mut changes = Changes { old, new: self, found: BTreeSet::new() };
        let mut kept = Vec::new();
        for (before, after) in nodes {
            match (before, after) {
                (Some(before), Some(after)) => {
                    changes.compare_nodes(before, after);
                    kept.push((before, after));
                }
                (Some(before), None) => changes.node(old, before, Severity::Alarm, "is gone"),
                (None, Some(after)) => changes.node(self, after, Severity::Note, "is new"),
                (None, None) => {}
            }
        }
        kept.retain(|&(before, _)| is_end(&old.nodes()[before]));
        for (number, &from) in kept.iter().enumerate() {
            for &to in &kept[number + 1..] {
                changes.compare_pairs(from, to);
                changes.compare_pairs(to, from);
            }
        }
        changes.found.into_iter().collect()
    }
}

/// Whether links are compared between such nodes.
const fn is_end(node: &Node) -> bool {
    matches!(node.kind, NodeKind::Gpu | NodeKind::Nic | NodeKind::NvSwitch)
}

struct Changes<'a> {
    old: &'a Machine,
    new: &'a Machine,
    /// Sorted, each once: both directions of a link often change alike.
    found: BTreeSet<Change>,
}

impl Changes<'_> {
    fn add(&mut self, severity: Severity, subject: impl Into<String>, text: impl Into<String>) {
        self.found.insert(Change { severity, subject: subject.into(), text: text.into() });
    }

    /// A node that only one description has. Bridges without a name come and go with the source.
    fn node(&mut self, machine: &Machine, position: usize, severity: Severity, text: &str) {
        let node = &machine.nodes()[position];
        if is_end(node) || (node.kind == NodeKind::PcieSwitch && node.pci.is_some()) {
            self.add(severity, machine.name(position), text);
        }
    }

    fn compare_nodes(&mut self, before: usize, after: usize) {
        let (old, new) = (&self.old.nodes()[before], &self.new.nodes()[after]);
        let name = self.new.name(after);
        let uplink = |node: &Node| node.uplink.unwrap_or_default();
        let best = [uplink(old).maximum, uplink(new).maximum];
        let now = [uplink(old).current, uplink(new).current];
        self.compare_widths(&name, "PCIe at best", best, true);
        self.compare_widths(&name, "PCIe now", now, false);
        if let (Some(was), Some(is)) = (old.nvlinks_up, new.nvlinks_up)
            && was != is
        {
            let severity = if is < was { Severity::Alarm } else { Severity::Note };
            self.add(severity, &name, format!("{was} NVLinks were up, {is} are"));
        }
        if !old.numa_nodes.is_empty()
            && !new.numa_nodes.is_empty()
            && old.numa_nodes != new.numa_nodes
        {
            let text = format!("NUMA nodes were {:?}, are {:?}", old.numa_nodes, new.numa_nodes);
            self.add(Severity::Note, &name, text);
        }
    }

    /// `slower_counts` is whether a lower generation is worth an alarm.
    fn compare_widths(
        &mut self,
        name: &str,
        what: &str,
        [was, is]: [PcieWidth; 2],
        slower_counts: bool,
    ) {
        let both = |field: fn(&PcieWidth) -> Option<u8>| field(&was).zip(field(&is));
        let generation = both(|width| width.generation);
        let lanes = both(|width| width.lanes);
        let differs = |pair: Option<(u8, u8)>| pair.is_some_and(|(was, is)| was != is);
        if !differs(generation) && !differs(lanes) {
            return;
        }
        let fewer = |pair: Option<(u8, u8)>| pair.is_some_and(|(was, is)| is < was);
        let is_worse = fewer(lanes) || (slower_counts && fewer(generation));
        let severity = if is_worse { Severity::Alarm } else { Severity::Note };
        let idle = if !is_worse && fewer(generation) { " (an idle card saves power)" } else { "" };
        self.add(severity, name, format!("{what} was {was}, is {is}{idle}"));
    }

    fn compare_pairs(&mut self, from: (usize, usize), to: (usize, usize)) {
        let was = self.old.class(from.0, to.0);
        let is = self.new.class(from.1, to.1);
        let mut names = [self.new.name(from.1), self.new.name(to.1)];
        names.sort();
        let subject = names.join(" - ");
        let both_known = was != InterconnectType::Unknown && is != InterconnectType::Unknown;
        if both_known && was.class_name() != is.class_name() {
            let severity = if is.rank() < was.rank() { Severity::Alarm } else { Severity::Note };
            self.add(severity, &subject, format!("was {was}, is {is}"));
        }
        let access = |machine: &Machine, from, to| machine.peer_access(from, to);
        match (access(self.old, from.0, to.0), access(self.new, from.1, to.1)) {
            (Some(true), Some(false)) => self.add(Severity::Alarm, &subject, "peer access is lost"),
            (Some(false), Some(true)) => self.add(Severity::Note, &subject, "has peer access now"),
            _ => {}
        }
    }
}

impl InterconnectType {
    /// Greater for what is better between the same two ends.
    fn rank(self) -> (u8, u16) {
        let sort = match self {
            Self::NvLink { .. } | Self::NvSwitch { .. } => 12,
            Self::InfinityFabric { .. } => 11,
            Self::XeLink { .. } => 10,
            Self::TileFabric => 9,
            Self::NvLinkC2c => 8,
            Self::HostMemory => 7,
            Self::XeLinkIndirect => 6,
            Self::PcieSwitch => 5,
            Self::PcieSwitches => 4,
            Self::HostBridge => 3,
            Self::Node => 2,
            Self::System | Self::Pcie { .. } => 1,
            Self::Unknown => 0,
        };
        (sort, self.link_count().unwrap_or(0))
    }
}

/// `Gen4 x16`, with `?` for what is not known.
impl fmt::Display for PcieWidth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = |value: Option<u8>| value.map_or_else(|| "?".to_owned(), |v| v.to_string());
        let text = format!("Gen{} x{}", known(self.generation), known(self.lanes));
        formatter.pad(&text)
    }
}
