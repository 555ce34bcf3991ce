//! Network interfaces as nodes.

use std::collections::BTreeSet;

use super::inventory::Device;
use super::object::info;
use super::os_device::{OsDevice, OsKind};
use crate::{Node, NodeKind, Tool};

/// The interface as a node, without what it hangs on. The name for programs that pass messages
/// (`mlx5_0`) comes before that of the kernel's network (`ib0`).
pub(super) fn node(device: &Device<'_>) -> Node {
    let mut named: Vec<&OsDevice<'_>> =
        device.os_devices.iter().filter(|os_device| os_device.kind.is_network()).collect();
    named.sort_by_key(|os_device| os_device.kind != OsKind::OpenFabrics);
    let mut seen = BTreeSet::new();
    named.retain(|os_device| seen.insert(os_device.name));
    let mut node = Node::new(NodeKind::Nic);
    for os_device in named {
        node = node.labelled(Tool::Os, os_device.name);
    }
    node.model =
        device.pci.and_then(|pci| info(pci, "PCIDevice")).map(str::to_owned).or_else(|| {
            device.pci_type.map(|pci| format!("{:04x}:{:04x}", pci.vendor, pci.device))
        });
    node
}
