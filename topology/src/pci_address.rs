//! Where a device sits on the PCI bus.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

#[cfg(test)]
mod tests;

/// A PCI address: domain, bus, device, function.
///
/// Tools write it in many ways: `0000:18:00.0`, `18:00.0`, `00000000:18:00.0`, `0002:01:02.3`.
/// All of them read as the same address, and it prints in one way.
///
/// ```
/// use hopwise_topology::PciAddress;
///
/// let address: PciAddress = "00000000:3B:00.0".parse()?;
/// assert_eq!(address, "3b:00.0".parse()?);
/// assert_eq!(address.to_string(), "0000:3b:00.0");
/// # Ok::<(), hopwise_topology::PciAddressError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PciAddress {
    /// Domain, 0 on most machines; virtual machines and NVLink dumps use large ones.
    pub domain: u32,
    /// Bus in the domain.
    pub bus: u8,
    /// Device on the bus, 0 to 31.
    pub device: u8,
    /// Function of the device. PCI knows 0 to 7; 0 to 255 with alternative routing.
    pub function: u8,
}

/// The text is not a PCI address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a PCI address; write it as 0000:18:00.0")]
pub struct PciAddressError {
    text: String,
}

impl FromStr for PciAddress {
    type Err = PciAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text.trim()).ok_or_else(|| PciAddressError { text: text.to_owned() })
    }
}

fn parse(text: &str) -> Option<PciAddress> {
    let (place, function) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = place.rsplit(':');
    let device = hexadecimal(parts.next()?, 2)?;
    let bus = hexadecimal(parts.next()?, 2)?;
    let domain = parts.next().map_or(Some(0), |domain| hexadecimal(domain, 8))?;
    if parts.next().is_some() || device > 31 {
        return None;
    }
    Some(PciAddress {
        domain,
        bus: u8::try_from(bus).ok()?,
        device: u8::try_from(device).ok()?,
        function: u8::try_from(hexadecimal(function, 2)?).ok()?,
    })
}

fn hexadecimal(text: &str, most_digits: usize) -> Option<u32> {
    let is_number = !text.is_empty()
        && text.len() <= most_digits
        && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number.then(|| u32::from_str_radix(text, 16).ok())?
}

/// As Linux writes it: `0000:18:00.0`.
impl fmt::Display for PciAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, bus, device, function } = self;
        write!(formatter, "{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
    }
}

/// As text.
impl Serialize for PciAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// From text.
impl<'de> Deserialize<'de> for PciAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}
