//! Numbers of devices, for names that the PCI ID database of a machine did not know.
//!
//! Ranges are those in which the database has devices of the kind and no others.

/// Vendor and device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ids {
    pub(super) vendor: Option<u16>,
    pub(super) device: u16,
}

impl Ids {
    /// `10de:2330`
    pub(super) fn in_full(self) -> Option<String> {
        self.vendor.map(|vendor| format!("{vendor:04x}:{:04x}", self.device))
    }
}

/// A name without its numbers, and the numbers: `-nn` writes them behind the name in brackets,
/// `-n` instead of it, and without either they stand for a name that is not known
/// (`NVIDIA Corporation Device 2330`).
pub(super) fn split(name: &str) -> (&str, Option<Ids>) {
    let both = |text: &str| {
        let (vendor, device) = text.split_once(':')?;
        Some(Ids { vendor: Some(number(vendor)?), device: number(device)? })
    };
    let bracketed = name.strip_suffix(']').and_then(|name| name.rsplit_once('['));
    let numbered = bracketed.and_then(|(before, inner)| Some((before.trim_end(), both(inner)?)));
    if let Some((before, ids)) = numbered {
        return (before, Some(ids));
    }
    let last = name.rsplit(' ').next().unwrap_or(name);
    if let Some(ids) = both(last) {
        return (name[..name.len() - last.len()].trim_end(), Some(ids));
    }
    let before = name[..name.len() - last.len()].trim_end();
    match number(last).filter(|_| before.ends_with(" Device")) {
        Some(device) => (before, Some(Ids { vendor: vendor_of(before), device })),
        None => (name, None),
    }
}

/// Whether a name without its numbers says nothing but who made the device.
pub(super) fn says_nothing(name: &str, ids: Option<Ids>) -> bool {
    ids.is_some() && (name.is_empty() || name == "Device" || name.ends_with(" Device"))
}

fn vendor_of(name: &str) -> Option<u16> {
    let lower = name.to_ascii_lowercase();
    let starts = [("nvidia", 0x10de), ("intel", 0x8086), ("mellanox", 0x15b3)];
    let known = starts.iter().find(|(start, _)| lower.starts_with(start)).map(|&(_, id)| id);
    known.or_else(|| lower.contains("[amd/ati]").then_some(0x1002))
}

fn number(text: &str) -> Option<u16> {
    let is_number = text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number.then(|| u16::from_str_radix(text, 16).ok())?
}

/// NVSwitch of V100, A100 and H100 machines.
pub(super) const fn is_nvswitch(device: u16) -> bool {
    matches!(device, 0x1ac1 | 0x1ac2 | 0x1af1 | 0x22a3)
}

/// GPUs since Maxwell; audio, USB and NVSwitches lie between.
pub(super) const fn is_nvidia_gpu(device: u16) -> bool {
    matches!(
        device,
        0x1340..=0x13ff
            | 0x15f0..=0x15ff
            | 0x1b00..=0x1bff
            | 0x1c00..=0x1dff
            | 0x1e00..=0x1fff
            | 0x2080..=0x227f
            | 0x2300..=0x28ff
            | 0x2900..=0x29ff
            | 0x2b80..=0x2fff
            | 0x3180..=0x31ff
    )
}

/// GPUs since Vega, and Instinct up to MI350.
pub(super) const fn is_amd_gpu(device: u16) -> bool {
    matches!(
        device,
        0x66a0..=0x66af
            | 0x6860..=0x687f
            | 0x7300..=0x745f
            | 0x7460..=0x7480
            | 0x74a0..=0x74bf
            | 0x7550..=0x7590
            | 0x75a0..=0x75bf
    )
}

/// Server GPU SG1 and DG1, Arc, Data Center GPU Flex and Max.
pub(super) const fn is_intel_gpu(device: u16) -> bool {
    matches!(device, 0x0bd0..=0x0bdb | 0x4905..=0x4909 | 0x5690..=0x56c2 | 0xe202..=0xe223)
}

/// ConnectX-3 to ConnectX-9 with their virtual functions, and BlueField's integrated ones.
pub(super) const fn is_mellanox_nic(device: u16) -> bool {
    matches!(device, 0x1003..=0x1027 | 0xa2d2 | 0xa2d6 | 0xa2dc | 0xa2df)
}
