//! Damaged texts: what they still say is true.

use proptest::prelude::*;

use super::{PCIE, XGMI};
use crate::source::matrix_text::damage::{Line, Role, damage, damages};
use crate::source::rocm_smi::{read, recognizes};
use crate::{Node, Statement, Tool};

/// A machine in order, as rocm-smi prints it.
fn machine() -> impl Strategy<Value = Vec<Line>> {
    let pairs = prop::collection::vec((1_u32..4, 0_u32..2, 0_u32..5), 36);
    (1_usize..6, pairs, prop::sample::select(vec![13_usize, 1]), any::<bool>()).prop_map(
        |(gpus, pairs, width, is_indented)| {
            let pair =
                |from: usize, to: usize| pairs[usize::min(from, to) * 6 + usize::max(from, to)];
            let weight = |from, to| {
                let (hops, kind, more) = pair(from, to);
                15 * hops + 5 * kind + more
            };
            let mut lines = Vec::new();
            for (matter, title) in ["Weight", "Hops", "Link Type"].into_iter().enumerate() {
                let banner = format!("=========== {title} between two GPUs ===========");
                lines.push(Line::new(banner, Role::Other));
                lines.extend(matrix(gpus, width, is_indented, |from, to| match matter {
                    0 => (weight(from, to).to_string(), Statement::Weight(weight(from, to))),
                    1 => (pair(from, to).0.to_string(), Statement::Hops(pair(from, to).0)),
                    _ if pair(from, to).1 == 0 => ("PCIE".to_owned(), PCIE),
                    _ => ("XGMI".to_owned(), XGMI),
                }));
                lines.push(Line::new("", Role::Other));
            }
            lines.push(Line::new("=========== Numa Nodes ===========", Role::Other));
            for gpu in 0..gpus {
                let fact = |what| format!("GPU[{gpu}]\t\t: (Topology) Numa {what}: {}", 7 + gpu);
                lines.push(Line::new(fact("Node"), Role::Other));
                lines.push(Line::new(fact("Affinity"), Role::Other));
            }
            lines.push(Line::new("=== End of ROCm SMI Log ===", Role::Other));
            lines
        },
    )
}

fn matrix(
    gpus: usize,
    width: usize,
    is_indented: bool,
    cell: impl Fn(usize, usize) -> (String, Statement),
) -> Vec<Line> {
    let label = |gpu: usize| format!("GPU{gpu:<width$}", width = if width > 1 { 4 } else { 1 });
    let label = |gpu| label(gpu).trim_end().to_owned();
    let corner = if is_indented { vec![String::new()] } else { Vec::new() };
    let header: Vec<String> = corner.into_iter().chain((0..gpus).map(label)).collect();
    let mut lines = vec![Line::of_fields(&header, width, " ", Role::Header)];
    for from in 0..gpus {
        let cells: Vec<_> = (0..gpus).map(|to| (to != from).then(|| cell(from, to))).collect();
        let texts = cells.iter().map(|cell| match cell {
            Some((text, _)) => text.clone(),
            None => "0".to_owned(),
        });
        let fields: Vec<String> = std::iter::once(label(from)).chain(texts).collect();
        let says = cells.into_iter().map(|cell| cell.into_iter().map(|(_, said)| said).collect());
        let role = Role::Row { from, cells: says.collect() };
        lines.push(Line::of_fields(&fields, width, " ", role));
    }
    lines
}

fn index(node: &Node) -> Option<usize> {
    node.label(Tool::RocmSmi)?.strip_prefix("GPU")?.parse().ok().filter(|gpu| *gpu < 6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_machine_in_order_is_read_whole(lines in machine()) {
        let whole = damage(&lines, &[], None);
        let observations = read(&whole.text).unwrap();
        whole.assert_true(&lines, &observations, index);
        let gpus = observations.nodes.len();
        prop_assert_eq!(observations.pairs.len(), 3 * gpus * (gpus - 1));
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
            for node in observations.nodes.iter().filter(|_| damaged.spared_other_lines(&lines)) {
                let numa_node = node.numa_node();
                let stated = index(node).and_then(|gpu| u32::try_from(7 + gpu).ok());
                prop_assert!(numa_node.is_none() || numa_node == stated, "{}", damaged.text);
            }
        }
    }

    #[test]
    fn anything_is_read_or_refused(text in "([A-Z]{0,3}[0-9GPU|=\\[\\]:{}\", \n\t-]{0,8}){0,40}") {
        recognizes(&text);
        let _ = read(&text);
    }
}
