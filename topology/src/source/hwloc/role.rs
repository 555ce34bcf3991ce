//! What a device of the inventory is: a GPU, a network interface, an NVSwitch, or of no interest.

use std::collections::BTreeSet;

use super::inventory::Device;
use super::object::PciType;
use super::os_device::OsKind;
use crate::{NodeKind, PciAddress};

const NVIDIA: u16 = 0x10de;
const AMD: u16 = 0x1002;
const INTEL: u16 = 0x8086;

/// Vendors whose display devices are GPUs if a display driver runs them: AMD, NVIDIA, Intel,
/// Hygon and Moore Threads, by the PCI ID database.
const GPU_VENDORS: [u16; 5] = [AMD, NVIDIA, INTEL, 0x1d94, 0x1ed5];

/// Vendors of management controllers, whose display devices show a text console: ASPEED, Matrox,
/// Silicon Motion, XGI, Huawei, and the virtual ones of QEMU, Red Hat, VMware, VirtualBox, Cirrus
/// and Hyper-V, by the PCI ID database.
const CONSOLE_VENDORS: [u16; 11] =
    [0x1a03, 0x102b, 0x126f, 0x18ca, 0x19e5, 0x1234, 0x1af4, 0x1b36, 0x15ad, 0x80ee, 0x1013];

/// AMD's display devices for management controllers: Rage XL and ES1000, by the PCI ID database.
const AMD_CONSOLES: [u16; 4] = [0x4752, 0x515e, 0x5969, 0x4758];

/// Where Intel's processors have their built-in graphics.
const INTEGRATED_GRAPHICS: PciAddress = PciAddress { domain: 0, bus: 0, device: 2, function: 0 };

/// What a device is; `None` if it is of no interest.
pub(super) fn of(device: &Device<'_>) -> Option<NodeKind> {
    if is_nvswitch(device) {
        return Some(NodeKind::NvSwitch);
    }
    if device.pci.is_some() && is_gpu(device) {
        return Some(NodeKind::Gpu);
    }
    let is_nic = |kind: OsKind| match device.pci {
        Some(_) => kind.is_network(),
        // An interface of the kernel without a card is a virtual one.
        None => kind == OsKind::OpenFabrics,
    };
    device.os_devices.iter().any(|device| is_nic(device.kind)).then_some(NodeKind::Nic)
}

fn is_nvswitch(device: &Device<'_>) -> bool {
    let subtype = device.pci.and_then(|element| element.attribute("subtype"));
    subtype == Some("NVSwitch")
        || device.pci_type.is_some_and(|pci| pci.vendor == NVIDIA && pci.class == 0x0680)
}

fn is_gpu(device: &Device<'_>) -> bool {
    let has = |wanted: fn(OsKind) -> bool| device.os_devices.iter().any(|d| wanted(d.kind));
    if device.pci_type.is_some_and(|pci| is_console(pci, device.address)) {
        return false;
    }
    if has(OsKind::computes) {
        return true;
    }
    let Some(PciType { class, vendor, .. }) = device.pci_type else { return false };
    // Functions other than the first are virtual ones, unless a driver says otherwise.
    let is_first = device.address.is_none_or(|address| address.function == 0);
    match class {
        0x0302 => is_first,
        0x0300 | 0x0380 | 0x1200 if matches!(vendor, NVIDIA | AMD) => is_first,
        0x0300..=0x03ff | 0x1200 => {
            GPU_VENDORS.contains(&vendor) && has(|kind| kind == OsKind::Display)
        }
        _ => false,
    }
}

/// Whether it is a display that nobody computes on.
fn is_console(pci: PciType, address: Option<PciAddress>) -> bool {
    CONSOLE_VENDORS.contains(&pci.vendor)
        || pci.vendor == AMD && AMD_CONSOLES.contains(&pci.device)
        || pci.vendor == INTEL && address == Some(INTEGRATED_GRAPHICS)
}

/// Devices that libraries name, of which the file shows no PCI device. Each library names a GPU
/// by itself, so the names of one library are taken: that of the GPU's maker, else the next.
pub(super) fn gpus_without_pci(devices: &[Device<'_>]) -> BTreeSet<usize> {
    let rank = |kind: OsKind| match kind {
        OsKind::Nvml(_) | OsKind::RocmSmi(_) => Some(0),
        OsKind::Cuda(_) | OsKind::LevelZero(_) => Some(1),
        OsKind::OpenCl { .. } => Some(2),
        _ => None,
    };
    let ranks = |device: &Device<'_>| device.os_devices.iter().filter_map(|d| rank(d.kind)).min();
    let best = devices.iter().filter_map(ranks).min();
    let lone = devices.iter().enumerate().filter(|(_, device)| device.pci.is_none());
    lone.filter(|(_, device)| ranks(device).is_some() && ranks(device) == best)
        .map(|(at, _)| at)
        .collect()
}
