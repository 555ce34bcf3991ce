//! The JSON form: `card0`, `card1`, ... with what is said about each, and `system` with what is
//! said about pairs, each pair once for both directions.

use std::collections::BTreeSet;

use super::TOOL;
use super::devices::{Devices, Gpu};
use crate::source::amd_matrix::{Cell, Entry, Matter};
use crate::source::located_json::{Document, JsonError, Value};
use crate::source::matrix_text::excerpt;
use crate::{SourceWarning, Statement};

/// Whether the text has such JSON in it.
pub(super) fn is_in(text: &str) -> bool {
    text.contains("\"(Topology)") && Document::new(text).has_start()
}

/// Reads the JSON in a text. The error is about what cannot be read.
pub(super) fn read(
    document: &Document<'_>,
    devices: &mut Devices,
    entries: &mut Vec<Entry<Gpu>>,
    warnings: &mut Vec<SourceWarning>,
) -> Option<JsonError> {
    let (values, error) = document.values();
    let parts: Vec<_> = values.iter().filter_map(Value::object).flatten().collect();
    for (key, value) in &parts {
        let (Some(gpu), Some(facts)) = (card(key), value.object()) else { continue };
        devices.mention(gpu, value.line());
        for (key, value) in facts {
            if let Some(text) = value.text() {
                devices.describe(gpu, &key, &text, value.line(), warnings);
            }
        }
    }
    let cards: BTreeSet<Gpu> = parts.iter().filter_map(|(key, _)| card(key)).collect();
    let systems = parts.iter().filter(|(key, _)| key == "system");
    for (key, value) in systems.filter_map(|(_, value)| value.object()).flatten() {
        let Some((from, to)) = pair(&key) else { continue };
        let line = value.line();
        if let Some(gpu) =
            [from, to].into_iter().find(|gpu| !cards.is_empty() && !cards.contains(gpu))
        {
            let text = format!("there is no card{}; what is said about it is left out", gpu.0);
            warnings.push(SourceWarning { line: Some(line), text });
            continue;
        }
        devices.mention(from, line);
        devices.mention(to, line);
        let matter = Matter::by_title(&key);
        let text = value.text().unwrap_or_default();
        match matter.cell(text.trim(), TOOL) {
            Cell::Says(statements) => entries.extend(both_ways(from, to, &statements, line)),
            Cell::Nothing => {}
            Cell::Zero | Cell::Damaged => {
                let text = format!(
                    "between {from} and {to} stands `{}`, which is none of the {matter}; \
                     it is left out",
                    excerpt(&text)
                );
                warnings.push(SourceWarning { line: Some(line), text });
            }
        }
    }
    error
}

/// Each pair is printed once.
fn both_ways(
    from: Gpu,
    to: Gpu,
    statements: &[Statement],
    line: usize,
) -> impl Iterator<Item = Entry<Gpu>> {
    statements.iter().flat_map(move |statement| {
        [(from, to), (to, from)].map(|(from, to)| {
            let statement = statement.clone();
            Entry { from, to, statement, line }
        })
    })
}

/// `card3`
fn card(key: &str) -> Option<Gpu> {
    number(key.strip_prefix("card")?).map(Gpu)
}

/// The two devices that a key ends with.
fn pair(key: &str) -> Option<(Gpu, Gpu)> {
    let (_, numbers) = key.split_once("devices ")?;
    let (from, to) = numbers.trim().split_once(" and ")?;
    let (from, to) = (number(from)?, number(to)?);
    (from != to).then_some((Gpu(from), Gpu(to)))
}

fn number(digits: &str) -> Option<u32> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}
