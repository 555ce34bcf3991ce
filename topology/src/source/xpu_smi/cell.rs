//! What stands in the cells of the matrix.

use crate::InterconnectType;

/// A cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    /// On the diagonal.
    Itself,
    Kind(InterconnectType),
    /// That nothing is known.
    Nothing,
    /// Nothing that the tool prints.
    Damaged,
}

impl Cell {
    pub(super) fn of(text: &str) -> Self {
        match text {
            "S" => Self::Itself,
            "MDF" => Self::Kind(InterconnectType::TileFabric),
            "XL*" => Self::Kind(InterconnectType::XeLinkIndirect),
            // A Xe Link of which the tool found no port: its width is not known.
            "XL" => Self::Kind(InterconnectType::Unknown),
            "PIX" => Self::Kind(InterconnectType::PcieSwitch),
            "PXB" => Self::Kind(InterconnectType::PcieSwitches),
            "PHB" => Self::Kind(InterconnectType::HostBridge),
            "NODE" => Self::Kind(InterconnectType::Node),
            "SYS" => Self::Kind(InterconnectType::System),
            "Unknown" | "N/A" | "" => Self::Nothing,
            _ => xe_link(text).map_or(Self::Damaged, Self::Kind),
        }
    }

    pub(super) fn is_known(text: &str) -> bool {
        Self::of(text) != Self::Damaged
    }
}

/// `XL16`: 16 lanes.
fn xe_link(text: &str) -> Option<InterconnectType> {
    let digits = text.strip_prefix("XL")?;
    let is_number = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    let links = is_number.then(|| digits.parse().ok())??;
    Some(InterconnectType::XeLink { links })
}

/// Whether a text is a list of CPUs: `0-23,48-71`.
pub(super) fn is_cpu_list(text: &str) -> bool {
    !text.is_empty()
        && text.split(',').all(|range| {
            let mut bounds = range.splitn(2, '-');
            bounds.all(|bound| !bound.is_empty() && bound.bytes().all(|byte| byte.is_ascii_digit()))
        })
}
