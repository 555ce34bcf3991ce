//! The links of the fabric.

use std::collections::BTreeSet;

use super::canvas::Canvas;
use super::place::{GPU, Plan};
use super::style;
use crate::draw::groups::Group;
use crate::draw::tree::is_fabric;
use crate::{Figure, InterconnectType, Link, Machine, NodeKind};

/// Pairs that are drawn as lines, at most; more would hide each other.
const MOST_LINES: usize = 40;

/// GPUs that have a line of their own to an NVSwitch, at most.
const MOST_AT_SWITCH: usize = 16;

/// What is drawn of the fabric.
pub(super) struct Fabric {
    /// A link for each pair of GPUs: the one from the lower position, or the only one.
    pub(super) pairs: Vec<Link>,
    /// A link from each GPU to an NVSwitch.
    pub(super) to_switch: Vec<Link>,
    /// Whether there are so many pairs that they are told in words.
    is_told: bool,
}

impl Fabric {
    pub(super) fn of(machine: &Machine) -> Self {
        let kind = |at: usize| machine.nodes()[at].kind;
        let fabric = || machine.links().iter().filter(|link| is_fabric(link.kind));
        let mut seen = BTreeSet::new();
        let pairs: Vec<Link> = fabric()
            .filter(|link| kind(link.from) == NodeKind::Gpu && kind(link.to) == NodeKind::Gpu)
            .filter(|link| seen.insert((link.from.min(link.to), link.from.max(link.to))))
            .cloned()
            .collect();
        let mut at_switch = BTreeSet::new();
        let to_switch: Vec<Link> = fabric()
            .filter(|link| kind(link.from) == NodeKind::Gpu && kind(link.to) == NodeKind::NvSwitch)
            .filter(|link| at_switch.insert(link.from))
            .cloned()
            .collect();
        let is_told = pairs.len() > MOST_LINES;
        Self { pairs, to_switch, is_told }
    }

    pub(super) const fn has_switch(&self) -> bool {
        !self.to_switch.is_empty()
    }

    /// Whether a drawn link leads from one row to the other.
    pub(super) fn crosses(&self, upper: &[Group], lower: &[Group]) -> bool {
        let is_in = |groups: &[Group], gpu: usize| {
            groups.iter().flat_map(|group| &group.parts).any(|part| part.gpus.contains(&gpu))
        };
        !self.is_told
            && self.pairs.iter().any(|link| {
                is_in(upper, link.from) && is_in(lower, link.to)
                    || is_in(lower, link.from) && is_in(upper, link.to)
            })
    }

    /// The height of the arcs within a row of groups.
    pub(super) fn arc_height(&self, groups: &[Group]) -> f64 {
        let row: Vec<usize> = groups
            .iter()
            .flat_map(|group| group.parts.iter().flat_map(|part| part.gpus.iter().copied()))
            .collect();
        let rank = |gpu: usize| row.iter().position(|&other| other == gpu);
        if self.is_told {
            return 0.0;
        }
        let heights = self.pairs.iter().filter_map(|link| {
            let (a, b) = (rank(link.from)?, rank(link.to)?);
            Some(arc(a.abs_diff(b)) * 0.75 + 8.0)
        });
        heights.fold(0.0, f64::max)
    }

    pub(super) fn draw(&self, machine: &Machine, plan: &Plan, canvas: &mut Canvas) {
        if !self.is_told {
            for link in &self.pairs {
                self.draw_pair(machine, plan, link, canvas);
            }
        }
        let Some([top, bottom]) = plan.bar_edges() else { return };
        let edge = |row: usize| if row == 0 { top } else { bottom };
        if self.to_switch.len() > MOST_AT_SWITCH {
            for &([x, y], row, gpus) in plan.groups.iter().filter(|(_, _, gpus)| *gpus > 0) {
                let link = &self.to_switch[0];
                let class = classes(link);
                let hint = format!("{gpus} GPUs");
                canvas.line(&class, 8.0, &[[x, y], [x, edge(row)]], &hint);
                let label_y = (y + edge(row)) / 2.0 + 4.0;
                canvas.text("small", [x + 12.0, label_y], &hint);
            }
            return;
        }
        for link in &self.to_switch {
            let Some(&([x, y], row)) = plan.gpus.get(&link.from) else { continue };
            let (x, y) = (x + GPU[0] / 2.0, if row == 0 { y + GPU[1] } else { y });
            let width = style::width(link.kind);
            canvas.line(&classes(link), width, &[[x, y], [x, edge(row)]], &hint(machine, link));
        }
    }

    /// An arc within a row, or a curve through the corridor between the rows.
    fn draw_pair(&self, machine: &Machine, plan: &Plan, link: &Link, canvas: &mut Canvas) {
        let (Some(&([ax, ay], a_row)), Some(&([bx, by], b_row))) =
            (plan.gpus.get(&link.from), plan.gpus.get(&link.to))
        else {
            return;
        };
        // Lines to different GPUs leave a box at different places.
        let lean =
            ((bx - ax) / (GPU[0] + 14.0) * 9.0).clamp(-GPU[0] / 2.0 + 8.0, GPU[0] / 2.0 - 8.0);
        let (a, b) = (ax + GPU[0] / 2.0 + lean, bx + GPU[0] / 2.0 - lean);
        let points = if a_row == b_row {
            let rank = |at: f64| {
                plan.gpus.values().filter(|([x, _], row)| *row == a_row && *x < at).count()
            };
            let rise = arc(rank(ax).abs_diff(rank(bx)));
            let (from, out) = if a_row == 0 { (0.0, -rise) } else { (GPU[1], rise) };
            [[a, ay + from], [a, ay + from + out], [b, by + from + out], [b, by + from]]
        } else {
            let (start, end) = if a_row == 0 { (ay + GPU[1], by) } else { (ay, by + GPU[1]) };
            let middle = (start + end) / 2.0;
            [[a, start], [a, middle], [b, middle], [b, end]]
        };
        let class = classes(link);
        canvas.line(&class, style::width(link.kind), &points, &hint(machine, link));
    }

    /// What is told in words.
    pub(super) fn notes(&self, machine: &Machine) -> Vec<String> {
        if !self.is_told {
            return Vec::new();
        }
        let kinds: BTreeSet<(String, String)> = self
            .pairs
            .iter()
            .map(|link| (link.kind.class_name(), link.bandwidth.to_string()))
            .collect();
        kinds
            .into_iter()
            .take(6)
            .map(|(class, bandwidth)| {
                let is_one = |link: &&Link| {
                    link.kind.class_name() == class && link.bandwidth.to_string() == bandwidth
                };
                let count = self.pairs.iter().filter(is_one).count();
                let all = machine.gpus().len() * machine.gpus().len().saturating_sub(1) / 2;
                format!("{class}, {bandwidth} GB/s: {count} of {all} pairs of GPUs")
            })
            .collect()
    }
}

/// How far the control points of an arc are from its ends, by how many GPUs it passes.
fn arc(distance: usize) -> f64 {
    (18.0 + 16.0 * distance as f64).min(150.0)
}

/// The classes of a link in the style sheet.
pub(super) fn classes(link: &Link) -> String {
    format!("{} {}", style::colour(link.kind), style::quality(link.bandwidth.quality()))
}

/// `GPU0 - GPU3: NV2, ~50 GB/s`
fn hint(machine: &Machine, link: &Link) -> String {
    let (from, to) = (machine.name(link.from), machine.name(link.to));
    format!("{from} - {to}: {}, {} GB/s", link.kind, link.bandwidth)
}

/// `NVSwitch: 18 NVLinks a GPU, ~450 GB/s`
pub(super) fn switch_label(machine: &Machine) -> String {
    let switches = machine.nodes().iter().filter(|node| node.kind == NodeKind::NvSwitch).count();
    let is_up = |link: &&Link| {
        machine.nodes()[link.from].kind == NodeKind::Gpu
            && machine.nodes()[link.to].kind == NodeKind::NvSwitch
    };
    let Some(first) = machine.links().iter().find(is_up).map(|link| link.from) else {
        return "NVSwitch".to_owned();
    };
    let of_first = || machine.links().iter().filter(is_up).filter(|link| link.from == first);
    let links: u32 = of_first().filter_map(|link| link.kind.link_count()).map(u32::from).sum();
    let bandwidths: Vec<&Figure> = of_first().map(|link| &link.bandwidth).collect();
    let total: Option<f64> = bandwidths.iter().map(|figure| figure.value()).sum();
    let mark = bandwidths.first().map_or("", |figure| figure.quality().mark());
    let rate = total.map_or_else(|| "? GB/s".to_owned(), |total| format!("{mark}{total} GB/s"));
    let name = if switches > 1 { format!("{switches} NVSwitches") } else { "NVSwitch".to_owned() };
    format!("{name}: {links} NVLinks a GPU, {rate} in each direction")
}

/// Whether links of this kind are drawn by width.
pub(super) const fn is_counted(kind: InterconnectType) -> bool {
    kind.link_count().is_some()
}
