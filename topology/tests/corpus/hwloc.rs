//! Facts about the recorded files of hwloc.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;

use hopwise_topology::{
    Format, InterconnectType, Link, Node, NodeKind, Observations, PciAddress, Statement, Tool,
};

use crate::{Case, Outcome};

pub(crate) const CASES: &[Case] = &[
    ("hwloc-xml/aws-g4dn-metal-8xt4.xml", g4dn_metal),
    ("hwloc-xml/dgx2h-16xv100-nvml-nvlinkbandwidth.xml", dgx2),
    ("hwloc-xml/epyc-corona-4xmi25-opencl-only.xml", corona),
    ("hwloc-xml/matrix-4xh100-nvlinkbandwidth.xml", matrix),
    ("hwloc-xml/mi250x-eas-tioga-8gcd-rsmi.xml", eas_tioga),
    ("hwloc-xml/mi250x-tioga-8gcd-xgmi-distances.xml", tioga),
    ("hwloc-xml/pascal-2xp100-cuda-nvml-opencl.xml", pascal),
    ("hwloc-xml/power9-lassen-4xv100-v1.xml", lassen_v1),
    ("hwloc-xml/power9-lassen-4xv100-v2.xml", lassen_v2),
    ("hwloc-xml/v1-chimera-mixed-nvidia-amd.xml", chimera),
];

fn g4dn_metal(outcome: &Outcome) {
    let observed = clean(outcome);
    let gpus =
        ["18:00.0", "19:00.0", "35:00.0", "36:00.0", "e7:00.0", "e8:00.0", "f4:00.0", "f5:00.0"];
    check_gpus(observed, &gpus, &[0, 0, 0, 0, 1, 1, 1, 1]);
    for (number, gpu) in of_kind(observed, NodeKind::Gpu).enumerate() {
        assert_eq!(gpu.label(Tool::NvidiaSmi), Some(format!("GPU{number}").as_str()));
        assert_eq!(gpu.label(Tool::Nccl), Some(format!("GPU{number}").as_str()));
        assert_eq!(gpu.model.as_deref(), Some("Tesla T4"));
        assert_eq!(gpu.uuid, None, "the UUIDs are zeros");
        assert_eq!(chain(observed, gpu), [NodeKind::HostBridge, NodeKind::NumaNode]);
    }
    assert_eq!(numa_nodes(observed), [0, 1]);
    let cpu = of_kind(observed, NodeKind::NumaNode).next().unwrap();
    assert_eq!(cpu.architecture.as_deref(), Some("x86_64 GenuineIntel 6 85"));
    assert_eq!(cpu.cpu_affinity.as_deref(), Some("0-23,48-71"));
    assert!(observed.links.is_empty() && observed.pairs.is_empty());
}

fn dgx2(outcome: &Outcome) {
    let observed = clean(outcome);
    let gpus = [
        "34:00.0", "36:00.0", "39:00.0", "3b:00.0", "57:00.0", "59:00.0", "5c:00.0", "5e:00.0",
        "b7:00.0", "b9:00.0", "bc:00.0", "be:00.0", "e0:00.0", "e2:00.0", "e5:00.0", "e7:00.0",
    ];
    let numa: Vec<u32> = (0..16).map(|gpu| gpu / 8).collect();
    check_gpus(observed, &gpus, &numa);
    assert_eq!(numa_nodes(observed), [0, 1]);
    let switches: BTreeSet<_> =
        of_kind(observed, NodeKind::NvSwitch).map(|node| node.pci.unwrap()).collect();
    assert_eq!(switches.len(), 12);
    let kind = InterconnectType::NvLink { generation: Some(2), links: 1 };
    for (at, gpu) in positions(observed, NodeKind::Gpu) {
        let out: Vec<&Link> = observed.links.iter().filter(|link| link.from == at).collect();
        assert_eq!(out.len(), 6, "{gpu:?}");
        for link in out {
            assert_eq!(observed.nodes[link.to].kind, NodeKind::NvSwitch);
            assert_eq!((link.kind, link.bandwidth.value()), (kind, Some(25.0)));
        }
        let switches = [NodeKind::PcieSwitch, NodeKind::PcieSwitch];
        assert_eq!(
            chain(observed, gpu),
            [&switches[..], &[NodeKind::HostBridge, NodeKind::NumaNode]].concat()
        );
    }
    assert_eq!(observed.links.len(), 2 * 16 * 6, "as many back; none from GPU to GPU");
}

fn corona(outcome: &Outcome) {
    let observed = clean(outcome);
    check_gpus(observed, &["13:00.0", "23:00.0", "53:00.0", "73:00.0"], &[1, 2, 5, 7]);
    assert_eq!(numa_nodes(observed), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(labels(observed, NodeKind::Nic, Tool::Os), ["enp3s0f0", "enp3s0f1", "mlx5_0"]);
    let models: Vec<_> = of_kind(observed, NodeKind::Gpu).map(|gpu| gpu.model.as_deref()).collect();
    assert_eq!(models, [Some("Vega 20"); 4]);
}

fn matrix(outcome: &Outcome) {
    let observed = clean(outcome);
    check_gpus(observed, &["4c:00.0", "5d:00.0", "cc:00.0", "dc:00.0"], &[3, 1, 7, 5]);
    assert_eq!(labels(observed, NodeKind::Gpu, Tool::NvidiaSmi), ["GPU0", "GPU1", "GPU2", "GPU3"]);
    assert_eq!(numa_nodes(observed), [0, 1, 2, 3, 4, 5, 6, 7]);
    let kind = InterconnectType::NvLink { generation: Some(4), links: 6 };
    assert_eq!(observed.links.len(), 4 * 3);
    for link in &observed.links {
        assert_eq!((link.kind, link.bandwidth.value()), (kind, Some(150.0)));
    }
    // One switch leads to a GPU and a NIC.
    let gpu = of_kind(observed, NodeKind::Gpu).nth(1).unwrap();
    let mlx5_0 = of_kind(observed, NodeKind::Nic).find(|nic| nic.label(Tool::Os) == Some("mlx5_0"));
    assert_eq!(gpu.parent, mlx5_0.unwrap().parent);
    assert_eq!(observed.nodes[gpu.parent.unwrap()].pci, Some(address("5a:00.0")));
    let now = gpu.uplink.unwrap().current;
    assert_eq!((now.generation, now.lanes), (Some(5), Some(16)));
}

fn eas_tioga(outcome: &Outcome) {
    let observed = one(outcome);
    check_gcds(observed);
    let labels = labels(observed, NodeKind::Nic, Tool::Os);
    assert_eq!(labels, ["hsi2", "ens2", "hsi1", "hsi3", "hsi0"]);
}

fn tioga(outcome: &Outcome) {
    let observed = one(outcome);
    check_gcds(observed);
    let labels = labels(observed, NodeKind::Nic, Tool::Os);
    assert_eq!(labels.iter().filter(|label| label.starts_with("hsi")).count(), 4);
    let gpu = of_kind(observed, NodeKind::Gpu).next().unwrap();
    assert_eq!(gpu.model.as_deref(), Some("AMD Instinct MI250X"));
}

fn check_gcds(observed: &Observations) {
    let gpus =
        ["c1:00.0", "c6:00.0", "c9:00.0", "ce:00.0", "d1:00.0", "d6:00.0", "d9:00.0", "de:00.0"];
    check_gpus(observed, &gpus, &[3, 3, 1, 1, 0, 0, 2, 2]);
    assert_eq!(numa_nodes(observed), [0, 1, 2, 3]);
    let (mut hops, mut bandwidths, mut classes) = (0, 0, 0);
    for pair in &observed.pairs {
        match &pair.statement {
            Statement::Hops(1) => hops += 1,
            Statement::Bandwidth(figure) if figure.value() == Some(100.0) => bandwidths += 1,
            Statement::Class(InterconnectType::InfinityFabric { .. }) => classes += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((hops, bandwidths, classes), (56, 56, 56));
    // The same figure for all links is known to be wrong.
    let [warning] = &observed.warnings[..] else { panic!("{:?}", observed.warnings) };
    assert!(warning.text.contains("100 GB/s for all pairs"), "{warning}");
}

fn pascal(outcome: &Outcome) {
    let observed = clean(outcome);
    check_gpus(observed, &["04:00.0", "07:00.0"], &[0, 0]);
    assert_eq!(numa_nodes(observed), [0, 1]);
    let gpus: Vec<&Node> = of_kind(observed, NodeKind::Gpu).collect();
    assert_eq!(gpus[0].parent, gpus[1].parent);
    assert_eq!(observed.nodes[gpus[0].parent.unwrap()].kind, NodeKind::PcieSwitch);
    assert_eq!(labels(observed, NodeKind::Nic, Tool::Os)[0], "mlx5_0");
}

fn lassen_v1(outcome: &Outcome) {
    let observed = clean(outcome);
    check_lassen(observed);
    assert_eq!(numa_nodes(observed), [0, 8, 252, 253, 254, 255]);
    let is_near_cpus = |node: &&Node| node.cpu_affinity.is_some();
    assert_eq!(of_kind(observed, NodeKind::NumaNode).filter(is_near_cpus).count(), 2);
    // card0 is the management controller's.
    let labels = labels(observed, NodeKind::Gpu, Tool::Os);
    assert_eq!(labels, ["card1", "card2", "card3", "card4"]);
    let gpu = of_kind(observed, NodeKind::Gpu).next().unwrap();
    assert_eq!(gpu.model.as_deref(), Some("10de:1db1"));
}

fn lassen_v2(outcome: &Outcome) {
    let observed = clean(outcome);
    check_lassen(observed);
    assert_eq!(numa_nodes(observed), [0, 8]);
    assert_eq!(labels(observed, NodeKind::Gpu, Tool::NvidiaSmi), ["GPU0", "GPU1", "GPU2", "GPU3"]);
    assert_eq!(labels(observed, NodeKind::Gpu, Tool::Nccl), ["GPU0", "GPU1", "GPU2", "GPU3"]);
}

fn check_lassen(observed: &Observations) {
    let gpus = ["0004:04:00.0", "0004:05:00.0", "0035:03:00.0", "0035:04:00.0"];
    check_gpus(observed, &gpus, &[0, 0, 8, 8]);
    let nics = labels(observed, NodeKind::Nic, Tool::Os);
    assert_eq!(nics, ["mlx5_0", "mlx5_1", "enP5p1s0f0", "enP5p1s0f1", "mlx5_2", "mlx5_3"]);
    let parents: Vec<_> = of_kind(observed, NodeKind::Gpu)
        .map(|gpu| observed.nodes[gpu.parent.unwrap()].pci)
        .collect();
    let (near, far) = (Some(address("0004:01:00.0")), Some(address("0035:01:00.0")));
    assert_eq!(parents, [near, near, far, far]);
}

fn chimera(outcome: &Outcome) {
    let observed = clean(outcome);
    check_gpus(observed, &["08:00.0", "44:00.0"], &[0, 2]);
    assert_eq!(numa_nodes(observed), [0, 1, 2, 3]);
    let gpus: Vec<&Node> = of_kind(observed, NodeKind::Gpu).collect();
    assert_eq!(gpus[0].model.as_deref(), Some("GeForce GTX 1070"));
    assert_eq!(gpus[1].model.as_deref(), Some("Vega 10 XTX [Radeon Vega Frontier Edition]"));
    assert_eq!((gpus[0].label(Tool::Os), gpus[1].label(Tool::Os)), (Some("card0"), Some("card1")));
}

/// The reading, without warnings.
fn clean(outcome: &Outcome) -> &Observations {
    let observed = one(outcome);
    assert!(observed.warnings.is_empty(), "{:?}", observed.warnings);
    observed
}

fn one(outcome: &Outcome) -> &Observations {
    let [reading] = &outcome.as_ref().unwrap()[..] else { panic!("{outcome:?}") };
    assert_eq!(reading.format, Format::HwlocXml);
    &reading.observations
}

fn address(text: &str) -> PciAddress {
    text.parse().unwrap()
}

fn positions(observed: &Observations, kind: NodeKind) -> impl Iterator<Item = (usize, &Node)> {
    observed.nodes.iter().enumerate().filter(move |(_, node)| node.kind == kind)
}

fn of_kind(observed: &Observations, kind: NodeKind) -> impl Iterator<Item = &Node> {
    positions(observed, kind).map(|(_, node)| node)
}

/// The GPUs in order, with the NUMA nodes that they are near to.
fn check_gpus(observed: &Observations, addresses: &[&str], numa: &[u32]) {
    let gpus: Vec<_> =
        of_kind(observed, NodeKind::Gpu).map(|gpu| (gpu.pci.unwrap(), gpu.numa_node())).collect();
    let expected: Vec<_> =
        addresses.iter().zip(numa).map(|(text, &numa)| (address(text), Some(numa))).collect();
    assert_eq!(gpus, expected);
    for gpu in of_kind(observed, NodeKind::Gpu) {
        let top = *chain(observed, gpu).last().unwrap();
        assert_eq!(top, NodeKind::NumaNode, "{gpu:?}");
    }
}

/// Kinds of what a node hangs on, upwards.
fn chain(observed: &Observations, node: &Node) -> Vec<NodeKind> {
    let parents = std::iter::successors(node.parent, |&parent| observed.nodes[parent].parent);
    parents.map(|parent| observed.nodes[parent].kind).collect()
}

fn numa_nodes(observed: &Observations) -> Vec<u32> {
    of_kind(observed, NodeKind::NumaNode).filter_map(Node::numa_node).collect()
}

fn labels(observed: &Observations, kind: NodeKind, tool: Tool) -> Vec<&str> {
    of_kind(observed, kind).filter_map(|node| node.label(tool)).collect()
}
