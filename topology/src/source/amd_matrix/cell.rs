//! What stands in the cells.

use std::fmt;

use crate::{Figure, InterconnectType, PeerCapability, PeerStatus, Statement};

/// What a matrix is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matter {
    Weight,
    Hops,
    LinkType,
    /// Whether one GPU has access to the memory of the other.
    Access,
    /// Least and greatest MB/s, one direction: of one link, and of all links together.
    Bandwidth,
    Atomics,
    /// Numbers, by their look; it needs a title to say which.
    AnyNumber,
    /// Something else, which is not read.
    Other,
}

impl fmt::Display for Matter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Weight => "weights",
            Self::Hops => "hops",
            Self::LinkType => "kinds of links",
            Self::Access => "kinds of access",
            Self::Bandwidth => "bandwidths",
            Self::Atomics => "atomics",
            Self::AnyNumber => "numbers",
            Self::Other => "something else",
        })
    }
}

/// What a cell says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Says(Vec<Statement>),
    /// That nothing is known.
    Nothing,
    /// 0, where 0 is no possible figure.
    Zero,
    /// Nothing that the tool prints.
    Damaged,
}

/// The driver gives 15 to a hop over xGMI and 20 to a stretch of PCIe, so a weight is never as low
/// as this, and hops are never more. A row that was moved to the other matrix is known by that.
const MOST_HOPS: u32 = 9;

/// What amd-smi prints where there is no way.
const NO_HOPS: u32 = 255;

/// What tools print where they know nothing.
const ABSENT: [&str; 4] = ["N/A", "NA", "None", "-"];

impl Matter {
    /// From the words of a title.
    pub(crate) fn by_title(title: &str) -> Self {
        let title = title.to_ascii_lowercase();
        let by_word = [
            ("weight", Self::Weight),
            ("hops", Self::Hops),
            ("link type", Self::LinkType),
            ("access", Self::Access),
            ("bandwidth", Self::Bandwidth),
            ("numa bw", Self::Bandwidth),
            ("atomics", Self::Atomics),
        ];
        let found = by_word.into_iter().find(|(word, _)| title.contains(word));
        found.map_or(Self::Other, |(_, matter)| matter)
    }

    /// What most cells are about, if they look like anything.
    pub(crate) fn by_content<'a>(cells: impl Iterator<Item = &'a str>) -> Option<Self> {
        let looks = [Self::LinkType, Self::Access, Self::Bandwidth, Self::AnyNumber];
        let mut counts = [0_usize; 4];
        for look in cells.filter_map(Self::look) {
            for (count, matter) in counts.iter_mut().zip(looks) {
                *count += usize::from(matter == look);
            }
        }
        let most = counts.into_iter().max().filter(|most| *most > 0)?;
        looks.into_iter().zip(counts).find(|(_, count)| *count == most).map(|(matter, _)| matter)
    }

    /// What a cell is about by its look alone.
    fn look(cell: &str) -> Option<Self> {
        let says = |matter: &Self| matches!(matter.cell(cell, ""), Cell::Says(_));
        let named = [Self::LinkType, Self::Access, Self::Bandwidth].into_iter().find(says);
        let is_number = cell != "0" && cell.bytes().all(|byte| byte.is_ascii_digit());
        named.or(is_number.then_some(Self::AnyNumber))
    }

    /// Whether cells of this look may stand under this title.
    pub(crate) fn may_hold(self, content: Self) -> bool {
        self == content
            || content == Self::AnyNumber
                && matches!(self, Self::Weight | Self::Hops | Self::Atomics | Self::Other)
    }

    /// Whether a cell may stand on the diagonal.
    pub(crate) fn is_self(self, cell: &str) -> bool {
        let is_named = cell.eq_ignore_ascii_case("SELF") || cell == "X";
        match self {
            Self::Weight | Self::Hops | Self::LinkType => is_named || cell == "0",
            Self::Bandwidth => is_named || is_absent(cell) || cell == "0-0",
            _ => true,
        }
    }

    /// What a cell off the diagonal says; `tool` is who reports it.
    pub(crate) fn cell(self, cell: &str, tool: &'static str) -> Cell {
        if is_absent(cell) {
            return Cell::Nothing;
        }
        match self {
            Self::Weight => match digits(cell) {
                Some(0) => Cell::Zero,
                Some(weight) if weight > MOST_HOPS => Cell::Says(vec![Statement::Weight(weight)]),
                _ => Cell::Damaged,
            },
            Self::Hops => match digits(cell) {
                Some(0) => Cell::Zero,
                Some(NO_HOPS) => Cell::Nothing,
                Some(hops) if hops <= MOST_HOPS => Cell::Says(vec![Statement::Hops(hops)]),
                _ => Cell::Damaged,
            },
            Self::LinkType => link_type(cell),
            Self::Access => access(cell),
            Self::Bandwidth => bandwidth(cell, tool),
            Self::Atomics => atomics(cell),
            Self::AnyNumber | Self::Other => Cell::Nothing,
        }
    }
}

fn is_absent(cell: &str) -> bool {
    ABSENT.iter().any(|absent| cell.eq_ignore_ascii_case(absent))
}

fn digits<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn link_type(cell: &str) -> Cell {
    let kind = match cell.to_ascii_uppercase().as_str() {
        // The tools count no links; one is the least that there is.
        "XGMI" => InterconnectType::InfinityFabric { links: 1 },
        "PCIE" => InterconnectType::Pcie { generation: None, lanes: None },
        // A kind that the tool has no name for, and the switches of Hygon's machines.
        "XXXX" | "UNKNOWN" | "HSW" => InterconnectType::Unknown,
        // What rocm-smi leaves where the driver did not answer.
        "0" => return Cell::Zero,
        _ => return Cell::Damaged,
    };
    Cell::Says(vec![Statement::Class(kind)])
}

fn access(cell: &str) -> Cell {
    let status = match cell.to_ascii_uppercase().as_str() {
        "TRUE" | "ENABLED" => PeerStatus::Supported,
        "FALSE" | "DISABLED" => PeerStatus::NotSupported,
        _ => return Cell::Damaged,
    };
    let both = [PeerCapability::Read, PeerCapability::Write];
    Cell::Says(both.map(|capability| Statement::Peer { capability, status }).to_vec())
}

/// `50000-200000`. 0 says that no link joins the two directly.
fn bandwidth(cell: &str, tool: &'static str) -> Cell {
    let bounds = cell
        .split_once('-')
        .and_then(|(least, greatest)| Some((digits::<u32>(least)?, digits::<u32>(greatest)?)));
    match bounds {
        Some((_, 0 | u32::MAX)) => Cell::Nothing,
        Some((least, greatest)) if least <= greatest => {
            match Figure::reported(f64::from(greatest) / 1000.0, tool) {
                Ok(figure) => Cell::Says(vec![Statement::Bandwidth(figure)]),
                Err(_) => Cell::Nothing,
            }
        }
        _ => Cell::Damaged,
    }
}

/// `64,32`: both widths. Of one width alone nothing is said, since there is no word for it.
fn atomics(cell: &str) -> Cell {
    match cell {
        "64,32" => Cell::Says(vec![Statement::Peer {
            capability: PeerCapability::Atomics,
            status: PeerStatus::Supported,
        }]),
        "64" | "32" | "SELF" => Cell::Nothing,
        _ => Cell::Damaged,
    }
}
