//! What happens to a file, and which of its devices that leaves intact.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use hopwise_topology::PciAddress;
use proptest::prelude::{Strategy, any, prop_oneof};

/// One thing that happens to a file. Numbers are taken modulo what there is.
#[derive(Clone, Debug)]
pub(crate) enum Damage {
    Cut(usize),
    ChangeByte(usize, u8),
    Delete(usize),
    Duplicate(usize, usize),
    Move(usize, usize),
    Swap(usize, usize),
    Glue(usize),
}

pub(crate) fn damages() -> impl Strategy<Value = Damage> {
    let number = || any::<proptest::sample::Index>().prop_map(|index| index.index(1 << 20));
    prop_oneof![
        number().prop_map(Damage::Cut),
        (number(), 1..128_u8).prop_map(|(at, byte)| Damage::ChangeByte(at, byte)),
        number().prop_map(Damage::Delete),
        (number(), number()).prop_map(|(from, to)| Damage::Duplicate(from, to)),
        (number(), number()).prop_map(|(from, to)| Damage::Move(from, to)),
        (number(), number()).prop_map(|(one, other)| Damage::Swap(one, other)),
        number().prop_map(Damage::Glue),
    ]
}

/// A damaged text, with what of the original is not as it was.
pub(crate) struct Damaged {
    pub(crate) text: String,
    /// Lines that changed or went, from 0.
    lines: BTreeSet<usize>,
    /// Lines before which something was put.
    insertions: BTreeSet<usize>,
    /// Whether something went from one place to another, which can be what another machine looks
    /// like.
    pub(crate) is_moved: bool,
}

impl Damage {
    pub(crate) fn apply(&self, text: &str) -> Damaged {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let count = lines.len();
        let mut touched = BTreeSet::new();
        let mut insertions = BTreeSet::new();
        let line_of = |at: usize| text.as_bytes()[..at].iter().filter(|&&b| b == b'\n').count();
        match *self {
            Self::Cut(at) => {
                let at = at % text.len();
                let lines = (line_of(at)..count).collect();
                let text = String::from_utf8_lossy(&text.as_bytes()[..at]).into_owned();
                return Damaged { text, lines, insertions, is_moved: false };
            }
            Self::ChangeByte(at, byte) => {
                let at = at % text.len();
                let mut bytes = text.as_bytes().to_vec();
                bytes[at] = byte;
                let first = line_of(at);
                // The end of a line belongs to the next one too.
                let lines = (first..=first + usize::from(text.as_bytes()[at] == b'\n')).collect();
                let text = String::from_utf8_lossy(&bytes).into_owned();
                return Damaged { text, lines, insertions, is_moved: false };
            }
            Self::Delete(at) => {
                lines.remove(at % count);
                touched.insert(at % count);
            }
            Self::Duplicate(from, to) => {
                let line = lines[from % count].clone();
                lines.insert(to % count, line);
                touched.insert(from % count);
                insertions.insert(to % count);
            }
            Self::Move(from, to) => {
                let (from, to) = (from % count, to % count);
                let line = lines.remove(from);
                lines.insert(to, line);
                touched.insert(from);
                insertions.insert(if to > from { to + 1 } else { to });
            }
            Self::Swap(one, other) => {
                lines.swap(one % count, other % count);
                touched.extend([one % count, other % count]);
            }
            Self::Glue(at) => {
                let at = at % (count - 1);
                let next = lines.remove(at + 1);
                lines[at].push_str(&next);
            }
        }
        let is_moved = matches!(self, Self::Duplicate(..) | Self::Move(..) | Self::Swap(..));
        Damaged { text: lines.join("\n"), lines: touched, insertions, is_moved }
    }
}

/// Where a `<pci>` stands in the text, and the tags around it.
pub(crate) struct Extent {
    lines: RangeInclusive<usize>,
    around: Vec<RangeInclusive<usize>>,
}

impl Extent {
    pub(crate) fn is_intact(&self, damaged: &Damaged) -> bool {
        let inside = self.lines.start() + 1..=*self.lines.end();
        !damaged.lines.iter().any(|line| self.lines.contains(line))
            && !damaged.insertions.iter().any(|line| inside.contains(line))
    }

    /// Whether the first and last lines of all that is around it are intact.
    pub(crate) fn is_place_intact(&self, damaged: &Damaged) -> bool {
        let mut tags = self.around.iter().flat_map(|around| [around.start(), around.end()]);
        tags.all(|line| !damaged.lines.contains(line))
    }
}

/// The extents of all devices, in a text of one tag a line.
pub(crate) fn extents(text: &str) -> BTreeMap<PciAddress, Extent> {
    let mut open: Vec<(usize, Option<PciAddress>)> = Vec::new();
    let mut closed = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let tag = line.trim();
        let address = || {
            let text = tag.strip_prefix("<pci busid=\"")?.split('"').next()?;
            text.parse::<PciAddress>().ok()
        };
        if tag.starts_with("</") {
            let (start, address) = open.pop().unwrap();
            closed.push((start..=number, address));
        } else if tag.starts_with("<!--") || !tag.starts_with('<') {
        } else if tag.split_inclusive('>').next().unwrap().ends_with("/>") {
            closed.push((number..=number, address()));
        } else {
            open.push((number, address()));
        }
    }
    let spans: Vec<_> = closed.iter().map(|(lines, _)| lines.clone()).collect();
    let around = |lines: &RangeInclusive<usize>| {
        let holds = |outer: &&RangeInclusive<usize>| {
            outer.start() < lines.start() && outer.end() > lines.end()
        };
        spans.iter().filter(holds).cloned().collect()
    };
    let mut extents = BTreeMap::new();
    let mut repeated = BTreeSet::new();
    for (lines, address) in closed {
        let Some(address) = address else { continue };
        let extent = Extent { around: around(&lines), lines };
        if extents.insert(address, extent).is_some() {
            repeated.insert(address);
        }
    }
    extents.retain(|address, _| !repeated.contains(address));
    extents
}
