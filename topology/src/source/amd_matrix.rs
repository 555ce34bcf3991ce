//! The matrices of AMD's tools: weights, hops, kinds of links, access, bandwidths.
//!
//! rocm-smi labels rows and columns by number, amd-smi by PCI address; what stands in the cells is
//! the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use super::matrix_text::{Section, Title, excerpt};
use crate::{SourceWarning, Statement};

pub(super) use cell::{Cell, Matter};

mod cell;

/// What a matrix says.
#[derive(Debug, Default)]
pub(super) struct Content<L> {
    /// The GPUs that it shows, in the order of its header.
    gpus: Vec<L>,
    /// Those of them that have a row.
    with_row: BTreeSet<L>,
    pub(super) entries: Vec<Entry<L>>,
}

/// What a cell says.
#[derive(Debug)]
pub(super) struct Entry<L> {
    pub(super) from: L,
    pub(super) to: L,
    pub(super) statement: Statement,
    pub(super) line: usize,
}

/// The GPUs that exist, in the order in which they are shown: those that have a row somewhere, and
/// those that all matrices show. A label that one header has alone is damaged.
pub(super) fn gpus<L: Copy + Ord>(contents: &[Content<L>]) -> Vec<L> {
    let shown = || contents.iter().flat_map(|content| &content.gpus).copied();
    let mut counts: BTreeMap<L, usize> = BTreeMap::new();
    for gpu in shown() {
        *counts.entry(gpu).or_default() += 1;
    }
    let matrices = contents.iter().filter(|content| !content.gpus.is_empty()).count();
    let with_row: BTreeSet<L> =
        contents.iter().flat_map(|content| content.with_row.iter().copied()).collect();
    // Removed when it is shown first, so that it is listed once.
    counts.retain(|gpu, count| *count == matrices || with_row.contains(gpu));
    shown().filter(|gpu| counts.remove(gpu).is_some()).collect()
}

/// Reads a matrix, by its title and its cells; `tool` is who reports it. Nothing, if it is not one
/// of these matrices.
pub(super) fn read<L: Copy + Ord + Display>(
    section: Section<'_, L, Matter>,
    tool: &'static str,
    warnings: &mut Vec<SourceWarning>,
) -> Option<Content<L>> {
    let Section { title, matrix } = section;
    let header_line = matrix.header_line();
    let mut warn = |line, text| warnings.push(SourceWarning { line: Some(line), text });
    let by_content = Matter::by_content(matrix.cells());
    let matter = match (title, by_content) {
        (Title::Missing, None) => return None,
        (Title::Known(title), None) => title,
        (Title::Known(title), Some(content)) if title.may_hold(content) => title,
        (Title::Several, None) => Matter::Other,
        (_, Some(Matter::AnyNumber)) => {
            let text = "a matrix of numbers, and it is not certain whether they are weights or \
                        hops; they are left out";
            warn(header_line, text.to_owned());
            Matter::Other
        }
        (title, Some(content)) => {
            if let Title::Known(title) = title {
                let text =
                    format!("the title says {title}, the cells {content}; read as {content}");
                warn(header_line, text);
            }
            content
        }
    };
    let checked = matrix.check(|cell| matter.is_self(cell), warnings);
    let gpus = checked.labels().collect();
    let with_row = checked.rows().iter().map(|row| row.label).collect();
    let mut entries = Vec::new();
    let mut zeros = None;
    for cell in checked.cells() {
        let (from, to, line) = (cell.from, cell.to, cell.line);
        match matter.cell(cell.text, tool) {
            Cell::Says(statements) => {
                let statements = statements.into_iter();
                entries.extend(statements.map(|statement| Entry { from, to, statement, line }));
            }
            Cell::Nothing => {}
            Cell::Zero => zeros = zeros.or(Some(cell)),
            Cell::Damaged => {
                let text = format!(
                    "from {from} to {to} stands `{}`, which is none of the {matter}; it is left out",
                    excerpt(cell.text)
                );
                warnings.push(SourceWarning { line: Some(line), text });
            }
        }
    }
    if let Some(cell) = zeros {
        let text = format!(
            "0 among the {matter} of different GPUs (first from {} to {}) is taken as unknown",
            cell.from, cell.to
        );
        warnings.push(SourceWarning { line: Some(cell.line), text });
    }
    Some(Content { gpus, with_row, entries })
}
