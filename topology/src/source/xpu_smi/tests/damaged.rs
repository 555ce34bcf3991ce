//! Damaged texts: what they still say is true.

use proptest::prelude::*;

use crate::source::matrix_text::damage::{Line, Role, damage, damages};
use crate::source::xpu_smi::{read, recognizes};
use crate::{InterconnectType, Node, Statement, Tool};

/// Devices of two tiles in order, as xpu-smi prints them with bars or blanks between the cells.
fn machine() -> impl Strategy<Value = Vec<Line>> {
    let kinds = [
        InterconnectType::XeLink { links: 16 },
        InterconnectType::XeLink { links: 4 },
        InterconnectType::XeLinkIndirect,
        InterconnectType::Node,
        InterconnectType::System,
        InterconnectType::PcieSwitch,
    ];
    let pairs = prop::collection::vec(prop::sample::select(kinds.to_vec()), 36);
    let layout = prop::sample::select(vec![(9, " "), (1, " "), (8, "|")]);
    (1_usize..4, pairs, layout).prop_map(|(devices, pairs, (width, gap))| {
        let tiles = 2 * devices;
        let kind = |from: usize, to: usize| match from / 2 == to / 2 {
            true => InterconnectType::TileFabric,
            false => pairs[usize::min(from, to) * 6 + usize::max(from, to)],
        };
        let corner = if gap == "|" { " ".repeat(8) } else { String::new() };
        let labels = (0..tiles).map(label);
        let header: Vec<String> =
            std::iter::once(corner).chain(labels).chain(["CPU Affinity".to_owned()]).collect();
        let mut lines = vec![
            Line::new("xpu-smi topology -m", Role::Other),
            Line::of_fields(&header, width, gap, Role::Header),
        ];
        for from in 0..tiles {
            let text = |to| if from == to { "S".to_owned() } else { kind(from, to).class_name() };
            let fields: Vec<String> = std::iter::once(label(from))
                .chain((0..tiles).map(text))
                .chain([cpus(from)])
                .collect();
            let says = |to| match from == to {
                true => Vec::new(),
                false => vec![Statement::Class(kind(from, to))],
            };
            let role = Role::Row { from, cells: (0..tiles).map(says).collect() };
            let mut line = Line::of_fields(&fields, width, gap, role);
            line.text = line.text.trim_end_matches('|').to_owned();
            lines.push(line);
        }
        lines
    })
}

fn label(tile: usize) -> String {
    format!("GPU {}/{}", tile / 2, tile % 2)
}

fn cpus(tile: usize) -> String {
    format!("{0}0-{0}9,{0}00-{0}09", 1 + tile / 2)
}

fn index(node: &Node) -> Option<usize> {
    let name = node.label(Tool::XpuSmi)?;
    (0..6).find(|tile| label(*tile) == name)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_machine_in_order_is_read_whole(lines in machine()) {
        let whole = damage(&lines, &[], None);
        prop_assert!(recognizes(&whole.text));
        let observations = read(&whole.text).unwrap();
        whole.assert_true(&lines, &observations, index);
        let tiles = lines.len() - 2;
        prop_assert_eq!(observations.pairs.len(), tiles * (tiles - 1));
        for node in &observations.nodes {
            let affinity = index(node).map(cpus);
            prop_assert_eq!(&node.cpu_affinity, &affinity);
        }
        prop_assert_eq!(observations.warnings, []);
    }

    #[test]
    fn damage_never_makes_a_statement_untrue(
        lines in machine(),
        damages in damages(),
        cut in prop::option::of(0_usize..1000),
    ) {
        let damaged = damage(&lines, &damages, cut);
        recognizes(&damaged.text);
        if let Ok(observations) = read(&damaged.text) {
            damaged.assert_true(&lines, &observations, index);
            if damages.is_empty() {
                for node in &observations.nodes {
                    let affinity = index(node).map(cpus);
                    prop_assert!(node.cpu_affinity.is_none() || node.cpu_affinity == affinity);
                }
            }
        }
    }

    #[test]
    fn anything_is_read_or_refused(
        text in "(GPU [0-9]/[0-9]|CPU Affinity|PCIe Switch|Device ID|XL[0-9*]|[|+:, \n{}\\[\\]\"S-]){0,60}",
    ) {
        recognizes(&text);
        let _ = read(&text);
    }
}
