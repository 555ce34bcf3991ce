//! GPUs, pairs and PCIe.

use hopwise_topology::{Format, Machine, Node, NodeKind, Observations, Reading, Tool};

use super::scripted::{Scripted, gpu_pci, pci};
use crate::nvml::management::{Ancestor, Instance, Pcie};

fn texts(observations: &Observations) -> Vec<&str> {
    observations.warnings.iter().map(|warning| warning.text.as_str()).collect()
}

#[test]
fn cards_with_access_over_pcie_have_no_nvlink() {
    let (said, machine) = Scripted::new(2).observe();
    assert_eq!(machine.classes()[0], ["X", "PHB"]);
    assert!(said.links.is_empty(), "{:?}", said.links);
    assert_eq!(said.nodes[0].nvlinks_up, Some(0));
    assert_eq!(machine.peer_access(0, 1), Some(true));
    let link = machine.topology().connection(0, 1).expect("they reach each other");
    assert_eq!(link.kind.class_name(), "PHB");
    assert!(texts(&said).is_empty(), "{:?}", said.warnings);
}

#[test]
fn every_ancestor_has_its_class() {
    let classes = [
        (Ancestor::Internal, "PIX"),
        (Ancestor::Single, "PIX"),
        (Ancestor::Multiple, "PXB"),
        (Ancestor::HostBridge, "PHB"),
        (Ancestor::Node, "NODE"),
        (Ancestor::System, "SYS"),
    ];
    for (ancestor, class) in classes {
        let machine = Scripted { ancestor: Some(ancestor), ..Scripted::new(2) };
        assert_eq!(machine.observe().1.classes()[1][0], class);
    }
}

#[test]
fn a_lost_gpu_leaves_the_others() {
    let mut scripted = Scripted::new(4);
    scripted.gpus[1].is_lost = true;
    let (said, machine) = scripted.observe();
    let found: Vec<_> = said.nodes.iter().map(|node| node.pci).collect();
    assert_eq!(found, [0, 2, 3].map(|index| Some(gpu_pci(index))));
    assert_eq!(machine.classes()[0], ["X", "PHB", "PHB"]);
    let [warning] = texts(&said)[..] else { panic!("{:?}", said.warnings) };
    for part in ["pci for GPU1", "the GPU is lost", "the other GPUs are shown", "Xid 79"] {
        assert!(warning.contains(part), "`{part}` is not in: {warning}");
    }
}

#[test]
fn what_cannot_be_asked_of_pairs_is_one_warning() {
    let (said, machine) = Scripted { ancestor: None, ..Scripted::new(8) }.observe();
    assert_eq!(machine.classes()[0][1], "?");
    assert_eq!(machine.peer_access(0, 1), Some(true), "the other statements are there");
    let [warning] = texts(&said)[..] else { panic!("{:?}", said.warnings) };
    assert!(warning.starts_with("ancestor for GPU0 and GPU1, "), "{warning}");
    assert!(warning.contains(" and 24 more: not supported"), "{warning}");
}

#[test]
fn the_speed_of_an_idle_card_is_not_its_speed() {
    let mut scripted = Scripted::new(2);
    for gpu in &mut scripted.gpus {
        gpu.pcie = Pcie { generation_now: Some(1), ..gpu.pcie };
    }
    let (said, machine) = scripted.observe();
    let uplink = said.nodes[0].uplink.expect("the PCIe link is told");
    assert_eq!((uplink.current.generation, uplink.maximum.generation), (Some(1), Some(4)));
    let host = machine.topology().host_link(0).expect("each device has one");
    assert_eq!(host.to_host.bandwidth.value(), Some(24.0), "generation 4 x 16");
}

/// NVML lists by PCI address, CUDA the fastest first: the same number is another GPU.
#[test]
fn gpus_are_known_by_address_whatever_they_are_numbered() {
    let observations = Scripted::new(2).nvml().links();
    let nvml = Reading { format: Format::Nvml, observations };
    let mut cuda = Observations::default();
    for (ordinal, address) in [gpu_pci(1), gpu_pci(0)].into_iter().enumerate() {
        let mut node = Node::new(NodeKind::Gpu).labelled(Tool::Nccl, format!("GPU{ordinal}"));
        node.pci = Some(address);
        cuda.add_node(node);
    }
    let cuda = Reading { format: Format::Driver, observations: cuda };
    let machine = Machine::merge(&[nvml, cuda]);
    assert_eq!(machine.gpus().len(), 2);
    for &gpu in machine.gpus() {
        let node = &machine.nodes()[gpu];
        let (nvml, cuda) = (node.label(Tool::NvidiaSmi), node.label(Tool::Nccl));
        let due = if node.pci == Some(gpu_pci(0)) { ("GPU0", "GPU1") } else { ("GPU1", "GPU0") };
        assert_eq!((nvml, cuda), (Some(due.0), Some(due.1)));
    }
}

#[test]
fn a_divided_gpu_is_a_card_with_its_instances() {
    let mut scripted = Scripted::new(2);
    let instance = |number: u32| {
        Some(Instance { uuid: format!("MIG-{number}"), memory_bytes: Some(10 << 30) })
    };
    scripted.gpus[0].is_divided = Some(true);
    // A gap in the numbers, as an instance leaves that was destroyed; more than seven are allowed.
    scripted.gpus[0].instances = (0..9).map(instance).collect();
    scripted.gpus[0].instances[3] = None;
    scripted.gpus[1].is_divided = Some(false);
    let nvml = scripted.clone().nvml();
    let (said, machine) = scripted.observe();
    let parts: Vec<_> = said.nodes.iter().filter(|node| node.card == Some(0)).collect();
    assert_eq!(parts.len(), 8);
    assert_eq!(parts[3].uuid.as_deref(), Some("MIG-4"));
    assert_eq!(said.nodes[0].kind, NodeKind::Card);
    assert_eq!(machine.gpus().len(), 9, "programs see the instances and the other GPU");
    assert!(said.pairs.iter().all(|pair| pair.from != 1 && pair.to != 1));
    assert_eq!(machine.failure_domains(1).first(), Some(&0), "they fall with their card");

    let (facts, warnings) = nvml.facts();
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(facts[0].instances.len(), 8);
    assert_eq!(facts[0].instances[0].parent_uuid, facts[0].uuid);
    assert_eq!((facts[1].is_divided, facts[1].instances.len()), (Some(false), 0));
    assert_eq!(facts[1].pcie_max, Some((4, 16)));
}

#[test]
fn a_divided_gpu_without_instances_is_told() {
    let mut scripted = Scripted::new(1);
    scripted.gpus[0].is_divided = Some(true);
    let (said, machine) = scripted.observe();
    assert!(machine.gpus().is_empty());
    assert!(texts(&said)[0].contains("nvidia-smi mig -cgi"), "{:?}", said.warnings);
}

#[test]
fn a_gpu_that_tells_only_its_address_is_there() {
    let mut scripted = Scripted::new(1);
    scripted.gpus[0].pci = pci(0xc1);
    let (said, _) = scripted.observe();
    assert_eq!(said.nodes[0].pci, Some(pci(0xc1)));
    assert_eq!(said.nodes[0].architecture.as_deref(), Some("sm89"));
    assert_eq!(said.nodes[0].label(Tool::NvidiaSmi), Some("GPU0"));
}
