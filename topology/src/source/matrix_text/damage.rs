//! Damage to a text, as pasting, cutting and retyping do it, and what of the text it spared.

use std::collections::BTreeSet;
use std::ops::Range;

use proptest::prelude::*;

use crate::{Node, Observations, Statement};

/// A line of a text that is in order.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) text: String,
    /// Where the label and each cell stand.
    pub(crate) spans: Vec<Range<usize>>,
    pub(crate) role: Role,
}

#[derive(Clone, Debug)]
pub(crate) enum Role {
    Header,
    /// The row of a GPU, and what each of its cells says.
    Row {
        from: usize,
        cells: Vec<Vec<Statement>>,
    },
    Other,
}

impl Line {
    pub(crate) fn new(text: impl Into<String>, role: Role) -> Self {
        Self { text: text.into(), spans: Vec::new(), role }
    }

    /// Joins fields, each padded to a width, or with one `gap` between them if that is shorter.
    pub(crate) fn of_fields(fields: &[String], width: usize, gap: &str, role: Role) -> Self {
        let mut line = Self::new("", role);
        for field in fields {
            let start = line.text.len();
            line.text.push_str(field);
            line.spans.push(start..line.text.len());
            let padding = width.saturating_sub(field.len() + gap.len());
            line.text.push_str(&" ".repeat(padding));
            line.text.push_str(gap);
        }
        line
    }
}

/// One thing that happens to a text. Places count around.
#[derive(Clone, Debug)]
pub(crate) enum Damage {
    Delete {
        line: usize,
    },
    Repeat {
        line: usize,
        to: usize,
    },
    Swap {
        line: usize,
        with: usize,
    },
    Change {
        line: usize,
        place: usize,
        byte: u8,
    },
    /// The blanks after a field are lost.
    Glue {
        line: usize,
        field: usize,
    },
}

pub(crate) fn damages() -> impl Strategy<Value = Vec<Damage>> {
    let place = || 0_usize..1000;
    let byte = prop_oneof![32_u8..127, Just(b'\t'), Just(b'\n'), b'0'..=b'9'];
    prop::collection::vec(
        prop_oneof![
            place().prop_map(|line| Damage::Delete { line }),
            (place(), place()).prop_map(|(line, to)| Damage::Repeat { line, to }),
            (place(), place()).prop_map(|(line, with)| Damage::Swap { line, with }),
            (place(), place(), byte).prop_map(|(line, place, byte)| Damage::Change {
                line,
                place,
                byte
            }),
            (place(), place()).prop_map(|(line, field)| Damage::Glue { line, field }),
        ],
        0..4,
    )
}

/// A line of a damaged text.
#[derive(Clone, Debug)]
struct Survivor {
    text: String,
    /// Which line it was.
    origin: usize,
    /// The fields that are not what they were.
    touched: BTreeSet<usize>,
    is_touched: bool,
    /// Whether more than one thing happened to it, so that nothing in it is certain.
    is_ruined: bool,
}

/// A damaged text.
#[derive(Clone, Debug)]
pub(crate) struct Damaged {
    pub(crate) text: String,
    survivors: Vec<Survivor>,
    /// Whether a header is not where or what it was.
    is_header_touched: bool,
}

/// Damages a text, and then ends it after a thousandth part `cut`.
pub(crate) fn damage(lines: &[Line], damages: &[Damage], cut: Option<usize>) -> Damaged {
    let mut survivors: Vec<Survivor> = lines
        .iter()
        .enumerate()
        .map(|(origin, line)| Survivor {
            text: line.text.clone(),
            origin,
            touched: BTreeSet::new(),
            is_touched: false,
            is_ruined: false,
        })
        .collect();
    let mut moved = BTreeSet::new();
    for damage in damages {
        if !survivors.is_empty() {
            apply(damage, lines, &mut survivors, &mut moved);
        }
    }
    let mut text: String = survivors.iter().flat_map(|line| [line.text.as_str(), "\n"]).collect();
    if let Some(cut) = cut {
        end_at(text.len() * cut / 1000, lines, &mut text, &mut survivors);
    }
    let touched = survivors.iter().filter(|line| line.is_touched).map(|line| line.origin);
    let touched: BTreeSet<usize> = touched.chain(moved).collect();
    let is_header = |line: &usize| matches!(lines[*line].role, Role::Header);
    Damaged { text, is_header_touched: touched.iter().any(is_header), survivors }
}

fn apply(
    damage: &Damage,
    lines: &[Line],
    survivors: &mut Vec<Survivor>,
    moved: &mut BTreeSet<usize>,
) {
    let count = survivors.len();
    match *damage {
        Damage::Delete { line } => {
            survivors.remove(line % count);
        }
        Damage::Repeat { line, to } => {
            let copy = survivors[line % count].clone();
            moved.insert(copy.origin);
            survivors.insert(to % (count + 1), copy);
        }
        Damage::Swap { line, with } => {
            let (line, with) = (line % count, with % count);
            moved.extend([survivors[line].origin, survivors[with].origin]);
            survivors.swap(line, with);
        }
        Damage::Change { line, place, byte } => {
            let survivor = &mut survivors[line % count];
            let place = place % survivor.text.len().max(1);
            if place < survivor.text.len() {
                let character = char::from(byte).to_string();
                survivor.text.replace_range(place..=place, &character);
                survivor.touch(lines, |span| span.start <= place + 1 && place <= span.end);
            }
            if byte == b'\n' {
                let at = line % count;
                split(survivors, at);
            }
        }
        Damage::Glue { line, field } => {
            let survivor = &mut survivors[line % count];
            let spans = &lines[survivor.origin].spans;
            if spans.is_empty() || survivor.is_touched {
                return;
            }
            let field = field % spans.len();
            let start = spans[field].end;
            let end = spans.get(field + 1).map_or(survivor.text.len(), |next| next.start);
            survivor.text.replace_range(start..end, "");
            survivor.touch(lines, |span| span.end == start || span.start == end);
        }
    }
}

impl Survivor {
    fn touch(&mut self, lines: &[Line], is_touched: impl Fn(&Range<usize>) -> bool) {
        self.is_ruined |= self.is_touched;
        self.is_touched = true;
        let spans = lines[self.origin].spans.iter().enumerate();
        self.touched.extend(spans.filter(|(_, span)| is_touched(span)).map(|(field, _)| field));
    }
}

/// Makes two lines of one that has a newline in it.
fn split(survivors: &mut Vec<Survivor>, at: usize) {
    let survivor = &mut survivors[at];
    survivor.is_ruined = true;
    if let Some(newline) = survivor.text.find('\n') {
        let mut second = survivor.clone();
        second.text = survivor.text.split_off(newline)[1..].to_owned();
        survivors.insert(at + 1, second);
    }
}

fn end_at(place: usize, lines: &[Line], text: &mut String, survivors: &mut Vec<Survivor>) {
    text.truncate(place);
    let kept = text.split('\n').count();
    survivors.truncate(kept);
    let column = text.len() - text.rfind('\n').map_or(0, |newline| newline + 1);
    if let Some(last) = survivors.last_mut().filter(|last| column < last.text.len()) {
        last.text.truncate(column);
        last.touch(lines, |span| span.start < column && column < span.end);
    }
}

impl Damaged {
    /// Panics if the observations say something that the text did not say in order, unless the
    /// cell that says it was touched. `index` gives the place of a node in the matrices.
    pub(crate) fn assert_true(
        &self,
        lines: &[Line],
        observations: &Observations,
        index: impl Fn(&Node) -> Option<usize>,
    ) {
        for pair in &observations.pairs {
            let number = pair.line.expect("each statement has its line");
            let survivor = &self.survivors[number - 1];
            if survivor.is_ruined || survivor.touched.contains(&0) {
                continue;
            }
            let Role::Row { from, cells } = &lines[survivor.origin].role else {
                panic!("line {number} is no row, and says {pair:?}: {}", self.text);
            };
            let to = index(&observations.nodes[pair.to]).filter(|to| *to < cells.len());
            let Some(to) = to else {
                assert!(self.is_header_touched, "an invented GPU in {pair:?}: {}", self.text);
                continue;
            };
            if survivor.touched.contains(&(to + 1)) {
                continue;
            }
            assert_eq!(
                index(&observations.nodes[pair.from]),
                Some(*from),
                "{pair:?}: {}",
                self.text
            );
            assert!(
                cells[to].contains(&pair.statement),
                "{pair:?} in line {number}: {}",
                self.text
            );
        }
    }

    /// Whether nothing happened to the wording of any line that is neither title, header nor row.
    pub(crate) fn spared_other_lines(&self, lines: &[Line]) -> bool {
        let mut others = self.survivors.iter();
        others.all(|line| !line.is_touched || !matches!(lines[line.origin].role, Role::Other))
    }
}
