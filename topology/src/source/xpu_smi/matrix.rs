//! The matrix as text, with bars between its cells or without.

use super::cell::{Cell, is_cpu_list};
use super::nodes::End;
use super::{Content, Entry};
use crate::SourceWarning;
use crate::source::matrix_text::{
    LineEnd, Row, Sections, TextLine, Word, certain, excerpt, lines, words,
};

/// Whether the text has such a matrix.
pub(super) fn is_in(text: &str) -> bool {
    lines(text).iter().any(|line| matches!(Line::of(line), Line::Header { .. }))
}

/// Reads the matrices in a text.
pub(super) fn read(text: &str, content: &mut Content, warnings: &mut Vec<SourceWarning>) {
    let lines = lines(text);
    let mut sections: Sections<'_, End, ()> = Sections::new();
    let mut affinity = None;
    for line in &lines {
        match Line::of(line) {
            Line::Header { labels, affinity: place } => {
                affinity = place;
                sections.header(labels, line.number);
            }
            Line::Row { label, cells } => {
                let Some(matrix) = sections.open() else {
                    if cells.iter().any(|cell| Cell::is_known(cell.text)) {
                        let text =
                            format!("there is no header over this row of {label}; it is left out");
                        warnings.push(SourceWarning { line: Some(line.number), text });
                    }
                    continue;
                };
                let (cells, note) = match has_bars(&line.text) {
                    true => between_bars(matrix.columns().len(), affinity, &cells, line.end),
                    false => in_columns(matrix.starts(), affinity, &cells, line.end),
                };
                sections.whole_row(Row { label, line: line.number, cells, note });
            }
            Line::Other => {}
        }
    }
    for section in sections.finish(warnings) {
        let checked = section.matrix.check(|cell| Cell::of(cell) == Cell::Itself, warnings);
        for label in checked.labels() {
            content.ends.entry(label).or_default();
        }
        for row in checked.rows() {
            let facts = content.ends.entry(row.label).or_default();
            if let Some(cpus) = row.note.filter(|note| is_cpu_list(note)) {
                facts.cpu_affinity.set(cpus.to_owned());
            }
        }
        for cell in checked.cells() {
            content.read_cell(cell.from, cell.to, cell.text, cell.line, warnings);
        }
    }
}

impl Content {
    /// Takes a cell off the diagonal.
    pub(super) fn read_cell(
        &mut self,
        from: End,
        to: End,
        text: &str,
        line: usize,
        warnings: &mut Vec<SourceWarning>,
    ) {
        let text = match Cell::of(text) {
            Cell::Kind(kind) => {
                self.entries.push(Entry { from, to, kind, line });
                if text != "XL" {
                    return;
                }
                format!("from {from} to {to} the Xe Link has no number of lanes")
            }
            Cell::Nothing => return,
            Cell::Itself | Cell::Damaged => {
                let text = excerpt(text);
                format!("from {from} to {to} stands `{text}`, which is no link; it is left out")
            }
        };
        warnings.push(SourceWarning { line: Some(line), text });
    }
}

/// A line by what it is.
enum Line<'a> {
    /// Labels and where they start, and where the column of CPUs does, if there is one.
    Header {
        labels: Vec<(End, usize)>,
        affinity: Option<usize>,
    },
    Row {
        label: End,
        cells: Vec<Word<'a>>,
    },
    Other,
}

impl<'a> Line<'a> {
    fn of(line: &'a TextLine<'_>) -> Self {
        let words = if has_bars(&line.text) { barred(&line.text) } else { spaced(&line.text) };
        // Behind bars, the field over the labels of the rows may be there and empty.
        let is_corner = words.first().is_some_and(|word| word.text.is_empty());
        let is_cut = usize::from(line.end == LineEnd::Word);
        let fields = &words[usize::from(is_corner)..];
        let labels: Vec<(End, usize)> =
            fields.iter().map_while(|word| Some((label(word.text)?, word.column))).collect();
        let rest = &fields[labels.len()..];
        let is_header = !labels.is_empty() && rest.iter().all(|word| is_about_cpus(word.text));
        if is_header {
            let whole = labels.len() - is_cut * usize::from(rest.is_empty());
            let affinity = rest.first().map(|word| word.column);
            return match whole {
                0 => Self::Other,
                _ => Self::Header { labels: labels[..whole].to_vec(), affinity },
            };
        }
        match labels[..] {
            [(label, _)] if !is_corner => Self::Row { label, cells: words[1..].to_vec() },
            _ => Self::Other,
        }
    }
}

/// Whether a field is the title of the column of CPUs, or a word of it.
fn is_about_cpus(field: &str) -> bool {
    ["CPU", "Affinity", "CPU Affinity"].iter().any(|title| field.eq_ignore_ascii_case(title))
}

/// `GPU 0/1`, `NIC0`
fn label(field: &str) -> Option<End> {
    if let Some(digits) = field.strip_prefix("NIC") {
        return number(digits).map(End::Nic);
    }
    let (device, tile) = field.strip_prefix("GPU")?.trim_start().split_once('/')?;
    Some(End::Tile { device: number(device)?, tile: number(tile)? })
}

fn number(digits: &str) -> Option<u32> {
    let is_plain = !digits.starts_with('0') || digits == "0";
    (is_plain && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}

const fn is_bar(character: char) -> bool {
    matches!(character, '|' | '\u{2502}')
}

fn has_bars(text: &str) -> bool {
    text.contains(is_bar)
}

/// The fields between bars, without the blanks around them. Bars around the whole line bound no
/// field.
fn barred(text: &str) -> Vec<Word<'_>> {
    let start = text.len() - text.trim_start().len();
    let mut inner = text.trim();
    let mut column = text[..start].chars().count();
    if let Some(rest) = inner.strip_prefix(is_bar) {
        inner = rest.strip_suffix(is_bar).unwrap_or(rest);
        column += 1;
    }
    let mut fields = Vec::new();
    for field in inner.split(is_bar) {
        fields.push(Word { text: field.trim(), column });
        column += field.chars().count() + 1;
    }
    fields
}

/// The words of a line, where `GPU` and what follows it are one.
fn spaced(text: &str) -> Vec<Word<'_>> {
    let words = words(text, char::is_whitespace);
    let mut joined: Vec<Word<'_>> = Vec::with_capacity(words.len());
    for word in words {
        let place = word.text.as_ptr().addr() - text.as_ptr().addr();
        match joined.last_mut().filter(|last| last.text == "GPU") {
            Some(last) => {
                let start = last.text.as_ptr().addr() - text.as_ptr().addr();
                last.text = &text[start..place + word.text.len()];
            }
            None => joined.push(word),
        }
    }
    joined
}

/// The cells of a row with bars, and what stands behind them. A row with a bar too few or too many
/// has none that is certain, unless the text ends in it.
fn between_bars<'a>(
    columns: usize,
    affinity: Option<usize>,
    fields: &[Word<'a>],
    end: LineEnd,
) -> (Vec<&'a str>, Option<&'a str>) {
    let expected = columns + usize::from(affinity.is_some());
    let is_cut = end != LineEnd::Newline;
    let mut texts: Vec<&str> = fields.iter().map(|field| field.text).collect();
    if texts.len() > expected || texts.len() < expected && !is_cut {
        return (Vec::new(), None);
    }
    if end == LineEnd::Word {
        texts.pop();
    }
    let note = texts.get(columns).copied();
    texts.truncate(columns);
    (texts, note)
}

/// The cells of a row without bars, and what stands behind them. The latter may be missing, so a
/// row is whole only if each of its words is what its place asks for.
fn in_columns<'a>(
    starts: &[usize],
    affinity: Option<usize>,
    words: &[Word<'a>],
    end: LineEnd,
) -> (Vec<&'a str>, Option<&'a str>) {
    let are_cells = |words: &[Word<'_>]| words.iter().all(|word| Cell::is_known(word.text));
    let Some(affinity) = affinity else { return (certain(starts, words, end), None) };
    if words.len() == starts.len() + 1 {
        let (cells, note) = words.split_at(starts.len());
        let note = note[0].text;
        if is_cpu_list(note) || note == "N/A" {
            let cells = cells.iter().map(|cell| cell.text).collect();
            return (cells, (end != LineEnd::Word).then_some(note));
        }
        return (certain(starts, words, end), None);
    }
    if words.len() == starts.len() && are_cells(words) {
        return (certain(starts, words, end), None);
    }
    let all: Vec<usize> = starts.iter().copied().chain([affinity]).collect();
    let mut cells = certain(&all, words, end);
    cells.truncate(starts.len());
    (cells, None)
}
