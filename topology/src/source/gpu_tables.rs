//! Tables about pairs of GPUs, as rocm-smi and amd-smi print them: a header of names, and a row
//! for each name with a word for each column.
//!
//! Tables of several kinds follow each other, and a banner may be lost or stand over the wrong
//! one. So the words of a row tell what the row is about. A row that has not exactly as many words
//! as the header has names is left out: nothing would tell which word is missing.

use std::collections::BTreeMap;

use super::text::Line;
use crate::{Figure, InterconnectType, Observations, Pair, PeerCapability, PeerStatus, Statement};

/// No tool counts more links than this between two GPUs; every weight is more.
const MOST_HOPS: u32 = 8;

/// What rows are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Hops,
    Weight,
    LinkType,
    Access,
    Bandwidth,
}

/// Reads all tables of the lines. `name_of` gives the name that a word is, as the header and the
/// rows have them; `by` is who reports a bandwidth.
///
/// Returns the names, each once, in the order of the first header.
pub(super) fn read(
    lines: &[Line<'_>],
    name_of: &dyn Fn(&str) -> Option<String>,
    by: &'static str,
    all: &mut Observations,
) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut columns: Vec<usize> = Vec::new();
    let mut stated = BTreeMap::new();
    for line in lines {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let Some(first) = words.first().and_then(|word| name_of(word)) else { continue };
        let all_names: Option<Vec<String>> = words.iter().map(|word| name_of(word)).collect();
        if let Some(header) = all_names {
            columns = header.iter().map(|name| position(&mut names, name)).collect();
            if has_repeated(&columns) {
                all.warn(line.number, "a name stands over two columns; this table is left out");
                columns.clear();
            }
            continue;
        }
        let from = position(&mut names, &first);
        let Some(own) = columns.iter().position(|&column| column == from) else { continue };
        let words = &words[1..];
        match subject(words, own).filter(|_| words.len() == columns.len() && !line.is_cut) {
            Some(subject) => {
                let row = Row { from, own, words, line: line.number, subject, by };
                row.state(&columns, &mut stated, &names, all);
            }
            None if is_known_otherwise(words) => {}
            None => all.warn(
                line.number,
                format!("the row of {first} does not fit its table; it is left out"),
            ),
        }
    }
    names
}

fn position(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

fn has_repeated(columns: &[usize]) -> bool {
    columns.iter().enumerate().any(|(at, column)| columns[..at].contains(column))
}

/// What a row is about, by its words; its own column holds a mark.
fn subject(words: &[&str], own: usize) -> Option<Subject> {
    let mark = *words.get(own)?;
    let others = || words.iter().enumerate().filter(|&(at, _)| at != own).map(|(_, word)| *word);
    let all = |test: &dyn Fn(&str) -> bool| others().all(|word| word == "N/A" || test(word));
    let number = |word: &str| word.parse::<u32>().ok();
    // Of a single GPU nothing is said.
    others().next()?;
    if mark == "0" && all(&|word| number(word).is_some_and(|hops| hops <= MOST_HOPS)) {
        Some(Subject::Hops)
    } else if mark == "0" && all(&|word| number(word).is_some_and(|w| w == 0 || w > MOST_HOPS)) {
        Some(Subject::Weight)
    } else if matches!(mark, "0" | "SELF" | "N/A") && all(&|word| link_type(word).is_some()) {
        Some(Subject::LinkType)
    } else if all(&|word| access(word).is_some()) {
        Some(Subject::Access)
    } else if all(&|word| range(word).is_some()) {
        Some(Subject::Bandwidth)
    } else {
        None
    }
}

/// Whether the words are those of tables that are not read: coherency, atomics, DMA.
fn is_known_otherwise(words: &[&str]) -> bool {
    let is_flag = |word: &&str| {
        matches!(*word, "C" | "NC" | "T" | "F" | "N/A" | "SELF" | "64,32" | "64" | "32" | "0")
    };
    words.iter().all(is_flag)
}

fn link_type(word: &str) -> Option<InterconnectType> {
    match word {
        "XGMI" => Some(InterconnectType::InfinityFabric { links: 1 }),
        "PCIE" => Some(InterconnectType::Pcie { generation: None, lanes: None }),
        "UNKNOWN" | "UNKN" => Some(InterconnectType::Unknown),
        _ => None,
    }
}

fn access(word: &str) -> Option<PeerStatus> {
    match word {
        "ENABLED" | "True" => Some(PeerStatus::Supported),
        "DISABLED" | "False" => Some(PeerStatus::NotSupported),
        _ => None,
    }
}

/// The greater end of a range in MB/s; 0 stands for unknown.
pub(super) fn range(word: &str) -> Option<u32> {
    let (least, most) = word.split_once('-')?;
    let (least, most): (u32, u32) = (least.parse().ok()?, most.parse().ok()?);
    (least <= most).then_some(most)
}

/// A row that fits its table.
struct Row<'w> {
    from: usize,
    own: usize,
    words: &'w [&'w str],
    line: usize,
    subject: Subject,
    by: &'static str,
}

impl Row<'_> {
    /// Adds what the row states, unless another row has stated it before.
    fn state(
        &self,
        columns: &[usize],
        stated: &mut BTreeMap<(usize, Subject), Vec<String>>,
        names: &[String],
        all: &mut Observations,
    ) {
        let words: Vec<String> = self.words.iter().map(|word| (*word).to_owned()).collect();
        if let Some(before) = stated.get(&(self.from, self.subject)) {
            if *before != words {
                let name = &names[self.from];
                let text = format!("a second row of {name} says other things; it is left out");
                all.warn(self.line, text);
            }
            return;
        }
        stated.insert((self.from, self.subject), words);
        for (at, word) in self.words.iter().enumerate().filter(|&(at, _)| at != self.own) {
            if let Some(statement) = self.statement(word) {
                let (from, to, line) = (self.from, columns[at], Some(self.line));
                all.pairs.push(Pair { from, to, statement, line });
            }
        }
    }

    /// What a word says; nothing if it says that nothing is known.
    fn statement(&self, word: &str) -> Option<Statement> {
        let number = || word.parse().ok().filter(|&number: &u32| number > 0);
        Some(match self.subject {
            Subject::Hops => Statement::Hops(number()?),
            Subject::Weight => Statement::Weight(number()?),
            Subject::LinkType => {
                Statement::Class(link_type(word).filter(|kind| *kind != InterconnectType::Unknown)?)
            }
            Subject::Access => {
                Statement::Peer { capability: PeerCapability::Read, status: access(word)? }
            }
            Subject::Bandwidth => {
                let gb_per_s = f64::from(range(word)?) / 1000.0;
                Statement::Bandwidth(Figure::reported(gb_per_s, self.by).ok()?)
            }
        })
    }
}
