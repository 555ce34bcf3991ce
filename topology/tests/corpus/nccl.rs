//! Facts about the recorded topologies and graph dumps of NCCL and RCCL, and about one file that
//! only looks like one.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use hopwise_topology::{Format, InterconnectType, Node, NodeKind, Observations, PcieWidth, Tool};

use crate::{Case, Outcome};

pub(crate) const CASES: &[Case] = &[
    ("nccl-xml/aws-g5-8xa10g-busid-only.xml", aws_g5),
    ("nccl-xml/aws-p4d-8xa100-trailing-comments.xml", aws_p4d),
    ("nccl-xml/azure-nc48v4-2xa100-nvlink.xml", azure_nc48),
    ("nccl-xml/azure-ncv4-4xa100-self-target.xml", azure_ncv4),
    ("nccl-xml/azure-ncv4-graph.xml", graphs::azure_ncv4),
    ("nccl-xml/azure-ndv4-8xa100-pci-only.xml", azure_ndv4),
    ("nccl-xml/b200-8gpu-graph.xml", graphs::b200),
    ("nccl-xml/b200-8gpu-vm-13net-peer-targets.xml", nvswitch::b200_13_nets),
    ("nccl-xml/b200-8gpu-vm-before-nvlink.xml", nvswitch::b200_unseen_peers),
    ("nccl-xml/dell-4gpu-graph-hex-dev.xml", graphs::dell),
    ("nccl-xml/dell-4gpu-sm86-10net.xml", dell),
    ("nccl-xml/l20-16gpu-pcie-switch-tree.xml", l20),
    ("nccl-xml/oci-a100-flattened.xml", oci_a100),
    ("nccl-xml/oci-h100-8gpu-16net-nvswitch.xml", nvswitch::oci_h100),
    ("nccl-xml/rccl-mi100-16gpu-4hives-16nic.xml", rccl::mi100_four_hives),
    ("nccl-xml/rccl-mi100-8gpu-7numa.xml", rccl::mi100_seven_numa_nodes),
    ("nccl-xml/rccl-mi100-8gpu-collnet.xml", rccl::mi100_collnet),
    ("nccl-xml/rccl-mi210-3gpu-pcie-only.xml", rccl::mi210),
    ("nccl-xml/rccl-mi250-8gcd-frontier-like.xml", rccl::mi250_frontier),
    ("nccl-xml/rccl-mi250-8gcd-vendor-ffff.xml", rccl::mi250_vendor),
    ("nccl-xml/rccl-mi50-8gpu-no-xgmi.xml", rccl::mi50),
    ("nccl-xml/rccl-synthetic-c2c-2gpu-2nic.xml", rccl::synthetic_c2c),
    ("nccl-xml/rtx4000ada-8gpu-consumer.xml", rtx4000ada),
    ("nccl-xml/rtx4090-2gpu-dual-port-nic.xml", rtx4090_two),
    ("nccl-xml/rtx4090-4gpu-61net-k8s.xml", rtx4090_k8s),
    ("other/hygon-dtk-topo-mapping-groups.xml", hygon_groups),
];

mod graphs;
mod nvswitch;
mod rccl;

/// What the file says, which must be read as NCCL's XML and nothing else.
fn observed(outcome: &Outcome) -> &Observations {
    let readings = outcome.as_ref().unwrap();
    assert_eq!(
        readings.iter().map(|reading| reading.format).collect::<Vec<_>>(),
        [Format::NcclXml]
    );
    &readings[0].observations
}

/// What the file says, if there is nothing to warn of.
fn clean(outcome: &Outcome) -> &Observations {
    let observed = observed(outcome);
    assert_eq!(observed.warnings, []);
    observed
}

fn all(observed: &Observations, kind: NodeKind) -> Vec<&Node> {
    observed.nodes.iter().filter(|node| node.kind == kind).collect()
}

fn count(observed: &Observations, kind: NodeKind) -> usize {
    all(observed, kind).len()
}

/// NUMA nodes of the GPUs, in their order.
fn numa_of_gpus(observed: &Observations) -> Vec<u32> {
    all(observed, NodeKind::Gpu).iter().map(|gpu| gpu.numa_node().unwrap()).collect()
}

/// NUMA nodes in the order of the file.
fn numa_nodes(observed: &Observations) -> Vec<&str> {
    let nodes = all(observed, NodeKind::NumaNode);
    nodes.iter().map(|node| node.label(Tool::Numa).unwrap()).collect()
}

fn numbers(observed: &Observations) -> Vec<&str> {
    all(observed, NodeKind::Gpu).iter().map(|gpu| gpu.label(Tool::Nccl).unwrap()).collect()
}

fn addresses(nodes: &[&Node]) -> Vec<String> {
    nodes.iter().map(|node| node.pci.unwrap().to_string()).collect()
}

/// How many of a kind hang on each switch that anything of that kind hangs on.
fn on_each_switch(observed: &Observations, kind: NodeKind) -> Vec<usize> {
    let on = |switch: usize| {
        observed
            .nodes
            .iter()
            .filter(|node| node.kind == kind && node.parent == Some(switch))
            .count()
    };
    let switches =
        (0..observed.nodes.len()).filter(|&at| observed.nodes[at].kind == NodeKind::PcieSwitch);
    switches.map(on).filter(|&count| count > 0).collect()
}

/// The switches between a node and its CPU.
fn switches_above(observed: &Observations, node: &Node) -> usize {
    let mut parents = std::iter::successors(node.parent, |&at| observed.nodes[at].parent);
    let mut count = 0;
    while parents.next().is_some_and(|at| observed.nodes[at].kind == NodeKind::PcieSwitch) {
        count += 1;
    }
    count
}

fn width(node: &Node) -> PcieWidth {
    node.uplink.map(|uplink| uplink.current).unwrap_or_default()
}

const fn pcie(generation: u8, lanes: u8) -> PcieWidth {
    PcieWidth { generation: Some(generation), lanes: Some(lanes) }
}

/// GB/s by the rule of NCCL, width x speed / 80.
fn gb_per_s(node: &Node) -> f64 {
    let PcieWidth { generation, lanes } = width(node);
    InterconnectType::Pcie { generation, lanes }.estimated_bandwidth().value().unwrap()
}

/// The links from GPU to GPU as `from to number`.
fn links_of_gpus(observed: &Observations) -> Vec<(usize, usize, u16)> {
    let is_gpu = |at: usize| observed.nodes[at].kind == NodeKind::Gpu;
    let mut links: Vec<_> = observed
        .links
        .iter()
        .filter(|link| is_gpu(link.from) && is_gpu(link.to))
        .map(|link| match link.kind {
            InterconnectType::NvLink { links, .. } | InterconnectType::InfinityFabric { links } => {
                (link.from, link.to, links)
            }
            kind => panic!("{kind:?}"),
        })
        .collect();
    links.sort_unstable();
    links
}

/// Speeds of the networks in Gb/s, in the order of the file.
fn gigabits(observed: &Observations) -> Vec<f64> {
    let nics = all(observed, NodeKind::Nic);
    nics.iter().map(|nic| nic.network_gb_per_s.value().unwrap() * 8.0).collect()
}

fn aws_g5(outcome: &Outcome) {
    let observed = clean(outcome);
    assert_eq!(numa_nodes(observed), ["0", "1"]);
    let devices = all(observed, NodeKind::PciDevice);
    let numa: Vec<_> = devices.iter().map(|device| device.numa_node().unwrap()).collect();
    assert_eq!(numa, [0, 0, 0, 0, 1, 1, 1, 1, 1]);
    let buses = addresses(&devices);
    assert_eq!((buses[0].as_str(), buses[8].as_str()), ("0000:00:16.0", "0000:00:15.0"));
    assert!(devices.iter().all(|device| device.uplink.is_none()));
    // Which of the nine is a GPU is not to be known.
    assert_eq!(observed.nodes.len(), 2 + 9);
}

fn aws_p4d(outcome: &Outcome) {
    let observed = clean(outcome);
    assert_eq!(count(observed, NodeKind::PcieSwitch), 4);
    assert_eq!((count(observed, NodeKind::Gpu), count(observed, NodeKind::Nic)), (8, 4));
    assert_eq!(on_each_switch(observed, NodeKind::Gpu), [2; 4]);
    assert_eq!(on_each_switch(observed, NodeKind::Nic), [1; 4]);
    assert_eq!(numa_of_gpus(observed), [0, 0, 0, 0, 1, 1, 1, 1]);
    let gpus = all(observed, NodeKind::Gpu);
    assert!(gpus.iter().all(|gpu| width(gpu) == pcie(3, 16) && gb_per_s(gpu) == 12.0));
    assert_eq!(addresses(&gpus)[7], "0000:a0:1d.0");
    assert_eq!(addresses(&all(observed, NodeKind::PcieSwitch))[0], "ffff:ff:01.0");
    let cpu = all(observed, NodeKind::NumaNode)[0];
    assert_eq!(cpu.architecture.as_deref(), Some("x86_64 GenuineIntel 6 85"));
    assert_eq!(cpu.cpu_affinity.as_deref(), Some("000000ff,ffff0000,00ffffff"));
}

fn azure_nc48(outcome: &Outcome) {
    let observed = clean(outcome);
    assert_eq!(links_of_gpus(observed), [(0, 1, 12), (1, 0, 12)]);
    let kind = InterconnectType::NvLink { generation: Some(3), links: 12 };
    assert!(observed.links.iter().all(|link| link.kind == kind));
    assert_eq!((numa_of_gpus(observed), numbers(observed)), (vec![0, 1], vec!["GPU0", "GPU1"]));
    let gpus = all(observed, NodeKind::Gpu);
    assert!(gpus.iter().all(|gpu| gpu.uplink.is_none() && gpu.nvlinks_up == Some(12)));
    assert_eq!(gpus[0].architecture.as_deref(), Some("sm80"));
    let [nic] = all(observed, NodeKind::Nic)[..] else { panic!("{observed:?}") };
    assert_eq!(
        (nic.label(Tool::Os), nic.pci, gigabits(observed)),
        (Some("eth0"), None, vec![100.0])
    );
}

fn azure_ncv4(outcome: &Outcome) {
    let observed = observed(outcome);
    assert_eq!(observed.links, []);
    assert_eq!(numa_of_gpus(observed), [0, 1, 2, 3]);
    assert!(all(observed, NodeKind::Gpu).iter().all(|gpu| gpu.nvlinks_up.is_none()));
    let lines: Vec<_> = observed.warnings.iter().map(|warning| warning.line.unwrap()).collect();
    assert_eq!(lines, [5, 15, 22, 29]);
}

fn azure_ndv4(outcome: &Outcome) {
    let observed = clean(outcome);
    assert_eq!(numa_nodes(observed), ["0", "1", "2", "3"]);
    assert_eq!(on_each_switch(observed, NodeKind::Gpu), [2; 4]);
    assert_eq!(on_each_switch(observed, NodeKind::Nic), [2; 4]);
    assert_eq!(numa_of_gpus(observed), [0, 0, 1, 1, 2, 2, 3, 3]);
    let gpus = all(observed, NodeKind::Gpu);
    assert_eq!(addresses(&gpus)[..3], ["0003:00:00.0", "0004:00:00.0", "0001:00:00.0"]);
    assert!(gpus.iter().all(|gpu| gpu.labels.is_empty() && width(gpu) == pcie(4, 16)));
    assert_eq!(addresses(&all(observed, NodeKind::PcieSwitch))[3], "ffff:ff:04.0");
}

fn dell(outcome: &Outcome) {
    let observed = clean(outcome);
    assert_eq!(numa_of_gpus(observed), [0, 0, 1, 1]);
    assert_eq!(observed.links, []);
    let nics = all(observed, NodeKind::Nic);
    assert_eq!((nics.len(), nics.iter().filter(|nic| nic.pci.is_none()).count()), (10, 8));
    assert_eq!((nics[0].label(Tool::Os), width(nics[0])), (Some("eno1np0"), pcie(3, 4)));
    assert_eq!(gigabits(observed)[1..3], [1.0, 10.0]);
    let gpus = all(observed, NodeKind::Gpu);
    assert!(gpus.iter().all(|gpu| gpu.architecture.as_deref() == Some("sm86")));
    assert!(gpus.iter().all(|gpu| width(gpu) == pcie(3, 16)));
    let cpu = all(observed, NodeKind::NumaNode)[0];
    assert_eq!(cpu.cpu_affinity.as_deref(), Some("5555,55555555,55555555"));
}

fn l20(outcome: &Outcome) {
    let observed = clean(outcome);
    let names: Vec<_> = (0..16).map(|number| format!("GPU{number}")).collect();
    assert_eq!(numbers(observed), names);
    let numa = numa_of_gpus(observed);
    assert_eq!(numa, [0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1]);
    let gpus = all(observed, NodeKind::Gpu);
    assert!(gpus.iter().all(|gpu| switches_above(observed, gpu) == 2 && gpu.nvlinks_up.is_none()));
    assert_eq!((count(observed, NodeKind::PcieSwitch), count(observed, NodeKind::Nic)), (12, 8));
    assert_eq!(observed.links, []);
    assert_eq!(addresses(&gpus)[2], "0000:42:00.0");
    assert_eq!(width(gpus[0]), pcie(4, 16));
    // The switch below has a lower bus number than the one above it.
    let switch = &observed.nodes[gpus[0].parent.unwrap()];
    let above = &observed.nodes[switch.parent.unwrap()];
    assert_eq!(addresses(&[switch, above]), ["0000:0e:00.0", "0000:0f:02.0"]);
}

fn oci_a100(outcome: &Outcome) {
    let observed = clean(outcome);
    assert_eq!(numa_nodes(observed), ["3", "1", "7", "5"]);
    assert_eq!((count(observed, NodeKind::Gpu), count(observed, NodeKind::Nic)), (8, 8));
    assert_eq!(on_each_switch(observed, NodeKind::Gpu), [2; 4]);
    assert_eq!(on_each_switch(observed, NodeKind::Nic), [2; 4]);
    assert_eq!(numa_of_gpus(observed), [3, 3, 1, 1, 7, 7, 5, 5]);
    let gpus = addresses(&all(observed, NodeKind::Gpu));
    assert_eq!((gpus[0].as_str(), gpus[1].as_str()), ("0000:0f:00.0", "0000:15:00.0"));
}

fn rtx4000ada(outcome: &Outcome) {
    let observed = clean(outcome);
    assert_eq!(numa_of_gpus(observed), [0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(count(observed, NodeKind::PcieSwitch), 0);
    let gpus = all(observed, NodeKind::Gpu);
    assert!(gpus.iter().all(|gpu| gpu.architecture.as_deref() == Some("sm89")));
    // No switch: all hang on the root of their CPU.
    let parent = |gpu: &Node| observed.nodes[gpu.parent.unwrap()].kind;
    assert!(gpus.iter().all(|gpu| parent(gpu) == NodeKind::NumaNode));
    assert_eq!((observed.links.len(), gigabits(observed)), (0, vec![10.0]));
    assert_eq!(gpus[0].model.as_deref(), Some("10de:27b2"));
}

fn rtx4090_two(outcome: &Outcome) {
    let observed = clean(outcome);
    assert_eq!(numa_of_gpus(observed), [3, 2]);
    let nics = all(observed, NodeKind::Nic);
    let names: Vec<_> = nics.iter().map(|nic| nic.label(Tool::Os).unwrap()).collect();
    assert_eq!(names, ["mlx5_0", "mlx5_1"]);
    // Two ports of one card.
    assert_eq!(addresses(&nics), ["0000:02:00.0"; 2]);
    assert_eq!(all(observed, NodeKind::NumaNode)[0].cpu_affinity.as_deref(), Some("c0c0"));
}

fn rtx4090_k8s(outcome: &Outcome) {
    let observed = clean(outcome);
    assert_eq!(numbers(observed), ["GPU0", "GPU1", "GPU3", "GPU4"]);
    assert_eq!(numa_of_gpus(observed), [3, 2, 0, 7]);
    let nics = all(observed, NodeKind::Nic);
    assert_eq!(nics.len(), 61);
    let names: std::collections::BTreeSet<_> = nics.iter().map(|nic| nic.label(Tool::Os)).collect();
    assert_eq!(names.len(), 16);
    let [card] = nics.iter().filter(|nic| nic.pci.is_some()).collect::<Vec<_>>()[..] else {
        panic!("{nics:?}")
    };
    assert_eq!((card.label(Tool::Os), card.numa_node()), (Some("enp34s0f0"), Some(2)));
}

fn hygon_groups(outcome: &Outcome) {
    let error = outcome.as_ref().unwrap_err();
    assert_eq!(error.line(), Some(3));
    assert!(error.to_string().contains("this is not an NCCL topology"), "{error}");
}
