//! Facts about the recorded trees of lspci.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use hopwise_topology::{Format, Node, NodeKind, PciAddress};

use crate::{Case, Outcome};

pub(crate) const CASES: &[Case] = &[("other/lspci-tv-asus-esc8000a-4xrtx6000ada.txt", esc8000a)];

fn esc8000a(outcome: &Outcome) {
    let [reading] = &outcome.as_ref().unwrap()[..] else { panic!("{outcome:?}") };
    assert_eq!(reading.format, Format::Lspci);
    let observed = &reading.observations;
    assert!(observed.warnings.is_empty(), "{:?}", observed.warnings);
    let of_kind = |kind| {
        let nodes = observed.nodes.iter().filter(move |node| node.kind == kind);
        nodes.map(|node| node.pci.unwrap()).collect::<Vec<PciAddress>>()
    };
    let addresses = |texts: &[&str]| -> Vec<PciAddress> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    };
    assert_eq!(of_kind(NodeKind::Gpu), addresses(&["01:00.0", "41:00.0", "c1:00.0", "e1:00.0"]));
    let nics = ["21:00.0", "21:00.1", "81:00.0", "81:00.1", "82:00.0", "82:00.1"];
    assert_eq!(of_kind(NodeKind::Nic), addresses(&nics));
    // Nothing hangs on the switches but disks.
    assert_eq!(of_kind(NodeKind::PcieSwitch), []);
    let bridges = ["00:00.0", "40:00.0", "c0:00.0", "e0:00.0", "20:00.0", "80:00.0"];
    assert_eq!(of_kind(NodeKind::HostBridge), addresses(&bridges));
    assert_eq!(of_kind(NodeKind::PciDevice), []);
    let is_gpu = |node: &&Node| node.kind == NodeKind::Gpu;
    for gpu in observed.nodes.iter().filter(is_gpu) {
        assert_eq!(gpu.model.as_deref(), Some("RTX 6000 Ada Generation"));
        let bridge = &observed.nodes[gpu.parent.unwrap()];
        assert_eq!(bridge.pci.unwrap().bus, gpu.pci.unwrap().bus & 0xf0);
    }
    let nic = observed.nodes.iter().find(|node| node.kind == NodeKind::Nic).unwrap();
    assert_eq!(nic.model.as_deref(), Some("Mellanox Technologies MT2910 Family [ConnectX-7]"));
}
