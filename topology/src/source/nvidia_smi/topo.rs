//! `nvidia-smi topo -m`, in every layout that it has had, and as people paste it.

use std::collections::BTreeMap;

use super::affinity;
use super::complaint::complaint;
use super::header::{Header, gpu_number};
use super::matrix::{Cell, Row, read_row};
use crate::source::text::{Line, lines, without_escapes};
use crate::source::{Format, SourceError};
use crate::{InterconnectType, Node, NodeKind, Observations, Pair, Statement, Tool};

#[cfg(test)]
mod tests;

/// A class of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Class(InterconnectType);

impl Cell for Class {
    fn begins(text: &str) -> Option<(Self, usize)> {
        const NAMES: [(&str, InterconnectType); 6] = [
            ("PIX", InterconnectType::PcieSwitch),
            ("PXB", InterconnectType::PcieSwitches),
            ("PHB", InterconnectType::HostBridge),
            ("NODE", InterconnectType::Node),
            ("SYS", InterconnectType::System),
            ("SOC", InterconnectType::System), // its old name
        ];
        let named = NAMES.iter().find(|(name, _)| text.starts_with(name));
        if let Some((name, class)) = named {
            return Some((Self(*class), name.len()));
        }
        let digits = text.strip_prefix("NV")?;
        let count = digits.bytes().take(2).take_while(u8::is_ascii_digit).count();
        let links = digits[..count].parse().ok().filter(|&links| links > 0)?;
        Some((Self(InterconnectType::NvLink { generation: None, links }), 2 + count))
    }
}

/// Whether the text holds a matrix of classes, or what nvidia-smi says in its place.
pub(in crate::source) fn recognizes(text: &str) -> bool {
    !sections(&lines(&without_escapes(text))).is_empty() || complaint(text).is_some()
}

/// Reads the first whole matrix of a text.
pub(in crate::source) fn read(text: &str) -> Result<Observations, SourceError> {
    let plain = without_escapes(text);
    let lines = lines(&plain);
    let sections = sections(&lines);
    let is_whole = |section: &&Section<'_>| section.rows.len() >= section.header.gpus();
    let most = || sections.iter().rev().max_by_key(|section| section.rows.len());
    let Some(section) = sections.iter().find(is_whole).or_else(most) else {
        return Err(nothing(text));
    };
    let mut all = Observations::default();
    if sections.len() > 1 {
        let text = format!(
            "the text holds {} matrices; the one of this line is read, the others are not",
            sections.len()
        );
        all.warn(section.line, text);
    }
    if let Some(name) = section.header.repeated() {
        let reason = format!("{name} stands over two columns; paste the header line again");
        return Err(SourceError::new(Format::NvidiaSmiTopo, section.line, reason));
    }
    Reader { section, all }.read(&lines)
}

fn nothing(text: &str) -> SourceError {
    let (line, reason) = complaint(text).unwrap_or_else(|| {
        let reason = "no matrix of GPUs was found; give the whole output of `nvidia-smi topo -m`, \
                      from its header line on";
        (None, reason.to_owned())
    });
    SourceError::new(Format::NvidiaSmiTopo, line, reason)
}

/// A header and its rows.
struct Section<'t> {
    header: Header,
    line: usize,
    /// Column, text after the name, and line of each row.
    rows: Vec<(usize, &'t str, Line<'t>)>,
}

/// The matrices of a text. Rows before the only header belong to it, too: lines may be moved.
fn sections<'t>(lines: &[Line<'t>]) -> Vec<Section<'t>> {
    let headers: Vec<(usize, Header)> = lines
        .iter()
        .enumerate()
        .filter_map(|(at, line)| Some((at, Header::of(line.text)?)))
        .collect();
    let mut sections = Vec::new();
    for (number, (at, header)) in headers.iter().enumerate() {
        let start = if headers.len() == 1 { 0 } else { at + 1 };
        let end = headers.get(number + 1).map_or(lines.len(), |(next, _)| *next);
        let rows: Vec<_> = lines[start..end]
            .iter()
            .filter_map(|line| {
                let (column, rest) = header.row_of(line.text)?;
                has_classes(rest, header).then_some((column, rest, *line))
            })
            .collect();
        if !rows.is_empty() {
            sections.push(Section { header: header.clone(), line: lines[*at].number, rows });
        }
    }
    sections
}

/// Whether a row has what a matrix of classes has: a class, or, where there is a single GPU, its
/// own mark and an affinity.
fn has_classes(rest: &str, header: &Header) -> bool {
    let words = || rest.split(['\t', ' ', '|']).filter(|word| !word.is_empty());
    let is_class = |word: &str| Class::begins(word).is_some();
    words().any(is_class) || (!header.trailing.is_empty() && words().next() == Some("X"))
}

struct Reader<'s, 't> {
    section: &'s Section<'t>,
    all: Observations,
}

/// A row with its place.
struct Placed {
    row: Row<Class>,
    line: usize,
}

impl Reader<'_, '_> {
    fn read(mut self, lines: &[Line<'_>]) -> Result<Observations, SourceError> {
        for label in &self.section.header.labels {
            let node = match gpu_number(label) {
                Some(_) => Node::new(NodeKind::Gpu).labelled(Tool::NvidiaSmi, label),
                None if label.starts_with("NIC") => {
                    Node::new(NodeKind::Nic).labelled(Tool::NvidiaSmi, label)
                }
                None => Node::new(NodeKind::Nic).labelled(Tool::Os, label),
            };
            self.all.add_node(node);
        }
        let rows = self.rows();
        if rows.is_empty() {
            let reason = "no row of the matrix fits its header; paste the output again, with the \
                          tabs that nvidia-smi prints";
            return Err(SourceError::new(Format::NvidiaSmiTopo, self.section.line, reason));
        }
        self.tell_missing(&rows);
        for (&column, placed) in &rows {
            let header = &self.section.header;
            affinity::read(&mut self.all, header, column, &placed.row, placed.line);
        }
        self.add_pairs(&rows);
        self.name_nics(lines);
        Ok(self.all)
    }

    /// The rows by column.
    fn rows(&mut self) -> BTreeMap<usize, Placed> {
        let header = &self.section.header;
        let mut rows: BTreeMap<usize, Placed> = BTreeMap::new();
        for (column, text, line) in &self.section.rows {
            let name = &header.labels[*column];
            let Some(mut row) = read_row::<Class>(header, *column, text) else {
                let text =
                    format!("the row of {name} does not mark its own column with one X; left out");
                self.all.warn(line.number, text);
                continue;
            };
            let parts = row.rest.iter().filter(|part| !part.is_empty()).count();
            let is_short = parts < header.trailing.len() || self.section.rows.len() < header.gpus();
            if line.is_cut && is_short {
                // What the text ends with may be the beginning of something longer.
                row.rest.pop();
            }
            if row.is_damaged {
                let text = format!(
                    "the row of {name} has not as many cells as the header has columns; the part \
                     that does not fit is left out"
                );
                self.all.warn(line.number, text);
            }
            if let Some(first) = rows.get(column) {
                if first.row.cells != row.cells {
                    let text = format!(
                        "a second row of {name} differs from the one of line {}; it is left out",
                        first.line
                    );
                    self.all.warn(line.number, text);
                }
                continue;
            }
            rows.insert(*column, Placed { row, line: line.number });
        }
        rows
    }

    fn tell_missing(&mut self, rows: &BTreeMap<usize, Placed>) {
        let labels = &self.section.header.labels;
        let is_missing = |column: &usize| !rows.contains_key(column);
        let missing: Vec<&str> =
            (0..labels.len()).filter(is_missing).map(|column| labels[column].as_str()).collect();
        if !missing.is_empty() {
            let text = format!(
                "there are columns but no rows for {}; the text may be cut",
                missing.join(", ")
            );
            self.all.warn(self.section.line, text);
        }
        let numbers = labels.iter().filter_map(|label| gpu_number(label));
        if !numbers.eq(0..u32::try_from(self.section.header.gpus()).unwrap_or(0)) {
            self.all.warn(self.section.line, "the GPUs are not numbered from 0 in their order");
        }
    }

    /// A statement for each ordered pair; from the mirrored cell where the own one is missing.
    fn add_pairs(&mut self, rows: &BTreeMap<usize, Placed>) {
        let cell = |from: usize, to: usize| {
            let placed = rows.get(&from)?;
            Some((placed.row.cells[to]?.0, placed.line))
        };
        let columns = self.section.header.labels.len();
        for from in 0..columns {
            for to in from + 1..columns {
                let (there, back) = (cell(from, to), cell(to, from));
                if let (Some((a, line)), Some((b, other_line))) = (there, back)
                    && a != b
                {
                    let [from, to] = [from, to].map(|column| &self.section.header.labels[column]);
                    let text = format!(
                        "{from} to {to} is {a} here, but {b} the other way in line {other_line}"
                    );
                    self.all.warn(line, text);
                }
                for (from, to, known) in [(from, to, there.or(back)), (to, from, back.or(there))] {
                    if let Some((class, line)) = known {
                        let (statement, line) = (Statement::Class(class), Some(line));
                        self.all.pairs.push(Pair { from, to, statement, line });
                    }
                }
            }
        }
    }

    /// The legend says what the operating system calls each NIC: `NIC0: mlx5_0`.
    fn name_nics(&mut self, lines: &[Line<'_>]) {
        for line in lines {
            let Some((name, device)) = line.text.trim().split_once(':') else { continue };
            let device = device.trim();
            let is_one_word = !device.is_empty() && !device.contains(char::is_whitespace);
            if !name.starts_with("NIC") || !is_one_word {
                continue;
            }
            let Some(column) = self.section.header.column(name) else { continue };
            let node = &mut self.all.nodes[column];
            match node.label(Tool::Os) {
                None if !line.is_cut => *node = node.clone().labelled(Tool::Os, device),
                Some(known) if known != device => {
                    let text = format!("{name} is {known} and {device}; the former is taken");
                    self.all.warn(line.number, text);
                }
                _ => {}
            }
        }
    }
}
