//! Damage of every kind to what tools print: no panic, and never another value for what is intact.
//!
//! Matrices of our own and the files of the corpus are cut, their lines moved, doubled and lost,
//! their cells glued, and bytes made unreadable. What is then read must be what the whole text
//! says, or be left out.

#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use hopwise_topology::{Machine, Statement, read_text};
use proptest::prelude::*;

/// What is said, by what it is said of.
fn facts(text: &str) -> BTreeMap<String, String> {
    let Ok(readings) = read_text(text, None) else { return BTreeMap::new() };
    let machine = Machine::merge(&readings);
    let mut facts = BTreeMap::new();
    let name = |position| machine.name(position);
    for pair in machine.pairs() {
        let (subject, value) = match &pair.statement {
            Statement::Class(class) => ("class".to_owned(), class.class_name()),
            Statement::Peer { capability, status } => {
                (format!("{capability:?}"), format!("{status:?}"))
            }
            Statement::Hops(hops) => ("hops".to_owned(), hops.to_string()),
            Statement::Weight(weight) => ("weight".to_owned(), weight.to_string()),
            Statement::Bandwidth(figure) => ("bandwidth".to_owned(), figure.to_string()),
            other => ("other".to_owned(), format!("{other:?}")),
        };
        facts.insert(format!("{subject} {} {}", name(pair.from), name(pair.to)), value);
    }
    for (position, node) in machine.nodes().iter().enumerate() {
        if let Some(links) = node.nvlinks_up {
            facts.insert(format!("links {}", name(position)), links.to_string());
        }
        if let Some(rate) = node.nvlink_gb_per_s.value() {
            facts.insert(format!("rate {}", name(position)), rate.to_string());
        }
        if !node.numa_nodes.is_empty() {
            facts.insert(format!("numa {}", name(position)), format!("{:?}", node.numa_nodes));
        }
    }
    facts
}

/// Something that happens to a text.
#[derive(Clone, Debug)]
enum Damage {
    /// The text ends at a line, counted modulo their number.
    CutAtLine(usize),
    DropLine(usize),
    DoubleLine(usize),
    SwapLines(usize, usize),
    /// A byte, which is no end of a line, becomes one that no tool prints.
    Spoil(usize),
    /// The white space after a byte goes.
    Glue(usize),
    InsertLine(usize),
    Indent,
    TabsToSpaces,
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<usize>;
    prop_oneof![
        1 => at().prop_map(Damage::CutAtLine),
        2 => at().prop_map(Damage::DropLine),
        2 => at().prop_map(Damage::DoubleLine),
        2 => (at(), at()).prop_map(|(a, b)| Damage::SwapLines(a, b)),
        4 => at().prop_map(Damage::Spoil),
        3 => at().prop_map(Damage::Glue),
        1 => at().prop_map(Damage::InsertLine),
        1 => Just(Damage::Indent),
        1 => Just(Damage::TabsToSpaces),
    ]
}

fn damaged(text: &str, damage: &Damage) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if lines.is_empty() {
        return String::new();
    }
    let count = lines.len();
    match *damage {
        Damage::CutAtLine(at) => lines.truncate(at % count),
        Damage::DropLine(at) => drop(lines.remove(at % count)),
        Damage::DoubleLine(at) => lines.insert(at % count, lines[at % count].clone()),
        Damage::SwapLines(a, b) => lines.swap(a % count, b % count),
        Damage::InsertLine(at) => lines.insert(at % count, "# nobody knows".to_owned()),
        Damage::Indent => lines.iter_mut().for_each(|line| line.insert_str(0, "    ")),
        Damage::TabsToSpaces => {
            lines.iter_mut().for_each(|line| *line = line.replace('\t', "    "));
        }
        Damage::Spoil(at) => {
            let mut letters: Vec<char> = text.chars().collect();
            let at = at % letters.len();
            if letters[at] != '\n' {
                letters[at] = '#';
            }
            return letters.into_iter().collect();
        }
        Damage::Glue(at) => {
            let letters: Vec<char> = text.chars().collect();
            let start = at % letters.len();
            let is_gap = |letter: &char| *letter == ' ' || *letter == '\t';
            let gap = letters[start..].iter().take_while(|letter| is_gap(letter)).count();
            return letters[..start].iter().chain(&letters[start + gap..]).collect();
        }
    }
    lines.join("\n") + "\n"
}

/// A matrix as `nvidia-smi topo -m` prints it, symmetric, with this class for each pair.
fn matrix(gpus: usize, nics: usize, classes: &[u8]) -> String {
    let names: Vec<String> = (0..gpus)
        .map(|number| format!("GPU{number}"))
        .chain((0..nics).map(|number| format!("NIC{number}")))
        .collect();
    let class = |a: usize, b: usize| {
        let (a, b) = (a.min(b), a.max(b));
        let kinds = ["NV12", "NV2", "PIX", "PXB", "PHB", "NODE", "SYS", "NV1"];
        let far = ["PIX", "PXB", "PHB", "NODE", "SYS", "PIX", "PHB", "SYS"];
        let number = usize::from(classes[(a * 7 + b * 3) % classes.len()]) % 8;
        if b < gpus { kinds[number] } else { far[number] }
    };
    let mut text = format!("\t{}\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n", names.join("\t"));
    for (row, name) in names.iter().enumerate() {
        text.push_str(name);
        for column in 0..names.len() {
            text.push('\t');
            text.push_str(if row == column { " X " } else { class(row, column) });
        }
        let node = row % 2;
        let rest =
            if row < gpus { format!("\t0-{row}3\t{node}\t\tN/A") } else { "\t\t\t\t".into() };
        text.push_str(&rest);
        text.push('\n');
    }
    text.push_str("\nLegend:\n\n  X    = Self\n\nNIC Legend:\n\n");
    for nic in 0..nics {
        text.push_str(&format!("  NIC{nic}: mlx5_{nic}\n"));
    }
    text
}

/// Everything that is read of the damaged text is in the whole text, too.
fn holds(whole: &str, damages: &[Damage]) -> Result<(), TestCaseError> {
    let truth = facts(whole);
    let text = damages.iter().fold(whole.to_owned(), |text, damage| damaged(&text, damage));
    for (subject, value) in facts(&text) {
        let expected = truth.get(&subject);
        prop_assert!(
            expected.is_none_or(|expected| is_said_by(expected, &subject, &value)),
            "{subject} is {value}, but was {expected:?}, in\n{text}"
        );
    }
    Ok(())
}

/// Whether a value is the true one. Nothing tells that the last links of a GPU were lost with
/// their lines, so they may be fewer.
fn is_said_by(truth: &str, subject: &str, value: &str) -> bool {
    let number = |text: &str| text.parse::<u16>().unwrap_or(u16::MAX);
    truth == value || (subject.starts_with("links") && number(value) <= number(truth))
}

/// The texts of the corpus that are lists and matrices; none where the corpus is absent.
fn recorded() -> &'static [(String, String)] {
    static TEXTS: OnceLock<Vec<(String, String)>> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
        let folders = [
            "nvidia-smi-topo",
            "nvidia-smi-p2p",
            "nvidia-smi-nvlink",
            "rocm-smi",
            "xpu-smi",
            "other",
        ];
        let mut texts = Vec::new();
        for file in folders.iter().filter_map(|name| fs::read_dir(folder.join(name)).ok()).flatten()
        {
            let path = file.unwrap().path();
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            texts.push((path.display().to_string(), text));
        }
        if texts.is_empty() {
            println!("skipped: there is no corpus at {}", folder.display());
        }
        texts.sort();
        texts
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_damaged_matrix_of_ours_says_nothing_else(
        gpus in 1_usize..9,
        nics in 0_usize..4,
        classes in prop::collection::vec(any::<u8>(), 8),
        damages in prop::collection::vec(damage(), 1..5),
    ) {
        holds(&matrix(gpus, nics, &classes), &damages)?;
    }

    #[test]
    fn a_damaged_recording_says_nothing_else(
        file in any::<prop::sample::Index>(),
        damages in prop::collection::vec(damage(), 1..4),
    ) {
        let texts = recorded();
        if !texts.is_empty() {
            holds(&texts[file.index(texts.len())].1, &damages)?;
        }
    }

    #[test]
    fn a_cut_text_is_read_up_to_the_cut(
        file in any::<prop::sample::Index>(),
        cut in 0.0..1.0_f64,
    ) {
        let texts = recorded();
        if texts.is_empty() {
            return Ok(());
        }
        let letters: Vec<char> = texts[file.index(texts.len())].1.chars().collect();
        #[allow(
            clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss,
            reason = "a rough place in a text"
        )]
        let at = (letters.len() as f64 * cut) as usize;
        let text: String = letters[..at].iter().collect();
        let truth = facts(&letters.iter().collect::<String>());
        let last = text.lines().last().unwrap_or("").trim().to_owned();
        for (subject, value) in facts(&text) {
            // The line that is cut may end within a cell.
            let is_of_last = subject.split(' ').skip(1).any(|name| last.starts_with(name));
            let expected = truth.get(&subject);
            prop_assert!(
                is_of_last
                    || expected.is_none_or(|expected| is_said_by(expected, &subject, &value)),
                "{subject} is {value}, but was {expected:?}, in\n{text}"
            );
        }
    }
}
