//! Where everything is drawn.

use std::collections::BTreeMap;

use super::canvas::Canvas;
use super::fabric::Fabric;
use crate::draw::groups::{Group, Part, groups};
use crate::{Machine, PcieWidth};

pub(super) const GPU: [f64; 2] = [116.0, 56.0];
const NIC: [f64; 2] = [86.0, 24.0];
const GAP: f64 = 14.0;
/// Pixels of a letter in a box's title, on average.
const LETTER: f64 = 7.0;
const PADDING: f64 = 12.0;
const HEAD: f64 = 24.0;

/// GPUs of one part in a line, at most.
const MOST_IN_LINE: usize = 8;

/// Pixels of a line of parts before it is broken.
const MOST_WIDTH: f64 = 1180.0;

/// Between the two rows, where links or an NVSwitch are.
const CORRIDOR: f64 = 110.0;

/// The NVSwitch.
const BAR_HEIGHT: f64 = 34.0;

/// A box with a title.
struct Frame {
    class: &'static str,
    title: String,
    /// In the lower row titles are at the bottom, where no link passes.
    is_titled_below: bool,
    at: [f64; 2],
    size: [f64; 2],
}

/// All positions.
pub(super) struct Plan {
    pub(super) width: f64,
    pub(super) height: f64,
    frames: Vec<Frame>,
    /// The upper left corner of each GPU, and its row.
    pub(super) gpus: BTreeMap<usize, ([f64; 2], usize)>,
    nics: BTreeMap<usize, [f64; 2]>,
    /// The NVSwitch's top, if there is one.
    pub(super) bar: Option<f64>,
    /// The middle of each group with its row and number of GPUs, for links of many GPUs to a bar.
    pub(super) groups: Vec<([f64; 2], usize, usize)>,
}

impl Plan {
    pub(super) fn of(machine: &Machine, fabric: &Fabric, least_width: f64) -> Self {
        let groups = groups(machine);
        let bar_label =
            if fabric.has_switch() { super::fabric::switch_label(machine) } else { String::new() };
        let mut plan = Self {
            width: least_width.max(7.0 * bar_label.chars().count() as f64 + 24.0),
            height: 0.0,
            frames: Vec::new(),
            gpus: BTreeMap::new(),
            nics: BTreeMap::new(),
            bar: None,
            groups: Vec::new(),
        };
        let half = if groups.len() > 1 { groups.len().div_ceil(2) } else { groups.len() };
        let (upper, lower) = groups.split_at(half);
        let upper_bottom = plan.add_row(upper, 0, 0.0, fabric);
        let is_connected = fabric.has_switch() || fabric.crosses(upper, lower);
        let corridor = if is_connected { CORRIDOR } else { 18.0 };
        plan.height = upper_bottom;
        if fabric.has_switch() {
            plan.bar = Some(upper_bottom + (CORRIDOR - BAR_HEIGHT) / 2.0);
            plan.height = upper_bottom + (CORRIDOR + BAR_HEIGHT) / 2.0;
        }
        if !lower.is_empty() {
            plan.height = plan.add_row(lower, 1, upper_bottom + corridor, fabric);
        }
        plan.centre();
        plan
    }

    /// Adds a row of groups and returns its bottom.
    fn add_row(&mut self, groups: &[Group], row: usize, top: f64, fabric: &Fabric) -> f64 {
        let arcs = fabric.arc_height(groups);
        let sizes: Vec<[f64; 2]> =
            groups.iter().map(|group| group_size(group, row, arcs)).collect();
        let height = sizes.iter().map(|size| size[1]).fold(0.0, f64::max);
        let mut x = 0.0;
        for (group, &[width, own_height]) in groups.iter().zip(&sizes) {
            let (title, size) = (group.title.clone(), [width, height]);
            let is_titled_below = row == 1;
            self.frames.push(Frame { class: "numa", title, is_titled_below, at: [x, top], size });
            let gpus = group.parts.iter().map(|part| part.gpus.len()).sum();
            let edge = if row == 0 { top + height } else { top };
            self.groups.push(([x + width / 2.0, edge], row, gpus));
            // The GPUs of the upper row are at the bottom, whatever the heights of the groups.
            let slack = if row == 0 { height - own_height } else { 0.0 };
            let mut y = top + slack + if row == 0 { HEAD } else { PADDING };
            for line in lines(&group.parts, row, arcs) {
                let line_height = line_size(&line, arcs)[1];
                let mut part_x = x + PADDING;
                for part in line {
                    let inner = [part_size(part, arcs)[0], line_height];
                    self.add_part(part, row, [part_x, y], inner, arcs);
                    part_x += inner[0] + GAP;
                }
                y += line_height + GAP;
            }
            x += width + GAP;
        }
        self.width = self.width.max(x - GAP);
        top + height
    }

    /// In the upper row NICs come first, then arcs, then GPUs; in the lower one the other way.
    fn add_part(&mut self, part: &Part, row: usize, at: [f64; 2], size: [f64; 2], arcs: f64) {
        let is_boxed = !part.title.is_empty();
        if is_boxed {
            let title = part.title.clone();
            let is_titled_below = row == 1;
            self.frames.push(Frame { class: "part", title, is_titled_below, at, size });
        }
        let (inset, head) = match (is_boxed, row) {
            (false, _) => (0.0, 0.0),
            (true, 0) => (PADDING, HEAD),
            (true, _) => (PADDING, PADDING),
        };
        let lines = part.gpus.len().div_ceil(MOST_IN_LINE);
        let gpu_height = lines as f64 * (GPU[1] + GAP) - if lines > 0 { GAP } else { 0.0 };
        let bottom = at[1] + size[1] - if is_boxed { PADDING } else { 0.0 };
        let gpu_top = if row == 0 { bottom - gpu_height } else { at[1] + head };
        for (number, &gpu) in part.gpus.iter().enumerate() {
            let (column, line) = (number % MOST_IN_LINE, number / MOST_IN_LINE);
            let x = at[0] + inset + column as f64 * (GPU[0] + GAP);
            let y = gpu_top + line as f64 * (GPU[1] + GAP);
            self.gpus.insert(gpu, ([x, y], row));
        }
        let per_line = nics_in_line(part);
        let between = if part.gpus.is_empty() { 0.0 } else { GAP + arcs };
        let nic_top = if row == 0 { at[1] + head } else { gpu_top + gpu_height + between };
        for (number, &nic) in part.nics.iter().enumerate() {
            let x = at[0] + inset + (number % per_line) as f64 * (NIC[0] + 8.0);
            let y = nic_top + (number / per_line) as f64 * (NIC[1] + 8.0);
            self.nics.insert(nic, [x, y]);
        }
    }

    /// Puts the narrower row over the middle of the wider.
    fn centre(&mut self) {
        for row in 0..2 {
            let of_row = |frame: &&Frame| {
                self.groups.iter().any(|([x, edge], this, _)| {
                    let [left, top] = frame.at;
                    let [width, height] = frame.size;
                    *this == row
                        && (*edge - top).abs().min((*edge - top - height).abs()) < 0.5
                        && (left..=left + width).contains(x)
                        && frame.class == "numa"
                })
            };
            let right =
                self.frames.iter().filter(of_row).map(|f| f.at[0] + f.size[0]).fold(0.0, f64::max);
            let shift = ((self.width - right) / 2.0).max(0.0);
            let tops: Vec<[f64; 2]> = self
                .frames
                .iter()
                .filter(of_row)
                .map(|frame| [frame.at[1], frame.at[1] + frame.size[1]])
                .collect();
            let is_in_row = |y: f64| tops.iter().any(|[top, bottom]| (*top..=*bottom).contains(&y));
            for frame in self.frames.iter_mut().filter(|frame| is_in_row(frame.at[1])) {
                frame.at[0] += shift;
            }
            for (at, this) in self.gpus.values_mut() {
                at[0] += if *this == row { shift } else { 0.0 };
            }
            for at in self.nics.values_mut().filter(|at| is_in_row(at[1])) {
                at[0] += shift;
            }
            for (at, this, _) in &mut self.groups {
                at[0] += if *this == row { shift } else { 0.0 };
            }
        }
    }

    pub(super) fn draw_boxes(&self, machine: &Machine, canvas: &mut Canvas) {
        for Frame { class, title, is_titled_below, at, size } in &self.frames {
            canvas.rectangle(class, *at, *size);
            let y = if *is_titled_below { at[1] + size[1] - 8.0 } else { at[1] + 17.0 };
            canvas.text("head", [at[0] + PADDING, y], &shortened(title, size[0] - 20.0));
        }
        if let Some(top) = self.bar {
            canvas.rectangle("switch", [0.0, top], [self.width, BAR_HEIGHT]);
            let label = super::fabric::switch_label(machine);
            canvas.text("bar", [self.width / 2.0, top + 22.0], &label);
        }
    }

    pub(super) fn draw_devices(&self, machine: &Machine, canvas: &mut Canvas) {
        for (&gpu, &(at, _)) in &self.gpus {
            canvas.rectangle("gpu", at, GPU);
            let middle = at[0] + GPU[0] / 2.0;
            let details = details(machine, gpu);
            let lines = details.len().min(2) as f64;
            let y = at[1] + GPU[1] / 2.0 + 5.0 - 6.5 * lines;
            canvas.text("name", [middle, y], &machine.name(gpu));
            for (line, text) in details.iter().take(2).enumerate() {
                let y = y + 15.0 + 13.0 * line as f64;
                canvas.text("detail", [middle, y], &shortened(text, GPU[0]));
            }
        }
        for (&nic, &at) in &self.nics {
            canvas.rectangle("nic", at, NIC);
            let name = shortened(&machine.name(nic), NIC[0]);
            canvas.text("chip", [at[0] + NIC[0] / 2.0, at[1] + 16.0], &name);
        }
    }

    pub(super) const fn bar_edges(&self) -> Option<[f64; 2]> {
        match self.bar {
            Some(top) => Some([top, top + BAR_HEIGHT]),
            None => None,
        }
    }
}

fn nics_in_line(part: &Part) -> usize {
    let columns = part.gpus.len().clamp(1, MOST_IN_LINE) as f64;
    let width = columns * (GPU[0] + GAP) - GAP;
    let mut fitting = 1;
    while (fitting + 1) as f64 * (NIC[0] + 8.0) - 8.0 <= width {
        fitting += 1;
    }
    // Many of them without GPUs make a block, not a column.
    if part.gpus.is_empty() { part.nics.len().clamp(1, 6) } else { fitting }
}

fn part_size(part: &Part, arcs: f64) -> [f64; 2] {
    let columns = part.gpus.len().min(MOST_IN_LINE);
    let lines = part.gpus.len().div_ceil(MOST_IN_LINE);
    let per_line = nics_in_line(part);
    let nic_lines = part.nics.len().div_ceil(per_line);
    let gpu_width = columns as f64 * (GPU[0] + GAP) - GAP;
    let nic_width = part.nics.len().min(per_line) as f64 * (NIC[0] + 8.0) - 8.0;
    let mut size = [gpu_width.max(nic_width), 0.0];
    if lines > 0 {
        size[1] += lines as f64 * (GPU[1] + GAP) - GAP + arcs;
    }
    if nic_lines > 0 {
        size[1] += nic_lines as f64 * (NIC[1] + 8.0) - 8.0 + if lines > 0 { GAP } else { 0.0 };
    }
    if !part.title.is_empty() {
        let title_width = LETTER * part.title.chars().count() as f64;
        size = [size[0].max(title_width) + 2.0 * PADDING, size[1] + HEAD + PADDING];
    }
    size
}

/// The parts of a group in lines that fit the widest drawing. Where one line does not do, those
/// without GPUs stand apart, on the side where no link passes.
fn lines(parts: &[Part], row: usize, arcs: f64) -> Vec<Vec<&Part>> {
    let all: Vec<&Part> = parts.iter().collect();
    if line_size(&all, arcs)[0] <= MOST_WIDTH {
        return vec![all];
    }
    let (with_gpus, without): (Vec<&Part>, Vec<&Part>) =
        all.into_iter().partition(|part| !part.gpus.is_empty());
    let mut lines = broken(&with_gpus, arcs);
    let others = broken(&without, arcs);
    let at = if row == 0 { 0 } else { lines.len() };
    lines.splice(at..at, others);
    lines
}

fn broken<'p>(parts: &[&'p Part], arcs: f64) -> Vec<Vec<&'p Part>> {
    let mut lines: Vec<Vec<&Part>> = Vec::new();
    for &part in parts {
        match lines.last_mut() {
            Some(line) => {
                line.push(part);
                if line_size(line, arcs)[0] > MOST_WIDTH {
                    line.pop();
                    lines.push(vec![part]);
                }
            }
            None => lines.push(vec![part]),
        }
    }
    lines
}

fn line_size(line: &[&Part], arcs: f64) -> [f64; 2] {
    let sizes = || line.iter().map(|part| part_size(part, arcs));
    let width: f64 = sizes().map(|size| size[0] + GAP).sum();
    [width - GAP, sizes().map(|size| size[1]).fold(0.0, f64::max)]
}

fn group_size(group: &Group, row: usize, arcs: f64) -> [f64; 2] {
    let sizes: Vec<[f64; 2]> =
        lines(&group.parts, row, arcs).iter().map(|line| line_size(line, arcs)).collect();
    let width = sizes.iter().map(|size| size[0]).fold(0.0, f64::max);
    let height: f64 = sizes.iter().map(|size| size[1] + GAP).sum();
    [(width + 2.0 * PADDING).max(150.0), height - GAP + HEAD + PADDING]
}

/// What is written in a GPU's box below its name.
fn details(machine: &Machine, gpu: usize) -> Vec<String> {
    let node = &machine.nodes()[gpu];
    let uplink = node.uplink.unwrap_or_default();
    let best = if uplink.maximum == PcieWidth::default() { uplink.current } else { uplink.maximum };
    let pcie = (best != PcieWidth::default()).then(|| format!("PCIe {best}"));
    let address = node.pci.map(|pci| pci.to_string());
    pcie.into_iter().chain(address).chain(node.architecture.clone()).collect()
}

/// A text that fits a width.
fn shortened(text: &str, width: f64) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    let is_too_long = |letters: &Vec<char>| letters.len() as f64 * LETTER * 0.9 > width;
    if !is_too_long(&letters) {
        return text.to_owned();
    }
    while is_too_long(&letters) && letters.len() > 1 {
        letters.pop();
    }
    letters.pop();
    letters.into_iter().chain("..".chars()).collect()
}
