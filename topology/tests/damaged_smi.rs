//! Recorded output of rocm-smi, amd-smi and xpu-smi, damaged at random: what a line says that
//! nothing happened to, it said before.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use hopwise_topology::{Format, Node, Observations, read_text};
use proptest::prelude::*;

/// A recorded file and its format.
type Recorded = (String, Format);

fn recorded() -> Vec<Recorded> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    let mut recorded = Vec::new();
    for (directory, prefix, format) in [
        ("rocm-smi", "", Format::RocmSmi),
        ("other", "amd-smi", Format::AmdSmi),
        ("xpu-smi", "", Format::XpuSmi),
    ] {
        let Ok(entries) = fs::read_dir(folder.join(directory)) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name.to_string_lossy().starts_with(prefix) {
                recorded.push((fs::read_to_string(entry.path()).unwrap(), format));
            }
        }
    }
    recorded
}

/// A line of a damaged text, and which line it was.
#[derive(Clone, Debug)]
struct Line {
    text: String,
    origin: usize,
    is_touched: bool,
}

/// What happens to a line; the numbers count around.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Delete(usize),
    Repeat(usize, usize),
    Swap(usize, usize),
    Change(usize, usize, u8),
    LoseBlanks(usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let place = || 0_usize..10_000;
    prop_oneof![
        place().prop_map(Damage::Delete),
        (place(), place()).prop_map(|(line, to)| Damage::Repeat(line, to)),
        (place(), place()).prop_map(|(line, with)| Damage::Swap(line, with)),
        (place(), place(), 32_u8..127).prop_map(|(line, at, byte)| Damage::Change(line, at, byte)),
        place().prop_map(Damage::LoseBlanks),
    ]
}

fn apply(damage: Damage, lines: &mut Vec<Line>) {
    let count = lines.len().max(1);
    match damage {
        _ if lines.is_empty() => {}
        Damage::Delete(line) => _ = lines.remove(line % count),
        Damage::Repeat(line, to) => lines.insert(to % count, lines[line % count].clone()),
        Damage::Swap(line, with) => lines.swap(line % count, with % count),
        Damage::Change(line, at, byte) => {
            let line = &mut lines[line % count];
            if line.text.is_ascii() && !line.text.is_empty() {
                let at = at % line.text.len();
                line.text.replace_range(at..=at, &char::from(byte).to_string());
                line.is_touched = true;
            }
        }
        Damage::LoseBlanks(line) => {
            let line = &mut lines[line % count];
            line.text = line.text.replacen("   ", "", 2);
            line.is_touched = true;
        }
    }
}

fn name(node: &Node) -> String {
    let label = node.labels.first().map(|label| label.name.clone());
    node.pci.map(|pci| pci.to_string()).or(label).unwrap_or_default()
}

/// A statement with the names of its ends.
type Said = (String, String, String);

/// What each line says, numbered from 0.
fn by_line(observations: &Observations) -> BTreeMap<usize, Vec<Said>> {
    let mut by_line: BTreeMap<usize, Vec<Said>> = BTreeMap::new();
    for pair in &observations.pairs {
        let [from, to] = [pair.from, pair.to].map(|node| name(&observations.nodes[node]));
        let said = (from, to, format!("{:?}", pair.statement));
        by_line.entry(pair.line.unwrap() - 1).or_default().push(said);
    }
    by_line
}

fn read(text: &str, format: Format) -> Option<Observations> {
    let readings = read_text(text, Some(format)).ok()?;
    readings.into_iter().next().map(|reading| reading.observations)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_line_that_was_spared_says_nothing_new(
        damages in prop::collection::vec(damage(), 0..4),
        cut in prop::option::of(0_usize..1000),
    ) {
        for (text, format) in recorded() {
            let before = read(&text, format).as_ref().map(by_line).unwrap_or_default();
            let mut lines: Vec<Line> = text
                .lines()
                .enumerate()
                .map(|(origin, text)| Line { text: text.to_owned(), origin, is_touched: false })
                .collect();
            damages.iter().for_each(|damage| apply(*damage, &mut lines));
            let mut damaged: String =
                lines.iter().flat_map(|line| [line.text.as_str(), "\n"]).collect();
            if let Some(cut) = cut {
                let end = damaged.len() * cut / 1000;
                damaged.truncate(damaged.floor_char_boundary(end));
            }
            let after = read(&damaged, format).as_ref().map(by_line).unwrap_or_default();
            // The label of a column may have been changed into a new one.
            let names: BTreeSet<&str> =
                before.values().flatten().map(|(from, ..)| from.as_str()).collect();
            for (number, says) in after {
                let line = &lines[number];
                let said = before.get(&line.origin).map_or(&[][..], Vec::as_slice);
                for statement in says.iter().filter(|_| !line.is_touched) {
                    let is_new = !names.contains(statement.1.as_str());
                    prop_assert!(
                        is_new || said.contains(statement),
                        "{statement:?} in line {number}: {damaged}"
                    );
                }
            }
        }
    }
}
