//! The JSON form: a list with an object for each GPU.
//!
//! Today's has `links`, a list with an object for each other GPU. That of ROCm 6.1 and before has
//! an object for each matter, in which `gpu_1` stands for the other GPU.

use std::borrow::Cow;

use super::{Gpu, TOOL, put_entries};
use crate::source::amd_matrix::{Cell, Entry, Matter};
use crate::source::located_json::{Document, JsonError, Value};
use crate::source::matrix_text::excerpt;
use crate::{Observations, SourceWarning};
use roster::Roster;

mod roster;

/// The keys of a link in today's form, and what they are about.
const LINK_KEYS: [(&str, Matter); 6] = [
    ("weight", Matter::Weight),
    ("num_hops", Matter::Hops),
    ("link_type", Matter::LinkType),
    ("link_status", Matter::Access),
    ("bandwidth", Matter::Bandwidth),
    ("atomics", Matter::Atomics),
];

/// The keys of a GPU in the earlier form.
const EARLIER_KEYS: [(&str, Matter); 5] = [
    ("weight", Matter::Weight),
    ("hops", Matter::Hops),
    ("link_type", Matter::LinkType),
    ("link_accessibility", Matter::Access),
    ("numa_bandwidth", Matter::Bandwidth),
];

/// The entries of an object.
type Object<'a> = Vec<(Cow<'a, str>, Value<'a>)>;

/// Whether the text has such JSON in it.
pub(super) fn is_in(text: &str) -> bool {
    let has_key = |key: &str| text.contains(&format!("\"{key}\""));
    let is_todays = has_key("links") && has_key("bdf");
    let is_earlier = has_key("link_accessibility") || has_key("numa_bandwidth");
    has_key("gpu") && (is_todays || is_earlier) && Document::new(text).has_start()
}

/// Reads the JSON in a text. The error is about what cannot be read.
pub(super) fn read(document: &Document<'_>, observations: &mut Observations) -> Option<JsonError> {
    let (values, error) = document.values();
    let objects: Vec<(Object<'_>, usize)> = values
        .iter()
        .flat_map(|value| value.list().unwrap_or_else(|| vec![*value]))
        .filter_map(|value| Some((value.object()?, value.line())))
        .filter(|(object, _)| is_gpu(object))
        .collect();
    let warnings = &mut observations.warnings;
    let roster =
        Roster::new(objects.iter().map(|(object, line)| (identity(object), *line)), warnings);
    let mut entries = Vec::new();
    for (object, line) in &objects {
        let Some(from) = roster.find(&identity(object)) else { continue };
        let mut cells = Vec::new();
        let links = object.iter().find(|(key, _)| key == "links");
        match links.and_then(|(_, links)| links.list()) {
            Some(links) => todays_cells(&links, &roster, &mut cells, warnings),
            None => earlier_cells(object, &roster, &mut cells, warnings),
        }
        if let Some(cell) = cells.iter().find(|cell| cell.is_of_another_row(from)) {
            let text = format!(
                "an object about a GPU has `{}` in line {}, so it may be about another; it is \
                 left out",
                cell.text, cell.line
            );
            warnings.push(SourceWarning { line: Some(*line), text });
            continue;
        }
        for cell in cells.iter().filter(|cell| cell.to != from) {
            cell.read(from, &mut entries, warnings);
        }
    }
    for gpu in roster.into_gpus() {
        observations.add_node(gpu.node());
    }
    put_entries(entries, |index| Some(*index), observations);
    error
}

fn is_gpu(object: &Object<'_>) -> bool {
    let mut keys = object.iter().map(|(key, _)| key.as_ref());
    keys.any(|key| key == "links" || EARLIER_KEYS.iter().any(|(earlier, _)| *earlier == key))
}

/// Which GPU an object is about.
fn identity(object: &Object<'_>) -> Gpu {
    let text = |name: &str| {
        let value = object.iter().find(|(key, _)| key == name)?;
        value.1.text()
    };
    Gpu {
        number: text("gpu").and_then(|text| text.parse().ok()),
        pci: text("bdf").and_then(|text| text.parse().ok()),
        uuid: None,
    }
}

/// A cell of one of the matrices that the objects hold.
struct JsonCell<'a> {
    matter: Matter,
    to: usize,
    text: Cow<'a, str>,
    line: usize,
}

impl JsonCell<'_> {
    /// Whether the cell stands on the diagonal only of the row of another GPU.
    fn is_of_another_row(&self, from: usize) -> bool {
        if self.to == from {
            !self.matter.is_self(&self.text)
        } else {
            self.matter == Matter::LinkType && self.text == "SELF"
        }
    }

    fn read(
        &self,
        from: usize,
        entries: &mut Vec<Entry<usize>>,
        warnings: &mut Vec<SourceWarning>,
    ) {
        let Self { matter, to, text, line } = self;
        match matter.cell(text.trim(), TOOL) {
            Cell::Says(statements) => {
                let (to, line) = (*to, *line);
                let statements = statements.into_iter();
                entries.extend(statements.map(|statement| Entry { from, to, statement, line }));
            }
            Cell::Nothing => {}
            Cell::Zero | Cell::Damaged => {
                let text = format!("`{}` is none of the {matter}; it is left out", excerpt(text));
                warnings.push(SourceWarning { line: Some(*line), text });
            }
        }
    }
}

fn todays_cells<'a>(
    links: &[Value<'a>],
    roster: &Roster,
    cells: &mut Vec<JsonCell<'a>>,
    warnings: &mut Vec<SourceWarning>,
) {
    for link in links {
        let Some(object) = link.object() else { continue };
        let Some(to) = roster.find(&identity(&object)) else {
            let text = "it is not certain to which GPU this link leads; it is left out".to_owned();
            warnings.push(SourceWarning { line: Some(link.line()), text });
            continue;
        };
        for (matter, value) in by_matter(&object, &LINK_KEYS) {
            cells.extend(JsonCell::of(matter, to, &value));
        }
    }
}

fn earlier_cells<'a>(
    object: &Object<'a>,
    roster: &Roster,
    cells: &mut Vec<JsonCell<'a>>,
    warnings: &mut Vec<SourceWarning>,
) {
    for (matter, row) in by_matter(object, &EARLIER_KEYS) {
        for (key, value) in row.object().unwrap_or_default() {
            let number = key.strip_prefix("gpu_").and_then(|digits| digits.parse().ok());
            let gpu = Gpu { number, ..Gpu::default() };
            match roster.find(&gpu) {
                Some(to) => cells.extend(JsonCell::of(matter, to, &value)),
                None => {
                    let text = format!("there is no GPU `{}`; it is left out", excerpt(&key));
                    warnings.push(SourceWarning { line: Some(value.line()), text });
                }
            }
        }
    }
}

impl<'a> JsonCell<'a> {
    fn of(matter: Matter, to: usize, value: &Value<'a>) -> Option<Self> {
        Some(Self { matter, to, text: value.text()?, line: value.line() })
    }
}

/// The values of an object by what they are about.
fn by_matter<'a>(object: &Object<'a>, keys: &[(&str, Matter)]) -> Vec<(Matter, Value<'a>)> {
    let matter = |name: &str| keys.iter().find(|(key, _)| *key == name).map(|(_, matter)| *matter);
    object.iter().filter_map(|(key, value)| Some((matter(key)?, *value))).collect()
}
