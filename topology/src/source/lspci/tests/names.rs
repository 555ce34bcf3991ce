//! What devices are, by their names.

use super::super::product::{Product, of};
use crate::NodeKind;

fn kind(name: &str) -> Option<NodeKind> {
    of(name, 0, false).map(|product| product.kind)
}

fn model(name: &str) -> Option<String> {
    of(name, 0, false).and_then(|product| product.model)
}

#[test]
fn gpus_are_known_by_vendor_and_words() {
    for name in [
        "NVIDIA Corporation GH100 [H100 SXM5 80GB]",
        "NVIDIA Corporation GA100 [A100 SXM4 80GB] [10de:20b2]",
        "NVIDIA Corporation TU104GL [Tesla T4]",
        "nVidia Corporation G92 [GeForce 9800 GT]",
        "NVIDIA Corporation GB202 [GeForce RTX 5090]",
        "NVIDIA Corporation GH100 [GH200 120GB / 480GB]",
        "NVIDIA Corporation Device 2330",
        "NVIDIA Corporation Device [10de:2901]",
        "Device 10de:2b85",
        "10de:1db1",
        "Advanced Micro Devices, Inc. [AMD/ATI] Aldebaran/MI200 [Instinct MI250X/MI250]",
        "Advanced Micro Devices, Inc. [AMD/ATI] Vega 20",
        "Advanced Micro Devices, Inc. [AMD/ATI] Device 74a1",
        "Advanced Micro Devices, Inc. [AMD/ATI] Device [1002:75a3]",
        "ATI Technologies Inc Cypress [Radeon HD 5800 Series]",
        "Intel Corporation Ponte Vecchio XT (2 Tile) [Data Center GPU Max 1550]",
        "Intel Corporation ATS-M [Data Center GPU Flex 170]",
        "Intel Corporation DG2 [Arc A770]",
        "Intel Corporation Battlemage G21 [Intel Graphics]",
        "Intel Corporation Device 0bd5",
    ] {
        assert_eq!(kind(name), Some(NodeKind::Gpu), "{name}");
        // Other functions of the card are audio, USB or virtual.
        assert_ne!(of(name, 1, false).map(|product| product.kind), Some(NodeKind::Gpu), "{name}");
    }
}

#[test]
fn what_is_beside_a_gpu_is_none() {
    for name in [
        "NVIDIA Corporation AD102 High Definition Audio Controller",
        "NVIDIA Corporation TU104 USB 3.1 Host Controller",
        "NVIDIA Corporation TU104 USB Type-C UCSI Controller",
        "NVIDIA Corporation MCP55 SMBus",
        "NVIDIA Corporation GK208 HDMI/DP Audio Controller",
        "Advanced Micro Devices, Inc. [AMD/ATI] Navi 21/23 HDMI/DP Audio Controller",
        "Advanced Micro Devices, Inc. [AMD/ATI] Navi 10 XL Upstream Port of PCI Express Switch",
        "Advanced Micro Devices, Inc. [AMD/ATI] Device ab38 Audio",
        "ATI Technologies Inc ES1000",
        "Advanced Micro Devices, Inc. [AMD] Device 14a4",
        "Advanced Micro Devices, Inc. [AMD] Genoa CCP/PSP 4.0 Device",
        "ASPEED Technology, Inc. ASPEED Graphics Family",
        "Matrox Electronics Systems Ltd. Integrated Matrox G200eW3 Graphics Controller",
        "Intel Corporation CoffeeLake-S GT2 [UHD Graphics 630]",
        "Intel Corporation Sky Lake-E PCI Express Root Port A",
        "Samsung Electronics Co Ltd NVMe SSD Controller PM9A1/PM9A3/980PRO",
        "Broadcom / LSI PCIe Switch management endpoint",
    ] {
        assert_eq!(kind(name), None, "{name}");
    }
    // Graphics on a root bus are built in.
    assert_eq!(of("Intel Corporation DG1 [Iris Xe MAX Graphics]", 0, true), None);
}

#[test]
fn network_interfaces_are_known_by_words() {
    for name in [
        "Mellanox Technologies MT2910 Family [ConnectX-7]",
        "Mellanox Technologies MT42822 BlueField-2 integrated ConnectX-6 Dx network controller",
        "Mellanox Technologies Device 1021",
        "Mellanox Technologies Device [15b3:101e]",
        "Intel Corporation Ethernet Controller X710 for 10GBASE-T",
        "Intel Corporation I350 Gigabit Network Connection",
        "Intel Corporation Omni-Path HFI Silicon 100 Series [discrete]",
        "Broadcom Inc. and subsidiaries BCM57414 NetXtreme-E 10Gb/25Gb RDMA Ethernet Controller",
        "QLogic Corp. FastLinQ QL41000 Series 10/25/40/50GbE Controller",
        "Cray Inc Cassini 1 [Slingshot 200Gb]",
        "Amazon.com, Inc. Elastic Network Adapter (ENA)",
        "Amazon.com, Inc. Elastic Fabric Adapter (EFA)",
        "Red Hat, Inc. Virtio network device",
        "Red Hat, Inc. Virtio 1.0 network device [1af4:1041]",
        "Google, Inc. Compute Engine Virtual Ethernet [gVNIC]",
    ] {
        assert_eq!(kind(name), Some(NodeKind::Nic), "{name}");
        assert_eq!(of(name, 3, true).map(|product| product.kind), Some(NodeKind::Nic), "{name}");
    }
    for name in [
        "Mellanox Technologies MT42822 BlueField-2 SoC Management Interface",
        "Mellanox Technologies MT43244 Family [BlueField-3 SoC Crypto DPU] DMA Controller",
        "Chelsio Communications Inc T62100-CR Unified Wire Storage Controller",
    ] {
        assert_eq!(kind(name), None, "{name}");
    }
}

#[test]
fn nvswitches_are_no_gpus() {
    for name in [
        "NVIDIA Corporation GH100 [H100 NVSwitch]",
        "NVIDIA Corporation Device 1af1",
        "NVIDIA Corporation Device [10de:22a3]",
        "10de:1ac2",
    ] {
        assert_eq!(kind(name), Some(NodeKind::NvSwitch), "{name}");
    }
}

#[test]
fn what_nobody_knows_is_a_device() {
    for (name, ids) in [
        ("NVIDIA Corporation Device ffff", "10de:ffff"),
        ("Advanced Micro Devices, Inc. [AMD/ATI] Device ffff", "1002:ffff"),
        ("15b3:ffff", "15b3:ffff"),
    ] {
        let expected = Product { kind: NodeKind::PciDevice, model: Some(ids.to_owned()) };
        assert_eq!(of(name, 0, false), Some(expected), "{name}");
    }
    assert_eq!(kind("Device ffff:ffff"), None);
    assert_eq!(kind("Vendor of things Device 1234"), None);
    assert_eq!(kind(""), None);
}

#[test]
fn models_are_names_in_the_shop_or_numbers() {
    assert_eq!(model("NVIDIA Corporation GH100 [H100 SXM5 80GB]").unwrap(), "H100 SXM5 80GB");
    assert_eq!(model("NVIDIA Corporation GH100 [H100 PCIe] [10de:2331]").unwrap(), "H100 PCIe");
    assert_eq!(model("NVIDIA Corporation Device 2330").unwrap(), "10de:2330");
    assert_eq!(
        model("NVIDIA Corporation GH100 [H100 SXM").unwrap(),
        "NVIDIA Corporation GH100 [H100 SXM"
    );
    let nic = "Mellanox Technologies MT2910 Family [ConnectX-7]";
    assert_eq!(model(nic).unwrap(), nic);
    assert_eq!(model(&format!("{nic} [15b3:1021]")).unwrap(), nic);
}

#[test]
fn virtual_functions_beside_their_own_do_not_count() {
    let text = r"
-[0000:00]-+-01.0-[01]--+-00.0  NVIDIA Corporation GA102GL [A40]
           |            +-00.4  NVIDIA Corporation GA102GL [A40]
           |            \-01.0  NVIDIA Corporation GA102GL [A40]
           +-02.0-[02]--+-00.0  Mellanox Technologies MT28908 Family [ConnectX-6]
           |            \-00.1  Mellanox Technologies MT28908 Family [ConnectX-6 Virtual Function]
           +-05.0  NVIDIA Corporation GV100GL [Tesla V100 SXM2 16GB]
           +-06.0  NVIDIA Corporation GV100GL [Tesla V100 SXM2 16GB]
           \-07.0  Mellanox Technologies MT28908 Family [ConnectX-6 Virtual Function]
";
    let observed = super::clean(text);
    // On a root bus, as in a virtual machine, each is a card.
    let gpus = ["0000:00:05.0", "0000:00:06.0", "0000:01:00.0"];
    assert_eq!(super::addresses(&observed, NodeKind::Gpu), gpus);
    assert_eq!(super::addresses(&observed, NodeKind::Nic), ["0000:00:07.0", "0000:02:00.0"]);
}
