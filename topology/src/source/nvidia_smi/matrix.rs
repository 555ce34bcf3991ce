//! Matrices of devices, as `nvidia-smi topo` prints them and people paste them.
//!
//! What may happen to a matrix on its way: tabs become spaces, cells are glued or emptied, lines
//! are cut, indented, moved, doubled, or put into a Markdown table. Every row marks its own column
//! with an `X`. So a part of a row, left or right of the `X`, is believed only if it has exactly
//! as many cells as the header has columns there; otherwise it is left out, and the mirrored cells
//! of the other rows tell the same.

use super::header::Header;

/// What a cell of a matrix can hold.
pub(super) trait Cell: Copy + PartialEq {
    /// The value that a text begins with, and its length.
    fn begins(text: &str) -> Option<(Self, usize)>;
}

/// A row: a cell for each column, `None` where it is the own column, empty, or in doubt.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row<C> {
    pub(super) cells: Vec<Option<C>>,
    /// What stands after the cells: affinities.
    pub(super) rest: Vec<String>,
    /// Whether a part of the row was left out.
    pub(super) is_damaged: bool,
    /// Whether `rest` is divided by tabs, so that an empty part is seen.
    pub(super) is_tabbed: bool,
}

/// A part of a row.
#[derive(Clone, Debug, PartialEq)]
enum Piece<C> {
    Own,
    Value(C),
    Empty,
    Other(String),
}

/// Reads the row of the column `own`; `text` is what follows its label. `None` if the row has no
/// mark of its own column, or several.
pub(super) fn read_row<C: Cell>(header: &Header, own: usize, text: &str) -> Option<Row<C>> {
    let is_tabbed = text.contains('\t') || text.contains('|');
    let mut pieces: Vec<Piece<C>> = Vec::new();
    if is_tabbed {
        fields(text).for_each(|field| push_field(&mut pieces, field));
    } else {
        text.split_whitespace().for_each(|word| push_word(&mut pieces, word));
    }
    let mut marks = pieces.iter().enumerate().filter(|(_, piece)| **piece == Piece::Own);
    let (mark, _) = marks.next()?;
    if marks.next().is_some() {
        return None;
    }
    let columns = header.labels.len();
    let mut cells = vec![None; columns];
    let left = &pieces[..mark];
    let is_left_sound = left.len() == own && left.iter().all(is_cell);
    if is_left_sound {
        fill(&mut cells[..own], left);
    }
    let right = &pieces[mark + 1..];
    let due = columns - own - 1;
    let is_right_sound = right.len() >= due
        && right[..due].iter().all(is_cell)
        && !matches!(right.get(due), Some(Piece::Value(_)));
    if is_right_sound {
        fill(&mut cells[own + 1..], &right[..due]);
    }
    // Where the cells do not fit, what follows the last of them is not a cell.
    let last = right.iter().rposition(|piece| matches!(piece, Piece::Value(_)));
    let rest = if is_right_sound { &right[due..] } else { &right[last.map_or(0, |at| at + 1)..] };
    let is_damaged = !is_left_sound || !is_right_sound;
    Some(Row { cells, rest: rest.iter().map(text_of).collect(), is_damaged, is_tabbed })
}

/// The fields between tabs or the bars of a Markdown table.
fn fields(text: &str) -> impl Iterator<Item = &str> {
    let text = text.trim_start_matches([' ', '|']);
    // What follows a label is divided from it by a tab of its own.
    let text = text.strip_prefix('\t').unwrap_or(text);
    text.trim_end_matches([' ', '|']).split(['\t', '|']).map(str::trim)
}

/// A field holds one cell, or several that lost the tab between them.
fn push_field<C: Cell>(pieces: &mut Vec<Piece<C>>, field: &str) {
    if field.is_empty() || field == "N/A" || field == "-" {
        pieces.push(Piece::Empty);
        return;
    }
    field.split_whitespace().for_each(|word| push_word(pieces, word));
}

/// A word is one cell, or several glued, or something else.
fn push_word<C: Cell>(pieces: &mut Vec<Piece<C>>, word: &str) {
    let (start, mut rest) = (pieces.len(), word);
    while !rest.is_empty() {
        let own = rest.starts_with('X').then_some((Piece::Own, 1));
        let value = || C::begins(rest).map(|(value, length)| (Piece::Value(value), length));
        let Some((piece, length)) = own.or_else(value) else {
            pieces.truncate(start);
            pieces.push(Piece::Other(word.to_owned()));
            return;
        };
        pieces.push(piece);
        rest = &rest[length..];
    }
}

const fn is_cell<C>(piece: &Piece<C>) -> bool {
    matches!(piece, Piece::Value(_) | Piece::Empty)
}

fn fill<C: Cell>(cells: &mut [Option<C>], pieces: &[Piece<C>]) {
    for (cell, piece) in cells.iter_mut().zip(pieces) {
        if let Piece::Value(value) = piece {
            *cell = Some(*value);
        }
    }
}

fn text_of<C>(piece: &Piece<C>) -> String {
    match piece {
        Piece::Other(text) => text.clone(),
        _ => String::new(),
    }
}
