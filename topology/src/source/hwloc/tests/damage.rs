//! Damaged files: no panic, and nothing false about what is still there.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};

use super::{read, small_machine};
use crate::{Link, NodeKind, Observations, PciAddress};

/// Own files, and recorded ones where there are any.
fn file(number: usize) -> &'static str {
    static FILES: LazyLock<Vec<String>> = LazyLock::new(|| {
        let folder =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus/hwloc-xml");
        let recorded = fs::read_dir(folder).into_iter().flatten().flatten();
        let recorded = recorded.filter_map(|entry| fs::read_to_string(entry.path()).ok());
        // As often as all others together, since it is read much faster.
        std::iter::repeat_n(small_machine(), 10).chain(recorded).collect()
    });
    &FILES[number % FILES.len()]
}

#[derive(Clone, Copy, Debug)]
enum Damage {
    Cut(usize),
    Delete(usize),
    Duplicate(usize),
    Swap(usize, usize),
    Change(usize, u8),
}

impl Damage {
    fn to(self, text: &str) -> String {
        let lines: Vec<&str> = text.lines().collect();
        let line = |at: usize| at % lines.len().max(1);
        let join = |lines: &[&str]| lines.join("\n") + "\n";
        match self {
            Self::Cut(at) => {
                let bytes = &text.as_bytes()[..at % (text.len() + 1)];
                String::from_utf8_lossy(bytes).into_owned()
            }
            Self::Delete(at) => {
                let mut left = lines.clone();
                left.remove(line(at));
                join(&left)
            }
            Self::Duplicate(at) => {
                let mut more = lines.clone();
                more.insert(line(at), lines[line(at)]);
                join(&more)
            }
            Self::Swap(one, another) => {
                let mut swapped = lines.clone();
                swapped.swap(line(one), line(another));
                join(&swapped)
            }
            Self::Change(at, byte) => {
                let mut bytes = text.as_bytes().to_vec();
                let at = at % bytes.len().max(1);
                if let Some(changed) = bytes.get_mut(at) {
                    *changed = byte;
                }
                String::from_utf8_lossy(&bytes).into_owned()
            }
        }
    }
}

/// Damage after which no line says anything else than before.
fn loss() -> impl Strategy<Value = Damage> {
    (0..3_u8, any::<usize>()).prop_map(|(kind, at)| match kind {
        0 => Damage::Cut(at),
        1 => Damage::Delete(at),
        _ => Damage::Duplicate(at),
    })
}

fn damage() -> impl Strategy<Value = Damage> {
    (0..5_u8, any::<usize>(), any::<usize>(), any::<u8>()).prop_map(|(kind, at, other, byte)| {
        match kind {
            0 => Damage::Cut(at),
            1 => Damage::Delete(at),
            2 => Damage::Duplicate(at),
            3 => Damage::Swap(at, other),
            _ => Damage::Change(at, byte),
        }
    })
}

/// What is said about each device: its NUMA nodes and what it hangs on.
fn said(observed: &Observations) -> BTreeMap<(NodeKind, PciAddress), (Vec<u32>, Vec<String>)> {
    let name = |at: usize| {
        let node = &observed.nodes[at];
        format!("{:?} {:?} {:?}", node.kind, node.pci, node.numa_nodes)
    };
    let above = |node: &crate::Node| {
        let parents = std::iter::successors(node.parent, |&at| observed.nodes[at].parent);
        parents.map(name).collect()
    };
    let nodes = observed.nodes.iter();
    nodes
        .filter_map(|node| Some(((node.kind, node.pci?), (node.numa_nodes.clone(), above(node)))))
        .collect()
}

/// Links by the addresses of their ends, or numbers of NUMA nodes.
fn links(observed: &Observations) -> BTreeMap<String, (String, Option<f64>)> {
    let name = |at: usize| format!("{:?} {:?}", observed.nodes[at].pci, observed.nodes[at].kind);
    let of = |link: &Link| {
        let ends = format!("{} {}", name(link.from), name(link.to));
        (ends, (format!("{:?}", link.kind), link.bandwidth.value()))
    };
    observed.links.iter().map(of).collect()
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(96))]

    #[test]
    fn nothing_breaks_the_reader(
        number in any::<usize>(),
        damages in proptest::collection::vec(damage(), 1..5),
    ) {
        let mut text = file(number).to_owned();
        for damage in damages {
            text = damage.to(&text);
        }
        if let Ok(observed) = read(&text) {
            for node in &observed.nodes {
                prop_assert!(node.parent.is_none_or(|parent| parent < observed.nodes.len()));
            }
            for link in &observed.links {
                prop_assert!(link.from != link.to);
            }
        }
    }

    #[test]
    fn a_lost_line_makes_nothing_else_false(number in any::<usize>(), loss in loss()) {
        let whole = file(number);
        let Ok(left) = read(&loss.to(whole)) else { return Ok(()) };
        let whole = read(whole).unwrap();
        let (before, after) = (said(&whole), said(&left));
        for (device, (numa, above)) in after {
            let Some((known_numa, known_above)) = before.get(&device) else {
                prop_assert!(false, "{device:?} was not there");
                continue;
            };
            prop_assert!(numa.is_empty() || numa == *known_numa, "{device:?} {numa:?}");
            // The upper part may be unknown now.
            let place = |name: &String| name.split(" [").next().map(str::to_owned);
            for (now, then) in above.iter().zip(known_above) {
                prop_assert_eq!(place(now), place(then));
            }
            prop_assert!(above.len() <= known_above.len());
        }
        let known = links(&whole);
        for (ends, figures) in links(&left) {
            prop_assert_eq!(known.get(&ends), Some(&figures));
        }
    }
}
