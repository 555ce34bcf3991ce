//! Joining sources: identity, quality, contradictions, and that their order does not show.

use proptest::prelude::*;

use crate::{
    Figure, Format, InterconnectType, Link, Machine, Node, NodeKind, Observations, Pair, PcieWidth,
    Reading, Statement, Tool, Uplink,
};

fn gpu(tool: Tool, name: &str) -> Node {
    Node::new(NodeKind::Gpu).labelled(tool, name)
}

fn addressed(mut node: Node, address: &str) -> Node {
    node.pci = Some(address.parse().unwrap());
    node
}

fn reading(format: Format, nodes: Vec<Node>) -> Reading {
    Reading { format, observations: Observations { nodes, ..Observations::default() } }
}

fn class(from: usize, to: usize, class: InterconnectType) -> Pair {
    Pair { from, to, statement: Statement::Class(class), line: None }
}

fn nvlink(links: u16) -> InterconnectType {
    InterconnectType::NvLink { generation: None, links }
}

#[test]
fn the_same_address_is_the_same_gpu() {
    let mut sysfs = addressed(Node::new(NodeKind::Gpu), "3b:00.0");
    sysfs.uplink = Some(Uplink {
        current: PcieWidth { generation: Some(1), lanes: Some(16) },
        maximum: PcieWidth { generation: Some(4), lanes: Some(16) },
    });
    let nccl = addressed(gpu(Tool::Nccl, "GPU0"), "0000:3B:00.0");
    let unknown = addressed(Node::new(NodeKind::PciDevice), "3b:00.0");
    let machine = Machine::merge(&[
        reading(Format::Sysfs, vec![sysfs]),
        reading(Format::NcclXml, vec![nccl]),
        reading(Format::Lspci, vec![unknown]),
    ]);
    assert_eq!(machine.gpus(), [0]);
    assert_eq!(machine.nodes().len(), 1);
    assert_eq!(machine.nodes()[0].uplink.unwrap().maximum.generation, Some(4));
    assert_eq!(machine.warnings(), []);
}

#[test]
fn ports_of_one_card_stay_apart_and_meet_by_name() {
    let port = |name: &str| addressed(Node::new(NodeKind::Nic).labelled(Tool::Os, name), "18:00.0");
    let machine = Machine::merge(&[
        reading(Format::NcclXml, vec![port("mlx5_0"), port("mlx5_1")]),
        reading(Format::HwlocXml, vec![port("mlx5_1")]),
    ]);
    assert_eq!(machine.nics().len(), 2);
}

#[test]
fn equal_labels_with_different_addresses_are_kept_apart_and_told() {
    let machine = Machine::merge(&[
        reading(Format::NvidiaSmiTopo, vec![addressed(gpu(Tool::NvidiaSmi, "GPU0"), "1:00.0")]),
        reading(Format::HwlocXml, vec![addressed(gpu(Tool::NvidiaSmi, "GPU0"), "2:00.0")]),
    ]);
    assert_eq!(machine.gpus().len(), 2);
    let warning = &machine.warnings()[0].text;
    assert!(warning.contains("nvidia-smi-topo") && warning.contains("hwloc-xml"), "{warning}");
    assert!(warning.contains("0000:01:00.0") && warning.contains("0000:02:00.0"), "{warning}");
}

#[test]
fn ordinals_of_two_tools_are_not_the_same_label() {
    let machine = Machine::merge(&[
        reading(Format::NvidiaSmiTopo, vec![gpu(Tool::NvidiaSmi, "GPU0")]),
        reading(Format::RocmSmi, vec![gpu(Tool::RocmSmi, "GPU0")]),
    ]);
    assert_eq!(machine.gpus().len(), 2);
}

#[test]
fn nvidia_smi_counts_by_rising_address() {
    let nccl = |name: &str, address: &str| {
        let mut node = addressed(gpu(Tool::Nccl, name), address);
        node.architecture = Some("sm90".to_owned());
        node
    };
    // CUDA counts in another order than the bus.
    let xml = vec![nccl("GPU0", "c1:00.0"), nccl("GPU1", "1:00.0")];
    let smi = vec![gpu(Tool::NvidiaSmi, "GPU0"), gpu(Tool::NvidiaSmi, "GPU1")];
    let machine =
        Machine::merge(&[reading(Format::NcclXml, xml), reading(Format::NvidiaSmiTopo, smi)]);
    assert_eq!(machine.gpus().len(), 2);
    let first = &machine.nodes()[machine.gpus()[0]];
    assert_eq!(first.label(Tool::NvidiaSmi), Some("GPU0"));
    assert_eq!(first.label(Tool::Nccl), Some("GPU1"));
    assert!(machine.warnings()[0].text.contains("rising order"), "{:?}", machine.warnings());
}

#[test]
fn the_better_figure_stands_and_contradictions_name_both_sides() {
    let nodes = || vec![gpu(Tool::NvidiaSmi, "GPU0"), gpu(Tool::NvidiaSmi, "GPU1")];
    let with_link = |format, bandwidth| {
        let mut reading = reading(format, nodes());
        let link = Link { from: 0, to: 1, kind: nvlink(4), bandwidth, latency: Figure::unknown() };
        reading.observations.links.push(link);
        reading
    };
    let measured = Figure::measured(93.5, 1).unwrap();
    let machine = Machine::merge(&[
        with_link(Format::HwlocXml, Figure::reported(100.0, "hwloc").unwrap()),
        with_link(Format::Json, measured.clone()),
    ]);
    assert_eq!(machine.links()[0].bandwidth, measured);
    assert_eq!(machine.warnings(), []);
    let machine = Machine::merge(&[
        with_link(Format::HwlocXml, Figure::reported(100.0, "hwloc").unwrap()),
        with_link(Format::NcclXml, Figure::reported(80.0, "nccl").unwrap()),
    ]);
    let text = &machine.warnings()[0].text;
    assert!(text.contains("100") && text.contains("80") && text.contains("nccl-xml"), "{text}");
}

#[test]
fn a_class_that_says_more_stands() {
    let smi = |format, this| {
        let nodes = vec![gpu(Tool::RocmSmi, "GPU0"), gpu(Tool::RocmSmi, "GPU1")];
        let mut reading = reading(format, nodes);
        reading.observations.pairs.push(class(0, 1, this));
        reading
    };
    let vague = InterconnectType::Pcie { generation: None, lanes: None };
    let machine = Machine::merge(&[
        smi(Format::RocmSmi, vague),
        smi(Format::AmdSmi, InterconnectType::System),
    ]);
    assert_eq!(machine.class(0, 1), InterconnectType::System);
    assert_eq!(machine.warnings(), []);
}

#[test]
fn sources_that_hang_things_on_each_other_give_no_circle() {
    let switch = |address| addressed(Node::new(NodeKind::PcieSwitch), address);
    let hung = |format, parent_of_first: bool| {
        let mut nodes = vec![switch("1:00.0"), switch("2:00.0")];
        let child = usize::from(!parent_of_first);
        nodes[child].parent = Some(1 - child);
        reading(format, nodes)
    };
    let machine = Machine::merge(&[hung(Format::Sysfs, true), hung(Format::HwlocXml, false)]);
    assert_eq!(machine.nodes().iter().filter(|node| node.parent.is_some()).count(), 1);
    assert_eq!(machine.warnings().len(), 1);
}

prop_compose! {
    fn node()(
        kind in prop::sample::select(vec![
            NodeKind::Gpu, NodeKind::Nic, NodeKind::PcieSwitch, NodeKind::NumaNode,
            NodeKind::NvSwitch, NodeKind::PciDevice,
        ]),
        tool in prop::sample::select(vec![Tool::NvidiaSmi, Tool::Nccl, Tool::Os, Tool::Numa]),
        name in prop::option::of("GPU[0-3]"),
        bus in prop::option::of(0_u8..4),
        numa_nodes in prop::collection::btree_set(0_u32..3, 0..2),
        parent in prop::option::of(0_usize..5),
        nvlinks_up in prop::option::of(0_u16..20),
    ) -> Node {
        let mut node = Node::new(kind);
        if let Some(name) = name {
            node = node.labelled(tool, name);
        }
        node.pci = bus.map(|bus| crate::PciAddress { domain: 0, bus, device: 0, function: 0 });
        node.numa_nodes = numa_nodes.into_iter().collect();
        node.parent = parent;
        node.nvlinks_up = nvlinks_up;
        node
    }
}

fn kind() -> impl Strategy<Value = InterconnectType> {
    prop_oneof![
        (1_u16..19).prop_map(nvlink),
        Just(InterconnectType::PcieSwitch),
        Just(InterconnectType::System),
        Just(InterconnectType::InfinityFabric { links: 1 }),
        Just(InterconnectType::Pcie { generation: None, lanes: None }),
    ]
}

prop_compose! {
    pub(crate) fn any_reading()(
        format in prop::sample::select(Format::ALL.to_vec()),
        mut nodes in prop::collection::vec(node(), 5),
        links in prop::collection::vec((0_usize..5, 0_usize..5, kind()), 0..6),
        pairs in prop::collection::vec((0_usize..5, 0_usize..5, kind()), 0..6),
    ) -> Reading {
        for (position, node) in nodes.iter_mut().enumerate() {
            node.parent = node.parent.filter(|&parent| parent != position);
        }
        let mut reading = reading(format, nodes);
        for (from, to, kind) in links.into_iter().filter(|(from, to, _)| from != to) {
            let (bandwidth, latency) = (Figure::unknown(), Figure::unknown());
            reading.observations.links.push(Link { from, to, kind, bandwidth, latency });
        }
        let pairs = pairs.into_iter().filter(|(from, to, _)| from != to);
        reading.observations.pairs.extend(pairs.map(|(from, to, kind)| class(from, to, kind)));
        reading
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_order_of_sources_does_not_show(
        readings in prop::collection::vec(any_reading(), 1..4),
        rotate in 0_usize..4,
    ) {
        let machine = Machine::merge(&readings);
        let mut other = readings.clone();
        other.rotate_left(rotate % readings.len());
        prop_assert_eq!(&Machine::merge(&other), &machine);
        other.reverse();
        prop_assert_eq!(&Machine::merge(&other), &machine);
        // Saying a thing twice adds nothing.
        other.extend(readings);
        prop_assert_eq!(&Machine::merge(&other), &machine);
    }

    #[test]
    fn whatever_is_merged_can_be_asked_and_written(
        readings in prop::collection::vec(any_reading(), 1..4),
    ) {
        let machine = Machine::merge(&readings);
        let shown = machine.gpus().len() + machine.nics().len();
        prop_assert_eq!(machine.classes().len(), shown);
        prop_assert_eq!(machine.topology().device_count(), machine.gpus().len());
        for node in 0..machine.nodes().len() {
            prop_assert!(machine.failure_domains(node).len() <= machine.nodes().len() + 1);
        }
        let back = crate::read_text(&machine.to_json(), None).unwrap();
        prop_assert_eq!(Machine::merge(&back), machine);
    }
}
