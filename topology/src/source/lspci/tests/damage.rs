//! Damaged trees: no panic, and no address that was not there.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

use super::{MACHINE, addresses, read};
use crate::{NodeKind, Observations, PciAddress};

/// Own trees, and recorded ones where there are any.
fn tree(number: usize) -> &'static str {
    static TREES: LazyLock<Vec<String>> = LazyLock::new(|| {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus/other");
        let recorded = fs::read_dir(folder).into_iter().flatten().flatten();
        let recorded = recorded.filter_map(|entry| fs::read_to_string(entry.path()).ok());
        let trees = recorded.filter(|text| text.contains("-[0000:00]-"));
        std::iter::once(MACHINE.to_owned()).chain(trees).collect()
    });
    &TREES[number % TREES.len()]
}

/// What each device is, and what it hangs on.
fn said(observed: &Observations) -> BTreeMap<PciAddress, (NodeKind, Vec<Option<PciAddress>>)> {
    let endpoints = observed
        .nodes
        .iter()
        .filter(|node| !matches!(node.kind, NodeKind::HostBridge | NodeKind::PcieSwitch));
    let above = |node: &crate::Node| {
        let parents = std::iter::successors(node.parent, |&at| observed.nodes[at].parent);
        parents.map(|at| observed.nodes[at].pci).collect()
    };
    endpoints.filter_map(|node| Some((node.pci?, (node.kind, above(node))))).collect()
}

fn without_line(text: &str, at: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let at = at % lines.len();
    [&lines[..at], &lines[at + 1..]].concat().join("\n")
}

proptest! {
    #[test]
    fn nothing_breaks_the_reader(
        number in any::<usize>(),
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..6),
        swapped in proptest::collection::vec((any::<usize>(), any::<usize>()), 0..3),
        cut in any::<usize>(),
    ) {
        let mut lines: Vec<&str> = tree(number).lines().collect();
        let count = lines.len();
        swapped.iter().for_each(|(a, b)| lines.swap(a % count, b % count));
        let mut bytes = lines.join("\n").into_bytes();
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        bytes.truncate(cut % (2 * bytes.len()));
        let text = String::from_utf8_lossy(&bytes);
        if let Ok(observed) = read(&text) {
            for node in &observed.nodes {
                prop_assert!(node.parent.is_none_or(|parent| parent < observed.nodes.len()));
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(-\\+?|[ |+\\\\-]{1,8}|\\[0000:0[0-9]\\]|\\[0[0-9]\\]|0[0-9]\\.0|\n){0,60}") {
        if let Ok(observed) = read(&text) {
            prop_assert!(observed.nodes.len() <= text.len());
        }
    }

    #[test]
    fn a_lost_line_makes_nothing_else_false(number in any::<usize>(), at in any::<usize>()) {
        let whole = said(&read(tree(number)).unwrap());
        let Ok(left) = read(&without_line(tree(number), at)) else { return Ok(()) };
        for (address, device) in said(&left) {
            prop_assert_eq!(whole.get(&address), Some(&device), "{}", address);
        }
    }

    #[test]
    fn what_stands_before_a_cut_stays_true(number in any::<usize>(), cut in any::<usize>()) {
        let text = tree(number);
        let whole = said(&read(text).unwrap());
        let Some(left) = text.get(..cut % text.len()) else { return Ok(()) };
        let Ok(left) = read(left) else { return Ok(()) };
        for (address, (_, above)) in said(&left) {
            let known = whole.get(&address).map(|(_, above)| above);
            // A name that was cut may be that of a disk that is now nothing, or unknown.
            prop_assert!(known.is_none_or(|known| *known == above), "{address}");
        }
    }

    #[test]
    fn a_line_that_is_there_twice_counts_once(number in any::<usize>(), at in any::<usize>()) {
        let lines: Vec<&str> = tree(number).lines().collect();
        let at = at % lines.len();
        let doubled = [&lines[..=at], &lines[at..]].concat().join("\n");
        let whole = said(&read(tree(number)).unwrap());
        for (address, device) in said(&read(&doubled).unwrap()) {
            prop_assert_eq!(whole.get(&address), Some(&device), "{}", address);
        }
    }
}

#[test]
fn lines_in_the_wrong_place_are_left_out() {
    let lines: Vec<&str> = MACHINE.trim_matches('\n').lines().collect();
    // The first GPU's line is gone, so its audio function has no bus.
    let observed = read(&without_line(MACHINE.trim_matches('\n'), 1)).unwrap();
    assert_eq!(addresses(&observed, NodeKind::Gpu), ["0000:05:00.0", "0000:06:00.0"]);
    assert_eq!(observed.warnings[0].line, Some(2));
    // A bus of which two are said to be is neither.
    let text = lines.join("\n").replace("04.0-[07]", "04.0-[05]");
    let observed = read(&text).unwrap();
    assert_eq!(addresses(&observed, NodeKind::Gpu), ["0000:06:00.0", "0000:c1:00.0"]);
    assert_eq!(addresses(&observed, NodeKind::Nic), [""; 0]);
    // A bus that is not among those above it is not there.
    let text = lines.join("\n").replace("10.0-[06]", "10.0-[16]");
    assert_eq!(addresses(&read(&text).unwrap(), NodeKind::Gpu).len(), 2);
}
