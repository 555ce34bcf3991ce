//! GPUs as nodes, in the order in which tools number them.

use super::inventory::Device;
use super::object::info;
use super::os_device::{OsDevice, OsKind};
use crate::{Label, Node, NodeKind, PciAddress, Tool};

/// By what GPUs are sorted: whose number, the number, the address.
pub(super) type Order = (u8, u32, u32, Option<PciAddress>);

/// NVML's number comes first, then ROCm SMI's, CUDA's, Level Zero's, OpenCL's; then the address.
pub(super) fn order(device: &Device<'_>) -> Order {
    let number = |os: &OsDevice<'_>| match os.kind {
        OsKind::Nvml(number) => Some((0, number, 0)),
        OsKind::RocmSmi(number) => Some((1, number, 0)),
        OsKind::Cuda(number) => Some((2, number, 0)),
        OsKind::LevelZero(number) => Some((3, number, 0)),
        OsKind::OpenCl { platform, device } => Some((4, platform, device)),
        _ => None,
    };
    let best = device.os_devices.iter().filter_map(number).min();
    let (whose, number, second) = best.unwrap_or((5, 0, 0));
    (whose, number, second, device.address)
}

/// The GPU as a node, without what it hangs on.
pub(super) fn node(device: &Device<'_>) -> Node {
    let mut node = Node::new(NodeKind::Gpu);
    node.labels = labels(device);
    node.uuid = uuid(device);
    let names = || models(device);
    node.architecture = names().find_map(architecture);
    node.model = names()
        .find(|name| architecture(name).is_none())
        .map(str::to_owned)
        .or_else(|| device.pci.and_then(product))
        .or_else(|| device.pci_type.map(|pci| format!("{:04x}:{:04x}", pci.vendor, pci.device)));
    node
}

fn labels(device: &Device<'_>) -> Vec<Label> {
    let mut labels: Vec<Label> = Vec::new();
    for os_device in &device.os_devices {
        let (tool, name) = match os_device.kind {
            OsKind::Nvml(number) => (Tool::NvidiaSmi, format!("GPU{number}")),
            OsKind::RocmSmi(number) => (Tool::RocmSmi, format!("GPU{number}")),
            // NCCL numbers GPUs as CUDA does.
            OsKind::Cuda(number) => (Tool::Nccl, format!("GPU{number}")),
            OsKind::Display => (Tool::Os, os_device.name.to_owned()),
            _ => continue,
        };
        labels.push(Label { tool, name });
    }
    labels.sort();
    labels.dedup();
    labels
}

/// A UUID of zeros stands for one that was not to be shown.
fn uuid(device: &Device<'_>) -> Option<String> {
    let keys = ["NVIDIAUUID", "AMDUUID", "LevelZeroUUID"];
    let mut stated = device
        .os_devices
        .iter()
        .flat_map(|os_device| keys.iter().filter_map(|key| info(os_device.element, key)));
    let is_shown = |uuid: &&str| {
        let digits = uuid.trim_start_matches("GPU-").trim_start_matches("0x");
        digits.bytes().any(|byte| !matches!(byte, b'0' | b'-'))
    };
    stated.find(is_shown).map(str::to_owned)
}

/// Names of the model, that of the maker's library first. ROCm SMI names the board.
fn models<'a>(device: &'a Device<'_>) -> impl Iterator<Item = &'a str> {
    let rank = |kind| match kind {
        OsKind::Nvml(_) => 0,
        OsKind::Cuda(_) => 1,
        OsKind::LevelZero(_) => 2,
        OsKind::OpenCl { .. } => 3,
        OsKind::RocmSmi(_) => 4,
        _ => 5,
    };
    let mut named: Vec<&OsDevice<'_>> = device.os_devices.iter().collect();
    named.sort_by_key(|os_device| rank(os_device.kind));
    named.into_iter().filter_map(|os_device| {
        info(os_device.element, "GPUModel").or_else(|| info(os_device.element, "LevelZeroModel"))
    })
}

/// OpenCL may name an AMD GPU by its architecture: `gfx90a:sramecc+:xnack-`.
fn architecture(name: &str) -> Option<String> {
    let name = name.split([':', '+']).next()?;
    let digits = name.strip_prefix("gfx")?;
    let is_one = digits.len() >= 3 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_one.then(|| name.to_owned())
}

/// `Tesla T4` of the PCI ID database's `TU104GL [Tesla T4]`.
fn product(pci: &super::super::xml::Element) -> Option<String> {
    let name = info(pci, "PCIDevice")?;
    let bracketed = name.strip_suffix(']').and_then(|name| name.rsplit_once('['));
    Some(bracketed.map_or(name, |(_, shop)| shop).trim().to_owned())
}
