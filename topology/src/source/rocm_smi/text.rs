//! The text form: matrices under banners, and lines about single GPUs.

use super::TOOL;
use super::devices::{Devices, Gpu};
use crate::SourceWarning;
use crate::source::amd_matrix::{self, Entry, Matter};
use crate::source::matrix_text::{LineEnd, Sections, TextLine, Word, excerpt, lines, words};

/// What the tools call a GPU: AMD's, and two names that Hygon's has for it.
const NAMES: [&str; 3] = ["GPU", "HCU", "DCU"];

/// Whether the text has such lines.
pub(super) fn is_in(text: &str) -> bool {
    lines(text).iter().any(|line| match Line::of(line) {
        Line::Banner(matter) => matter != Matter::Other,
        Line::Row(_, cells) => {
            let cells = cells.iter().map(|cell| cell.text);
            Matter::by_content(cells) == Some(Matter::LinkType)
        }
        Line::Fact { key, .. } => key.starts_with("(Topology)"),
        _ => false,
    })
}

/// Reads the text; what it says about single GPUs goes to `devices`.
pub(super) fn read(
    text: &str,
    devices: &mut Devices,
    warnings: &mut Vec<SourceWarning>,
) -> Vec<Entry<Gpu>> {
    let lines = lines(text);
    let mut sections = Sections::new();
    for line in &lines {
        let number = line.number;
        match Line::of(line) {
            Line::Blank => {}
            Line::Banner(Matter::Other) => sections.rule(),
            Line::Banner(matter) => sections.title(matter),
            Line::Header(labels) => sections.header(labels, number),
            Line::Row(gpu, cells) => {
                let looks = Matter::by_content(cells.iter().map(|cell| cell.text));
                if !sections.row(gpu, &cells, number, line.end) && looks.is_some() {
                    let text = format!("there is no header over this row of {gpu}; it is left out");
                    warnings.push(SourceWarning { line: Some(number), text });
                }
            }
            Line::Fact { gpu, key, value } => {
                sections.other();
                match value {
                    Some(value) => devices.describe(gpu, key, value, number, warnings),
                    None => devices.mention(gpu, number),
                }
            }
            Line::Message(message) => {
                sections.other();
                let text = format!("the tool says `{}`", excerpt(message));
                warnings.push(SourceWarning { line: Some(number), text });
            }
            Line::Other => sections.other(),
        }
    }
    let sections = sections.finish(warnings).into_iter();
    let contents: Vec<_> =
        sections.filter_map(|section| amd_matrix::read(section, TOOL, warnings)).collect();
    amd_matrix::gpus(&contents).into_iter().for_each(|gpu| devices.show(gpu));
    contents.into_iter().flat_map(|content| content.entries).collect()
}

/// A line by what it is.
enum Line<'a> {
    Blank,
    /// `====== Weight between two GPUs ======`
    Banner(Matter),
    /// `GPU0 GPU1`: a label, and where it starts.
    Header(Vec<(Gpu, usize)>),
    /// `GPU0 0 15`
    Row(Gpu, Vec<Word<'a>>),
    /// `GPU[0] : (Topology) Numa Node: 3`; no value if the text may end within it.
    Fact {
        gpu: Gpu,
        key: &'a str,
        value: Option<&'a str>,
    },
    /// `ERROR: ...`
    Message(&'a str),
    Other,
}

impl<'a> Line<'a> {
    fn of(line: &'a TextLine<'_>) -> Self {
        let text = line.text.as_ref();
        // Tickets quote (`>`), tables of wikis have bars, and set the labels in bold.
        let words = words(text, |c| c.is_whitespace() || matches!(c, '|' | '*' | '`' | '>'));
        let Some((first, rest)) = words.split_first() else { return Self::Blank };
        if let Some(matter) = banner(text) {
            return Self::Banner(matter);
        }
        if let Some(fact) = fact(text, line.end) {
            return fact;
        }
        let Some(gpu) = label(first.text) else {
            let is_message = ["ERROR", "WARNING"].iter().any(|word| first.text.starts_with(word));
            let is_about_gpus = is_message && text.contains("GPU");
            return if is_about_gpus { Self::Message(text) } else { Self::Other };
        };
        if rest.first().is_some_and(|word| label(word.text).is_none()) {
            return Self::Row(gpu, rest.to_vec());
        }
        let is_cut = usize::from(line.end == LineEnd::Word);
        let whole = &words[..words.len() - is_cut];
        let labels: Option<Vec<_>> =
            whole.iter().map(|word| Some((label(word.text)?, word.column))).collect();
        match labels {
            Some(labels) if !labels.is_empty() => Self::Header(labels),
            _ => Self::Other,
        }
    }
}

/// `GPU12`
fn label(word: &str) -> Option<Gpu> {
    let digits = NAMES.iter().find_map(|name| word.strip_prefix(name))?;
    number(digits).map(Gpu)
}

fn number(digits: &str) -> Option<u32> {
    let is_plain = !digits.starts_with('0') || digits == "0";
    (is_plain && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// A line of `=` or `-` with words in it, or the words alone.
fn banner(text: &str) -> Option<Matter> {
    let text = text.trim();
    let title = text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '=' | '-'));
    if title == "Bandwidth" || title.to_ascii_lowercase().contains("between two ") {
        return Some(Matter::by_title(title));
    }
    (text.starts_with("===") || text.starts_with("---")).then_some(Matter::Other)
}

/// `GPU[0] : key: value`. Hygon's tool leaves the second colon out.
fn fact<'a>(text: &'a str, end: LineEnd) -> Option<Line<'a>> {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '>');
    let text = NAMES.iter().find_map(|name| text.strip_prefix(name))?.trim_start();
    let text = text.strip_prefix('[').unwrap_or(text);
    let (digits, text) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let gpu = Gpu(number(digits)?);
    let text = text.strip_prefix(']').unwrap_or(text);
    let said = text.trim_start().strip_prefix(':')?.trim();
    let (key, value) = match said.split_once(": ") {
        Some(pair) => pair,
        None => {
            let space = said.rfind(char::is_whitespace)?;
            (said[..space].trim_end().trim_end_matches(':'), &said[space..])
        }
    };
    let value = (end != LineEnd::Word).then_some(value);
    Some(Line::Fact { gpu, key: key.trim_end_matches(':').trim_end(), value })
}
