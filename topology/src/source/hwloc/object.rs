//! What the attributes of an `<object>` say.

use super::super::pci_tree::BusRange;
use super::super::xml::Element;
use super::bitmap::Bitmap;
use crate::{PcieWidth, Uplink};

/// The kind of an object: `Package`, `PCIDev`.
pub(super) fn kind(object: &Element) -> &str {
    object.attribute("type").unwrap_or("")
}

/// Whether it is a device, or a note on another object, rather than a part of the machine that
/// has CPUs or memory. In version 1 a note may enclose such parts; it has their CPUs then.
pub(super) fn is_io(object: &Element) -> bool {
    let kind = kind(object);
    matches!(kind, "Bridge" | "PCIDev" | "OSDev")
        || kind == "Misc" && object.attribute("cpuset").is_none()
}

/// The objects directly in an element.
pub(super) fn children(element: &Element) -> impl Iterator<Item = &Element> {
    element.children_named("object")
}

/// The value of an `<info>` of an object; `None` if it is empty.
pub(super) fn info<'a>(object: &'a Element, name: &str) -> Option<&'a str> {
    let mut infos = object.children_named("info");
    let info = infos.find(|info| info.attribute("name") == Some(name))?;
    info.attribute("value").map(str::trim).filter(|value| !value.is_empty())
}

/// A set that an attribute states.
pub(super) fn set(object: &Element, attribute: &str) -> Option<Bitmap> {
    object.attribute(attribute).and_then(Bitmap::parse)
}

/// A decimal number without a sign.
pub(super) fn decimal<T: std::str::FromStr>(text: &str) -> Option<T> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

/// Class, vendor and device of a PCI device: `0302 [10de:1db1] [10de:1212] a1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PciType {
    pub(super) class: u16,
    pub(super) vendor: u16,
    pub(super) device: u16,
}

impl PciType {
    /// `None` where it is not readable, or all zero as for a device that may not be looked at.
    pub(super) fn of(object: &Element) -> Option<Self> {
        let mut words = object.attribute("pci_type")?.split_whitespace();
        let class = hexadecimal(words.next()?, 4)?;
        let ids = words.next()?.strip_prefix('[')?.strip_suffix(']')?;
        let (vendor, device) = ids.split_once(':')?;
        let this = Self { class, vendor: hexadecimal(vendor, 4)?, device: hexadecimal(device, 4)? };
        (this.vendor != 0).then_some(this)
    }
}

/// The buses below a bridge: `0000:[17-19]`.
pub(super) fn buses(bridge: &Element) -> Option<BusRange> {
    let (domain, range) = bridge.attribute("bridge_pci")?.split_once(':')?;
    let (first, last) = range.strip_prefix('[')?.strip_suffix(']')?.split_once('-')?;
    let range = BusRange {
        domain: hexadecimal(domain, 8)?,
        first: hexadecimal(first, 2)?,
        last: hexadecimal(last, 2)?,
    };
    (range.first <= range.last).then_some(range)
}

fn hexadecimal<T: TryFrom<u32>>(text: &str, most_digits: usize) -> Option<T> {
    let is_number = !text.is_empty()
        && text.len() <= most_digits
        && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = is_number.then(|| u32::from_str_radix(text, 16).ok())??;
    T::try_from(number).ok()
}

/// GB/s of one lane by generation, from 1, as hwloc counts: the signalling rate times the share
/// that the encoding leaves.
const LANE_GB_PER_S: [f64; 6] =
    [0.25, 0.5, 128.0 / 130.0, 256.0 / 130.0, 512.0 / 130.0, 8.0 * 242.0 / 256.0];

const LANES: [u8; 5] = [1, 2, 4, 8, 16];

/// The PCIe link of a device as it runs now, where the stated speed is that of just one
/// combination of generation and lanes. Most are not: 15.75 GB/s is 16 lanes of generation 3, 8
/// of generation 4 and 4 of generation 5.
pub(super) fn uplink(object: &Element) -> Option<Uplink> {
    let gb_per_s: f64 = object.attribute("pci_link_speed")?.parse().ok()?;
    let mut found = None;
    for (per_lane, generation) in LANE_GB_PER_S.into_iter().zip(1..) {
        for lanes in LANES {
            let expected = per_lane * f64::from(lanes);
            if (gb_per_s - expected).abs() < expected / 1000.0 {
                if found.is_some() {
                    return None;
                }
                found = Some(PcieWidth { generation: Some(generation), lanes: Some(lanes) });
            }
        }
    }
    found.map(|current| Uplink { current, ..Uplink::default() })
}
