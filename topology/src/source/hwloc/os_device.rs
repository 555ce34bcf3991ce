//! Devices as drivers and libraries name them: `nvml0`, `cuda0`, `card1`, `mlx5_0`.

use super::super::xml::Element;
use super::object::{decimal, info};

/// A device as one driver or library sees it. One PCI device may have several.
#[derive(Clone, Copy, Debug)]
pub(super) struct OsDevice<'a> {
    pub(super) name: &'a str,
    pub(super) kind: OsKind,
    pub(super) element: &'a Element,
}

/// Whose name it is, with its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OsKind {
    Nvml(u32),
    RocmSmi(u32),
    Cuda(u32),
    LevelZero(u32),
    OpenCl {
        platform: u32,
        device: u32,
    },
    /// A card of the kernel's display drivers: `card0`, `renderD128`.
    Display,
    /// An InfiniBand, RoCE or Omni-Path device: `mlx5_0`.
    OpenFabrics,
    /// A network interface: `eth0`.
    Network,
    Other,
}

impl OsKind {
    /// Whether a library for computing sees it, so that it is a GPU whatever its class.
    pub(super) const fn computes(self) -> bool {
        matches!(
            self,
            Self::Nvml(_)
                | Self::RocmSmi(_)
                | Self::Cuda(_)
                | Self::LevelZero(_)
                | Self::OpenCl { .. }
        )
    }

    pub(super) const fn is_network(self) -> bool {
        matches!(self, Self::OpenFabrics | Self::Network)
    }
}

impl<'a> OsDevice<'a> {
    /// `major` is the version of the file.
    pub(super) fn of(element: &'a Element, major: u32) -> Self {
        let name = element.attribute("name").unwrap_or("");
        let kind = by_name(name, element).unwrap_or_else(|| by_type(element, major));
        Self { name, kind, element }
    }
}

fn by_name(name: &str, element: &Element) -> Option<OsKind> {
    let number = |prefix| name.strip_prefix(prefix).and_then(decimal::<u32>);
    if let Some(number) = number("nvml") {
        return Some(OsKind::Nvml(number));
    }
    if let Some(number) = number("rsmi") {
        return Some(OsKind::RocmSmi(number));
    }
    if let Some(number) = number("cuda") {
        return Some(OsKind::Cuda(number));
    }
    if let Some(number) = number("ze") {
        let is_gpu = info(element, "LevelZeroDeviceType").is_none_or(|kind| kind == "GPU");
        return Some(if is_gpu { OsKind::LevelZero(number) } else { OsKind::Other });
    }
    if let Some((platform, device)) = name.strip_prefix("opencl").and_then(|n| n.split_once('d')) {
        let is_gpu = info(element, "OpenCLDeviceType").is_none_or(|kind| kind.contains("GPU"));
        let (platform, device) = (decimal(platform)?, decimal(device)?);
        return Some(if is_gpu { OsKind::OpenCl { platform, device } } else { OsKind::Other });
    }
    if number("card").or_else(|| number("renderD")).is_some() {
        return Some(OsKind::Display);
    }
    None
}

/// Up to version 2 the type is a number from a list, from version 3 on a set of bits.
fn by_type(element: &Element, major: u32) -> OsKind {
    let number = element.attribute("osdev_type").and_then(decimal::<u64>);
    let (is_network, is_fabric) = match (number, major) {
        (Some(number), ..=2) => (number == 2, number == 3),
        (Some(bits), _) => (bits & 16 != 0, bits & 32 != 0),
        (None, _) => (false, false),
    };
    match (is_fabric, is_network) {
        (true, _) => OsKind::OpenFabrics,
        (false, true) => OsKind::Network,
        (false, false) => OsKind::Other,
    }
}
