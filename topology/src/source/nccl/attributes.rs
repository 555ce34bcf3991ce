//! What stands in attributes: numbers, PCI classes, link speeds, addresses.

use super::super::xml::Element;
use crate::{Observations, PciAddress, PcieWidth, Uplink};

/// A whole number, decimal or hexadecimal. A leading zero would be octal for NCCL and decimal for
/// a person, so such a number is none.
pub(super) fn parse_number(text: &str) -> Option<u64> {
    let text = text.trim();
    let is_of = |digits: &str, radix| {
        !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix))
    };
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return is_of(digits, 16).then(|| u64::from_str_radix(digits, 16).ok())?;
    }
    let is_plain = text == "0" || !text.starts_with('0');
    (is_plain && is_of(text, 10)).then(|| text.parse().ok())?
}

/// The number that an attribute holds. A missing or empty attribute and -1 say that it is not
/// known; any other text that is no number, or too large a one, costs a warning.
pub(super) fn number<T: TryFrom<u64>>(
    element: &Element,
    attribute: &str,
    observed: &mut Observations,
) -> Option<T> {
    let text = element.attribute(attribute)?.trim();
    if text.is_empty() || text == "-1" {
        return None;
    }
    let value = parse_number(text).and_then(|value| T::try_from(value).ok());
    if value.is_none() {
        warn_of_value(element, attribute, "no such number", observed);
    }
    value
}

/// A positive number with or without decimals.
pub(super) fn decimal(
    element: &Element,
    attribute: &str,
    observed: &mut Observations,
) -> Option<f64> {
    let text = element.attribute(attribute)?.trim();
    if text.is_empty() || text == "-1" {
        return None;
    }
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value = is_plain.then(|| text.parse().ok()).flatten();
    if value.is_none() {
        warn_of_value(element, attribute, "no such number", observed);
    }
    value
}

/// The PCI address that an attribute holds.
pub(super) fn address(
    element: &Element,
    attribute: &str,
    observed: &mut Observations,
) -> Option<PciAddress> {
    let Some(text) = element.attribute(attribute) else {
        observed.warn(element.line, format!("<{}> has no {attribute}", element.name));
        return None;
    };
    let address = text.parse().ok();
    if address.is_none() {
        warn_of_value(element, attribute, "no PCI address", observed);
    }
    address
}

/// The digits of a PCI class, in lower case: `0302`, or `03` where no more is known.
pub(super) fn class(
    element: &Element,
    attribute: &str,
    observed: &mut Observations,
) -> Option<String> {
    let text = element.attribute(attribute)?.trim().to_ascii_lowercase();
    if text.is_empty() {
        return None;
    }
    let digits = text.strip_prefix("0x").unwrap_or(&text);
    let is_class = matches!(digits.len(), 2..=6) && digits.bytes().all(|b| b.is_ascii_hexdigit());
    if !is_class {
        warn_of_value(element, attribute, "no PCI class", observed);
    }
    is_class.then(|| digits.to_owned())
}

/// PCI vendor and device, as in `10de:2330`. Cloud providers make up switches of vendor ffff.
pub(super) fn model(element: &Element) -> Option<String> {
    let digits = |attribute: &str| {
        let text = element.attribute(attribute)?.trim().to_ascii_lowercase();
        let digits = text.strip_prefix("0x")?;
        let is_id = digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_id && digits != "ffff" && digits != "0000").then(|| digits.to_owned())
    };
    Some(format!("{}:{}", digits("vendor")?, digits("device")?))
}

/// The PCIe link of a device, as far as it is known. An empty speed or a width of 0 says that
/// NCCL could not find it out.
pub(super) fn uplink(element: &Element, observed: &mut Observations) -> Option<Uplink> {
    let current =
        PcieWidth { generation: generation(element, observed), lanes: lanes(element, observed) };
    let is_known = current != PcieWidth::default();
    is_known.then(|| Uplink { current, maximum: PcieWidth::default() })
}

/// The generation by `16.0 GT/s PCIe`, or `16 GT/s` as before Linux 5.7.
fn generation(element: &Element, observed: &mut Observations) -> Option<u8> {
    let text = element.attribute("link_speed")?.trim();
    if text.is_empty() || text.to_ascii_lowercase().starts_with("unknown") {
        return None;
    }
    let speed = text.strip_suffix("PCIe").unwrap_or(text).trim_end();
    let generation = match speed.strip_suffix("GT/s").map(str::trim_end) {
        Some("2.5") => Some(1),
        Some("5" | "5.0") => Some(2),
        Some("8" | "8.0") => Some(3),
        Some("16" | "16.0") => Some(4),
        Some("32" | "32.0") => Some(5),
        Some("64" | "64.0") => Some(6),
        _ => None,
    };
    if generation.is_none() {
        warn_of_value(element, "link_speed", "no speed of PCIe", observed);
    }
    generation
}

fn lanes(element: &Element, observed: &mut Observations) -> Option<u8> {
    let lanes: u32 = number(element, "link_width", observed)?;
    match lanes {
        1 | 2 | 4 | 8 | 12 | 16 | 32 => u8::try_from(lanes).ok(),
        // Linux prints 0, 63 or 255 where a device does not say.
        0 | 63 | 255 => None,
        _ => {
            warn_of_value(element, "link_width", "no width of PCIe", observed);
            None
        }
    }
}

/// Warns that the value of an attribute is left out, and why.
pub(super) fn warn_of_value(
    element: &Element,
    attribute: &str,
    why: &str,
    observed: &mut Observations,
) {
    let shown: String = element.attribute(attribute).unwrap_or("").chars().take(40).collect();
    let name = &element.name;
    let text = format!("{attribute}=\"{shown}\" of <{name}> is {why}; it is left out");
    observed.warn(element.line, text);
}
