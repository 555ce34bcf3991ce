//! The text form: tables whose rows and columns are PCI addresses, each under a title.

use std::collections::BTreeMap;

use super::{Gpu, TOOL, put_entries};
use crate::source::amd_matrix::{self, Matter};
use crate::source::matrix_text::{LineEnd, Sections, TextLine, Word, lines, words};
use crate::{Observations, PciAddress, SourceWarning};

/// Whether the text has such tables.
pub(super) fn is_in(text: &str) -> bool {
    let (mut has_title, mut has_header) = (false, false);
    for line in lines(text) {
        match Line::of(&line) {
            Line::Title(matter) => has_title |= matter != Matter::Other,
            Line::Header(_) => has_header = true,
            _ => {}
        }
    }
    has_title && has_header
}

/// Reads the tables in a text.
pub(super) fn read(text: &str, observations: &mut Observations) {
    let lines = lines(text);
    let warnings = &mut observations.warnings;
    let mut sections = Sections::new();
    let mut identities = Identities::default();
    for line in &lines {
        match Line::of(line) {
            Line::Blank => {}
            Line::Title(matter) => sections.title(matter),
            Line::Header(labels) => sections.header(labels, line.number),
            Line::Row(gpu, cells) => {
                if !sections.row(gpu, &cells, line.number, line.end) {
                    let text = format!("there is no header over this row of {gpu}; it is left out");
                    warnings.push(SourceWarning { line: Some(line.number), text });
                }
            }
            Line::Other(words) => {
                sections.other();
                identities.take(&words, line.end);
            }
        }
    }
    let sections = sections.finish(warnings).into_iter();
    let contents: Vec<_> =
        sections.filter_map(|section| amd_matrix::read(section, TOOL, warnings)).collect();
    let positions: BTreeMap<PciAddress, usize> = amd_matrix::gpus(&contents)
        .into_iter()
        .map(|pci| (pci, observations.add_node(identities.gpu(pci).node())))
        .collect();
    let entries = contents.into_iter().flat_map(|content| content.entries);
    put_entries(entries, |pci| positions.get(pci).copied(), observations);
}

/// A line by what it is.
enum Line<'a> {
    Blank,
    /// `LINK TYPE TABLE:`
    Title(Matter),
    /// `0000:0c:00.0 0000:22:00.0`: an address, and where it starts.
    Header(Vec<(PciAddress, usize)>),
    /// `0000:0c:00.0 SELF XGMI`
    Row(PciAddress, Vec<Word<'a>>),
    Other(Vec<Word<'a>>),
}

impl<'a> Line<'a> {
    fn of(line: &'a TextLine<'_>) -> Self {
        let words =
            words(line.text.as_ref(), |c| c.is_whitespace() || matches!(c, '|' | '>' | '`'));
        let Some((first, rest)) = words.split_first() else { return Self::Blank };
        let Some(gpu) = address(first.text) else {
            let is_title =
                words.len() <= 4 && words.last().is_some_and(|word| word.text == "TABLE:");
            return if is_title {
                let title: Vec<&str> = words.iter().map(|word| word.text).collect();
                Self::Title(Matter::by_title(&title.join(" ")))
            } else {
                Self::Other(words)
            };
        };
        if rest.first().is_some_and(|word| address(word.text).is_none()) {
            return Self::Row(gpu, rest.to_vec());
        }
        let is_cut = usize::from(line.end == LineEnd::Word);
        let whole = &words[..words.len() - is_cut];
        let labels: Option<Vec<_>> =
            whole.iter().map(|word| Some((address(word.text)?, word.column))).collect();
        match labels {
            Some(labels) if !labels.is_empty() => Self::Header(labels),
            _ => Self::Other(words),
        }
    }
}

/// A PCI address with all its parts, as amd-smi prints it.
fn address(word: &str) -> Option<PciAddress> {
    let is_whole = word.matches(':').count() == 2 && word.contains('.');
    is_whole.then(|| word.parse().ok())?
}

/// Numbers and UUIDs of GPUs from other commands in the same paste: `amd-smi list` (`GPU: 0`, and
/// below it `BDF: ...` and `UUID: ...`) and `amd-smi xgmi` (`GPU0 0000:0c:00.0 ...`).
#[derive(Default)]
struct Identities {
    by_address: BTreeMap<PciAddress, Gpu>,
    numbers: BTreeMap<u32, PciAddress>,
    /// The number over the lines that follow.
    number: Option<u32>,
    /// The address among them.
    current: Option<PciAddress>,
}

impl Identities {
    fn take(&mut self, words: &[Word<'_>], end: LineEnd) {
        let texts: Vec<&str> = words.iter().take(2).map(|word| word.text).collect();
        let [key, value] = texts[..] else { return };
        if end == LineEnd::Word && words.len() == 2 {
            return; // the value may be cut
        }
        match key {
            "GPU:" => (self.number, self.current) = (value.parse().ok(), None),
            "BDF:" => {
                self.current = address(value);
                if let (Some(number), Some(pci)) = (self.number.take(), self.current) {
                    self.name(number, pci);
                }
            }
            "UUID:" if value.len() > 8 => {
                if let Some(pci) = self.current.take() {
                    self.by_address.entry(pci).or_default().uuid = Some(value.to_owned());
                }
            }
            _ => {
                let number = key.strip_prefix("GPU").and_then(|digits| digits.parse().ok());
                if let (Some(number), Some(pci)) = (number, address(value)) {
                    self.name(number, pci);
                }
            }
        }
    }

    /// Two addresses with one number, or two numbers with one address, name nothing.
    fn name(&mut self, number: u32, pci: PciAddress) {
        let gpu = self.by_address.entry(pci).or_default();
        let other = *self.numbers.entry(number).or_insert(pci);
        if other == pci && gpu.number.is_none_or(|known| known == number) {
            gpu.number = Some(number);
            gpu.pci = Some(pci);
        } else {
            gpu.number = None;
            if let Some(other) = self.by_address.get_mut(&other) {
                other.number = None;
            }
        }
    }

    fn gpu(&self, pci: PciAddress) -> Gpu {
        let gpu = self.by_address.get(&pci).cloned().unwrap_or_default();
        Gpu { pci: Some(pci), ..gpu }
    }
}
