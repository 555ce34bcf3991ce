//! A matrix with a label on each row and column, and what in it can be relied on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use crate::SourceWarning;

/// A matrix as it stands in a text, from its header line on.
#[derive(Debug)]
pub(crate) struct Matrix<'a, L> {
    columns: Vec<L>,
    /// Where each column starts, in characters.
    starts: Vec<usize>,
    header_line: usize,
    rows: Vec<Row<'a, L>>,
    labels_without_row: BTreeSet<L>,
}

/// A row: its label and its first cells, as far as they are certain.
#[derive(Debug)]
pub(crate) struct Row<'a, L> {
    pub(crate) label: L,
    pub(crate) line: usize,
    pub(crate) cells: Vec<&'a str>,
    /// What stands behind the cells, if that is certain.
    pub(crate) note: Option<&'a str>,
}

impl<'a, L: Copy + Ord + Display> Matrix<'a, L> {
    /// A matrix without rows; each column has a label and starts after so many characters.
    pub(crate) fn new(header: Vec<(L, usize)>, header_line: usize) -> Self {
        let (columns, starts): (Vec<L>, _) = header.into_iter().unzip();
        let labels_without_row = columns.iter().copied().collect();
        Self { columns, starts, header_line, rows: Vec::new(), labels_without_row }
    }

    pub(crate) fn columns(&self) -> &[L] {
        &self.columns
    }

    pub(crate) fn starts(&self) -> &[usize] {
        &self.starts
    }

    pub(crate) fn header_line(&self) -> usize {
        self.header_line
    }

    pub(crate) fn has_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Adds a row; false if each column has its row, so that this one belongs to something else.
    pub(crate) fn add(&mut self, row: Row<'a, L>) -> bool {
        let is_open = !self.labels_without_row.is_empty();
        if is_open {
            self.labels_without_row.remove(&row.label);
            self.rows.push(row);
        }
        is_open
    }

    /// The cells off the diagonal, whatever they are worth.
    pub(crate) fn cells(&self) -> impl Iterator<Item = &'a str> {
        self.rows.iter().flat_map(|row| {
            let cells = row.cells.iter().zip(&self.columns);
            cells.filter(|(_, column)| **column != row.label).map(|(cell, _)| *cell)
        })
    }

    /// Leaves out what cannot be relied on. `is_self` says whether a cell is what stands on the
    /// diagonal: a row that has something else there has the label of another.
    pub(crate) fn check(
        self,
        is_self: impl Fn(&str) -> bool,
        warnings: &mut Vec<SourceWarning>,
    ) -> Checked<'a, L> {
        let places: BTreeMap<L, usize> = self.columns.iter().copied().zip(0..).collect();
        if places.len() != self.columns.len() {
            warnings.push(SourceWarning {
                line: Some(self.header_line),
                text: "two columns have the same label; the matrix is left out".to_owned(),
            });
            return Checked { columns: Vec::new(), rows: Vec::new() };
        }
        let mut by_label: BTreeMap<L, Vec<Row<'a, L>>> = BTreeMap::new();
        for row in self.rows {
            by_label.entry(row.label).or_default().push(row);
        }
        // A row without a column may be the row of a column without a row: one of the two labels
        // is damaged, and nobody knows which.
        let is_doubtful = by_label.keys().any(|label| !places.contains_key(label));
        let exists = |label: &L| !is_doubtful || by_label.contains_key(label);
        let columns = self.columns.iter().map(|label| exists(label).then_some(*label)).collect();
        let mut rows = Vec::new();
        for (label, same) in by_label {
            let place = places.get(&label).copied();
            match sound(label, same, place, self.columns.len(), &is_self) {
                (row, Some(warning)) => {
                    rows.extend(row);
                    warnings.push(warning);
                }
                (row, None) => rows.extend(row),
            }
        }
        Checked { columns, rows }
    }
}

/// Of the rows with one label, the one to rely on, and what is wrong with them.
fn sound<'a, L: Display>(
    label: L,
    mut same: Vec<Row<'a, L>>,
    place: Option<usize>,
    columns: usize,
    is_self: impl Fn(&str) -> bool,
) -> (Option<Row<'a, L>>, Option<SourceWarning>) {
    let row = same.swap_remove(0);
    let warn = |line, text| Some(SourceWarning { line: Some(line), text });
    let Some(place) = place else {
        return (None, warn(row.line, format!("there is no column {label}; its row is left out")));
    };
    if let Some(other) = same.iter().find(|other| other.cells != row.cells) {
        let text = format!("{label} has an unlike row in line {}; both are left out", row.line);
        return (None, warn(other.line, text));
    }
    if let Some(cell) = row.cells.get(place).filter(|cell| !is_self(cell)) {
        let text = format!(
            "from {label} to itself stands `{cell}`, so this may be the row of another; \
             it is left out"
        );
        return (None, warn(row.line, text));
    }
    let certain = row.cells.len();
    let warning = (certain < columns).then(|| {
        let text = format!("only {certain} of {columns} cells of {label} are certain");
        SourceWarning { line: Some(row.line), text }
    });
    (Some(row), warning)
}

/// What of a matrix can be relied on.
#[derive(Debug)]
pub(crate) struct Checked<'a, L> {
    /// The labels that exist; of the others only the place counts.
    columns: Vec<Option<L>>,
    rows: Vec<Row<'a, L>>,
}

/// A cell off the diagonal.
#[derive(Debug)]
pub(crate) struct Cell<'a, L> {
    pub(crate) from: L,
    pub(crate) to: L,
    pub(crate) text: &'a str,
    pub(crate) line: usize,
}

impl<'a, L: Copy + Ord> Checked<'a, L> {
    /// What exists.
    pub(crate) fn labels(&self) -> impl Iterator<Item = L> {
        self.columns.iter().copied().flatten()
    }

    /// One row for a label, in the order of the labels.
    pub(crate) fn rows(&self) -> &[Row<'a, L>] {
        &self.rows
    }

    /// The cells off the diagonal, between labels that exist.
    pub(crate) fn cells(&self) -> impl Iterator<Item = Cell<'a, L>> {
        self.rows.iter().flat_map(|row| {
            row.cells.iter().zip(&self.columns).filter_map(|(text, to)| {
                let (from, to) = (row.label, (*to)?);
                (from != to).then_some(Cell { from, to, text, line: row.line })
            })
        })
    }
}
