//! `nvidia-smi topo -p2p`: whether each GPU has access to the memory of each other.

use std::collections::BTreeMap;

use super::complaint::complaint;
use super::header::Header;
use super::matrix::{Cell, read_row};
use crate::source::text::{Line, lines, without_escapes};
use crate::source::{Format, SourceError};
use crate::{Node, NodeKind, Observations, Pair, PeerCapability, PeerStatus, Statement, Tool};

#[cfg(test)]
mod tests;

impl Cell for PeerStatus {
    fn begins(text: &str) -> Option<(Self, usize)> {
        const NAMES: [(&str, PeerStatus); 7] = [
            ("OK", PeerStatus::Supported),
            ("CNS", PeerStatus::ChipsetNotSupported),
            ("GNS", PeerStatus::GpuNotSupported),
            ("TNS", PeerStatus::TopologyNotSupported),
            ("NS", PeerStatus::NotSupported),
            ("DR", PeerStatus::DisabledByRegistryKey),
            ("U", PeerStatus::Unknown),
        ];
        let (name, status) = NAMES.iter().find(|(name, _)| text.starts_with(name))?;
        Some((*status, name.len()))
    }
}

/// Whether the text holds a matrix of peer access.
pub(in crate::source) fn recognizes(text: &str) -> bool {
    !sections(&lines(&without_escapes(text))).is_empty()
}

/// Reads every matrix of the text.
pub(in crate::source) fn read(text: &str) -> Result<Observations, SourceError> {
    let plain = without_escapes(text);
    let lines = lines(&plain);
    let sections = sections(&lines);
    if sections.is_empty() {
        let (line, reason) = complaint(text).unwrap_or_else(|| {
            let reason = "no matrix of peer access was found; give the whole output of \
                          `nvidia-smi topo -p2p r`, from its header line on";
            (None, reason.to_owned())
        });
        return Err(SourceError::new(Format::NvidiaSmiPeer, line, reason));
    }
    let mut all = Observations::default();
    let mut positions = BTreeMap::new();
    for section in &sections {
        section.read(&mut all, &mut positions)?;
    }
    Ok(all)
}

/// A header, its rows, and what was asked.
struct Section<'t> {
    header: Header,
    line: usize,
    /// What the command line before it asks for, if there is one.
    asked: Option<Vec<PeerCapability>>,
    rows: Vec<(usize, &'t str, Line<'t>)>,
}

fn sections<'t>(lines: &[Line<'t>]) -> Vec<Section<'t>> {
    let mut sections: Vec<Section<'t>> = Vec::new();
    let mut asked = None;
    for line in lines {
        if let Some(capabilities) = asked_by(line.text) {
            asked = Some(capabilities);
        } else if let Some(header) = Header::of(line.text) {
            let asked = asked.take().filter(|_| header.trailing.is_empty());
            sections.push(Section { header, line: line.number, asked, rows: Vec::new() });
        } else if let Some(section) = sections.last_mut()
            && let Some((column, rest)) = section.header.row_of(line.text)
            && has_statuses(rest, &section.header)
        {
            section.rows.push((column, rest, *line));
        }
    }
    sections.retain(|section| !section.rows.is_empty());
    sections
}

/// What a command line asks for: `nvidia-smi topo -p2p rw`.
fn asked_by(line: &str) -> Option<Vec<PeerCapability>> {
    let (_, after) = line.split_once("-p2p")?;
    let letters = after.split_whitespace().next()?;
    letters
        .chars()
        .map(|letter| match letter {
            'r' => Some(PeerCapability::Read),
            'w' => Some(PeerCapability::Write),
            'n' => Some(PeerCapability::NvLink),
            'a' => Some(PeerCapability::Atomics),
            'p' => Some(PeerCapability::Pcie),
            _ => None,
        })
        .collect()
}

/// Whether a row has what a matrix of peer access has: a status, or the mark of a single GPU.
fn has_statuses(rest: &str, header: &Header) -> bool {
    let words = || rest.split(['\t', ' ', '|']).filter(|word| !word.is_empty());
    let is_alone = header.labels.len() == 1 && header.trailing.is_empty();
    words().any(|word| PeerStatus::begins(word).is_some() && word.len() <= 3)
        || (is_alone && words().eq(["X"]))
}

impl Section<'_> {
    fn read(
        &self,
        all: &mut Observations,
        positions: &mut BTreeMap<String, usize>,
    ) -> Result<(), SourceError> {
        if let Some(name) = self.header.repeated() {
            let reason = format!("{name} stands over two columns; paste the header line again");
            return Err(SourceError::new(Format::NvidiaSmiPeer, self.line, reason));
        }
        for label in &self.header.labels {
            positions.entry(label.clone()).or_insert_with(|| {
                all.add_node(Node::new(NodeKind::Gpu).labelled(Tool::NvidiaSmi, label))
            });
        }
        let capabilities = self.asked.clone().unwrap_or_else(|| {
            let text = "the command line is missing, so reading is taken as what was asked for";
            all.warn(self.line, text);
            vec![PeerCapability::Read]
        });
        let mut seen = vec![false; self.header.labels.len()];
        for (column, text, line) in &self.rows {
            let name = &self.header.labels[*column];
            let row = read_row::<PeerStatus>(&self.header, *column, text);
            let Some(row) = row.filter(|_| !seen[*column]) else {
                all.warn(
                    line.number,
                    format!("this row of {name} is doubtful or comes twice; left out"),
                );
                continue;
            };
            seen[*column] = true;
            if row.is_damaged {
                let text = format!(
                    "the row of {name} has not as many cells as the header has columns; the part \
                     that does not fit is left out"
                );
                all.warn(line.number, text);
            }
            for (to, status) in row.cells.iter().enumerate() {
                let Some(status) = *status else { continue };
                let (from, to) = (positions[name], positions[&self.header.labels[to]]);
                all.pairs.extend(capabilities.iter().map(|&capability| {
                    let statement = Statement::Peer { capability, status };
                    Pair { from, to, statement, line: Some(line.number) }
                }));
            }
        }
        if seen.contains(&false) {
            all.warn(self.line, "there are columns without rows; the text may be cut");
        }
        Ok(())
    }
}
