//! `xpu-smi topology`: the matrix of tiles, or the table about one device.

use std::collections::BTreeMap;

use super::text::{Line, lines, without_escapes};
use super::{Format, SourceError};
use crate::{InterconnectType, Node, NodeKind, Observations, Pair, Statement, Tool};

#[cfg(test)]
mod tests;

/// Whether the text has a row of the matrix, or the title of the table.
pub(super) fn recognizes(text: &str) -> bool {
    text.contains("Topology Information")
        || text.lines().filter(|line| tiles(line).0.len() == 1).count() > 0
            && text.lines().any(|line| {
                line.trim_start().starts_with("GPU ") && tiles(line).1.contains(['S', 'X'])
            })
}

/// Reads the matrix, or the table.
pub(super) fn read(text: &str) -> Result<Observations, SourceError> {
    let plain = without_escapes(text);
    let lines = lines(&plain);
    let is_header = |line: &&Line<'_>| {
        let (tiles, rest) = tiles(line.text);
        !tiles.is_empty() && (rest.is_empty() || rest.starts_with("CPU"))
    };
    let Some(header) = lines.iter().find(is_header) else { return read_table(&lines) };
    let (names, _) = tiles(header.text);
    let mut all = Observations::default();
    add_tiles(&names, &mut all);
    let mut seen = vec![false; names.len()];
    for line in lines.iter().filter(|line| line.number != header.number) {
        let (row, rest) = tiles(line.text);
        let [name] = &row[..] else { continue };
        let Some(own) = names.iter().position(|other| other == name) else { continue };
        let words: Vec<&str> =
            rest.split([' ', '\t', '|']).filter(|word| !word.is_empty()).collect();
        if std::mem::replace(&mut seen[own], true) {
            all.warn(line.number, format!("GPU {name} has two rows; the second is left out"));
            continue;
        }
        read_row(&mut all, &names, own, &words, *line);
    }
    if seen.contains(&false) {
        all.warn(header.number, "there are columns without rows; the text may be cut");
    }
    Ok(all)
}

/// The tiles that a line begins with, `0/1` of `GPU 0/1`, and what follows.
fn tiles(line: &str) -> (Vec<String>, &str) {
    let mut names = Vec::new();
    let mut rest = line.trim_start_matches([' ', '\t', '|']);
    while let Some(after) = rest.strip_prefix("GPU ") {
        let end = after.find(|c: char| !c.is_ascii_digit() && c != '/').unwrap_or(after.len());
        let name = &after[..end];
        let is_tile = name.split_once('/').is_some_and(|(device, tile)| {
            (1..=4).contains(&device.len()) && (1..=2).contains(&tile.len()) && !tile.contains('/')
        });
        if !is_tile {
            break;
        }
        names.push(name.to_owned());
        rest = after[end..].trim_start_matches([' ', '\t', '|']);
    }
    (names, rest.trim())
}

/// A GPU for each tile, and a card for each device of several.
fn add_tiles(names: &[String], all: &mut Observations) {
    let device = |name: &str| name.split('/').next().unwrap_or_default().to_owned();
    let mut tiles_of: BTreeMap<String, usize> = BTreeMap::new();
    for name in names {
        all.add_node(Node::new(NodeKind::Gpu).labelled(Tool::XpuSmi, format!("GPU {name}")));
        *tiles_of.entry(device(name)).or_default() += 1;
    }
    for (number, count) in tiles_of {
        if count > 1 {
            let label = format!("device {number}");
            let card = all.add_node(Node::new(NodeKind::Card).labelled(Tool::XpuSmi, label));
            for (position, _) in names.iter().enumerate().filter(|(_, name)| device(name) == number)
            {
                all.nodes[position].card = Some(card);
            }
        }
    }
}

fn read_row(all: &mut Observations, names: &[String], own: usize, words: &[&str], line: Line<'_>) {
    let due = names.len();
    let cells: Option<Vec<_>> = words.iter().take(due).map(|word| class(word)).collect();
    let cells = cells.filter(|cells| {
        let marks = cells.iter().enumerate().filter(|(_, cell)| cell.is_none());
        cells.len() == due && marks.map(|(at, _)| at).eq([own]) && words.len() <= due + 1
    });
    let Some(cells) = cells.filter(|_| !line.is_cut || words.len() > due) else {
        let text = format!("the row of GPU {} does not fit its header; it is left out", names[own]);
        all.warn(line.number, text);
        return;
    };
    for (to, cell) in cells.into_iter().enumerate() {
        if let Some(class) = cell {
            let statement = Statement::Class(class);
            all.pairs.push(Pair { from: own, to, statement, line: Some(line.number) });
        }
    }
    let is_list = |text: &&&str| text.bytes().all(|b| b.is_ascii_digit() || b == b'-' || b == b',');
    let affinity = words.get(due).filter(is_list).filter(|_| !line.is_cut);
    all.nodes[own].cpu_affinity = affinity.map(|text| (*text).to_owned());
}

/// What a cell says: nothing of a tile itself, or a class. `None` if it says nothing that is known.
fn class(word: &str) -> Option<Option<InterconnectType>> {
    Some(match word {
        "S" => None,
        "MDF" => Some(InterconnectType::TileFabric),
        "XL*" => Some(InterconnectType::XeLinkIndirect),
        "NODE" => Some(InterconnectType::Node),
        "SYS" => Some(InterconnectType::System),
        "PIX" => Some(InterconnectType::PcieSwitch),
        "PXB" => Some(InterconnectType::PcieSwitches),
        "PHB" => Some(InterconnectType::HostBridge),
        _ => {
            let links = word.strip_prefix("XL")?.parse().ok().filter(|&links| links > 0)?;
            Some(InterconnectType::XeLink { links })
        }
    })
}

/// The table of `xpu-smi topology -d 0`: a box with a column of fields, long ones wrapped.
fn read_table(lines: &[Line<'_>]) -> Result<Observations, SourceError> {
    let mut all = Observations::default();
    let mut device = None;
    for line in lines {
        let mut columns = line.text.trim().trim_matches('|').split('|').map(str::trim);
        let (Some(number), Some(field)) = (columns.next(), columns.next()) else { continue };
        if let Ok(number) = number.parse::<u32>() {
            let label = format!("GPU {number}");
            device = Some(all.add_node(Node::new(NodeKind::Gpu).labelled(Tool::XpuSmi, label)));
        }
        let (Some(device), Some((what, value))) = (device, field.split_once(": ")) else {
            continue;
        };
        match what {
            "Local CPU List" if !line.is_cut => {
                all.nodes[device].cpu_affinity = Some(value.to_owned());
            }
            // The path of the switch is cut to fit the box, so it has no address here.
            "PCIe Switch Count" if value.parse().is_ok_and(|count: u32| count > 0) => {
                let switch = all.add_node(Node::new(NodeKind::PcieSwitch));
                all.nodes[device].parent = Some(switch);
            }
            _ => {}
        }
    }
    if all.nodes.is_empty() {
        let reason = "no matrix and no table of devices was found; give the whole output of \
                      `xpu-smi topology -m`";
        return Err(SourceError::new(Format::XpuSmi, None, reason));
    }
    Ok(all)
}
