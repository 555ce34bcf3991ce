//! Several matrices in one text, each under a title.

use std::fmt::Display;

use super::matrix::{Matrix, Row};
use super::{LineEnd, Word, certain};
use crate::SourceWarning;

/// A matrix and the title over it.
#[derive(Debug)]
pub(crate) struct Section<'a, L, T> {
    pub(crate) title: Title<T>,
    pub(crate) matrix: Matrix<'a, L>,
}

/// What stands over a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Title<T> {
    /// A title.
    Known(T),
    /// Nothing, since another matrix or the start of the text.
    Missing,
    /// Several titles that differ, with nothing between them.
    Several,
}

/// Gathers the matrices of a text, told line by line what stands there.
#[derive(Debug)]
pub(crate) struct Sections<'a, L, T> {
    done: Vec<Section<'a, L, T>>,
    open: Option<Section<'a, L, T>>,
    /// The title for the next matrix.
    title: Title<T>,
    /// Whether nothing but blank lines followed the title.
    is_title_fresh: bool,
    warnings: Vec<SourceWarning>,
}

impl<'a, L: Copy + Ord + Display, T: Copy + Eq> Sections<'a, L, T> {
    pub(crate) fn new() -> Self {
        Self {
            done: Vec::new(),
            open: None,
            title: Title::Missing,
            is_title_fresh: false,
            warnings: Vec::new(),
        }
    }

    /// A title that says what the next matrix is about.
    pub(crate) fn title(&mut self, title: T) {
        self.close();
        self.title = match self.title {
            Title::Known(before) if self.is_title_fresh && before != title => Title::Several,
            Title::Several if self.is_title_fresh => Title::Several,
            _ => Title::Known(title),
        };
        self.is_title_fresh = true;
    }

    /// A line that ends a matrix, and says nothing about the next one.
    pub(crate) fn rule(&mut self) {
        self.close();
        self.title = Title::Missing;
    }

    /// The labels of columns, and after how many characters each starts.
    pub(crate) fn header(&mut self, header: Vec<(L, usize)>, line: usize) {
        if self.open.as_ref().is_some_and(|open| is_repeated(&open.matrix, &header, line)) {
            return;
        }
        self.close();
        let matrix = Matrix::new(header, line);
        let title = std::mem::replace(&mut self.title, Title::Missing);
        self.open = Some(Section { title, matrix });
    }

    /// A row whose words stand under the columns, one each, as far as that is certain. False if
    /// there is no matrix to which it could belong.
    pub(crate) fn row(&mut self, label: L, words: &[Word<'a>], line: usize, end: LineEnd) -> bool {
        self.is_title_fresh = false;
        let Some(Section { matrix, .. }) = &mut self.open else { return false };
        let cells = certain(matrix.starts(), words, end);
        self.whole_row(Row { label, line, cells, note: None })
    }

    /// A row of which it is known what stands under which column.
    pub(crate) fn whole_row(&mut self, row: Row<'a, L>) -> bool {
        self.is_title_fresh = false;
        let (label, line) = (row.label, row.line);
        let Some(Section { matrix, .. }) = &mut self.open else { return false };
        if !matrix.add(row) {
            let text = format!("another row of {label} behind a whole matrix; it is left out");
            self.warnings.push(SourceWarning { line: Some(line), text });
        }
        true
    }

    /// The columns of the matrix to which a row would belong.
    pub(crate) fn open(&self) -> Option<&Matrix<'a, L>> {
        self.open.as_ref().map(|open| &open.matrix)
    }

    /// A line that is none of the others, and is not blank.
    pub(crate) fn other(&mut self) {
        self.is_title_fresh = false;
    }

    /// All matrices, in the order of the text.
    pub(crate) fn finish(mut self, warnings: &mut Vec<SourceWarning>) -> Vec<Section<'a, L, T>> {
        self.close();
        warnings.append(&mut self.warnings);
        self.done
    }

    fn close(&mut self) {
        self.done.extend(self.open.take());
    }
}

/// Whether this is the header line of the matrix once more, right behind it.
fn is_repeated<L: Copy + Ord + Display>(
    matrix: &Matrix<'_, L>,
    header: &[(L, usize)],
    line: usize,
) -> bool {
    let labels = header.iter().map(|(label, _)| label);
    !matrix.has_rows() && line == matrix.header_line() + 1 && labels.eq(matrix.columns())
}
