//! What the lines mean, as far as they occur.

use std::collections::BTreeMap;

use super::canvas::Canvas;
use super::fabric::{Fabric, classes, is_counted};
use super::style;
use crate::{Machine, Quality};

/// A sample of a line, and what it means.
pub(super) struct Entry {
    class: String,
    width: f64,
    text: String,
    is_guess: bool,
}

const ENTRY_WIDTH: f64 = 230.0;
const LINE: f64 = 22.0;

/// An entry for each kind of link by number and bandwidth, and one for each quality that is not
/// measured or reported.
pub(super) fn entries(machine: &Machine, fabric: &Fabric) -> Vec<Entry> {
    let mut kinds: BTreeMap<String, Entry> = BTreeMap::new();
    let mut qualities = Vec::new();
    for link in fabric.pairs.iter().chain(&fabric.to_switch) {
        let text = format!("{}, {} GB/s", link.kind, link.bandwidth);
        let is_guess = link.bandwidth.quality() < Quality::Reported;
        let width = if is_counted(link.kind) { style::width(link.kind) } else { 1.7 };
        kinds.entry(text.clone()).or_insert(Entry { class: classes(link), width, text, is_guess });
        qualities.push(link.bandwidth.quality());
    }
    let mut entries: Vec<Entry> = kinds.into_values().take(12).collect();
    let quality = |quality, text: &str| Entry {
        class: format!("other {}", style::quality(quality)),
        width: 1.7,
        text: text.to_owned(),
        is_guess: true,
    };
    if qualities.contains(&Quality::Estimated) {
        entries.push(quality(Quality::Estimated, "dashed, ~: estimated by a rule"));
    }
    if qualities.contains(&Quality::Unknown) {
        entries.push(quality(Quality::Unknown, "dotted, ?: bandwidth not known"));
    }
    if entries.is_empty() && machine.gpus().len() > 1 {
        entries.push(Entry {
            class: "other".to_owned(),
            width: 0.0,
            text: "no fabric between the GPUs is known: they meet over PCIe".to_owned(),
            is_guess: false,
        });
    }
    entries
}

fn columns(width: f64) -> usize {
    let mut columns = 1;
    while (columns + 1) as f64 * ENTRY_WIDTH <= width {
        columns += 1;
    }
    columns
}

pub(super) fn height(entries: &[Entry], width: f64) -> f64 {
    entries.len().div_ceil(columns(width)) as f64 * LINE + 12.0
}

pub(super) fn draw(entries: &[Entry], width: f64, top: f64, canvas: &mut Canvas) {
    let columns = columns(width);
    for (number, entry) in entries.iter().enumerate() {
        let x = (number % columns) as f64 * ENTRY_WIDTH;
        let y = top + 8.0 + (number / columns) as f64 * LINE;
        let mut text_x = x;
        if entry.width > 0.0 {
            canvas.line(&entry.class, entry.width, &[[x, y], [x + 34.0, y]], &entry.text);
            text_x += 44.0;
        }
        let class = if entry.is_guess { "small guess" } else { "small" };
        canvas.text(class, [text_x, y + 4.0], &entry.text);
    }
}
