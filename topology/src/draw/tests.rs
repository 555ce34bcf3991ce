//! Drawings of machines of our own, and of whatever can be merged.

use proptest::prelude::*;
use quick_xml::events::Event;
use quick_xml::reader::Reader;

use crate::merge::tests::any_reading;
use crate::{Machine, Reading, Tool, read_text};

/// Two GPUs with a bridge and a NIC, as nvidia-smi prints them.
const PAIR: &str = "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\n\
    GPU0\t X \tNV4\tPIX\t0-7\t0\nGPU1\tNV4\t X \tSYS\t8-15\t1\nNIC0\tPIX\tSYS\t X \t\t\n\n\
    NIC Legend:\n\n  NIC0: mlx5_0\n";

fn machine(text: &str) -> Machine {
    Machine::merge(&read_text(text, None).unwrap())
}

fn is_well_formed(text: &str) -> bool {
    let mut reader = Reader::from_str(text);
    let mut depth = 0_i32;
    loop {
        match reader.read_event() {
            Ok(Event::Start(_)) => depth += 1,
            Ok(Event::End(_)) => depth -= 1,
            Ok(Event::Eof) => return depth == 0,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}

#[test]
fn the_table_is_as_nvidia_smi_prints_it() {
    let expected = "      GPU0  GPU1  NIC0  CPU Affinity  NUMA Affinity
GPU0  X     NV4   PIX   0-7           0
GPU1  NV4   X     SYS   8-15          1
NIC0  PIX   SYS   X     ?             ?

GB/s  GPU0  GPU1
GPU0  X     ~48
GPU1  ~48   X

X     itself
NV#   NVLinks, # of them bonded; through NVSwitches, those of one GPU
PIX   PCIe over at most one switch
SYS   between NUMA nodes
GB/s: 12 measured, =12 reported, ~12 estimated, ? unknown
NIC0: mlx5_0
";
    assert_eq!(machine(PAIR).table(), expected);
    assert!(Machine::merge(&[]).table().starts_with("no GPUs and no network interfaces"));
}

#[test]
fn the_tree_groups_what_belongs_together() {
    let expected = "\
NUMA node 0
  PCIe switch
    GPU0
    NIC0
NUMA node 1
  GPU1

NV4 (~48 GB/s): GPU0-GPU1
";
    assert_eq!(machine(PAIR).tree(), expected);
    assert_eq!(Machine::merge(&[]).tree(), "nothing is known of this machine\n");
}

#[test]
fn the_graph_has_an_edge_for_each_pair() {
    let dot = machine(PAIR).dot();
    assert_eq!(dot.matches(" -- ").count(), 1, "{dot}");
    assert!(dot.contains("label=\"NV4 ~48\", style=dashed"), "{dot}");
    assert!(dot.contains("subgraph cluster_1"), "{dot}");
}

#[test]
fn the_drawing_shows_an_estimate_as_one() {
    let svg = machine(PAIR).svg();
    assert!(is_well_formed(&svg), "{svg}");
    assert!(svg.contains("class=\"link nvlink estimated\""), "{svg}");
    assert!(svg.contains("GPU0 - GPU1: NV4, ~48 GB/s"), "{svg}");
    assert!(svg.contains("prefers-color-scheme:dark"), "{svg}");
    let alone = machine("\tGPU0\tCPU Affinity\nGPU0\t X \t0-3\n").svg();
    assert!(is_well_formed(&alone) && alone.contains("1 GPU"), "{alone}");
}

#[test]
fn names_from_files_do_no_harm() {
    let mut readings = read_text(PAIR, None).unwrap();
    readings[0].observations.nodes[0].labels[0].name = "<script>\"&'\u{1}".to_owned();
    readings[0].observations.nodes[1].model = Some("]]></style>".to_owned());
    let machine = Machine::merge(&readings);
    let svg = machine.svg();
    assert!(is_well_formed(&svg) && !svg.contains("<script>"), "{svg}");
    assert!(machine.dot().contains("\\\"&'"), "{}", machine.dot());
}

/// Many GPUs on one NVSwitch, in two NUMA nodes.
fn many(count: usize) -> Machine {
    let names: Vec<String> = (0..count).map(|number| format!("GPU{number}")).collect();
    let mut text = format!("\t{}\tCPU Affinity\tNUMA Affinity\n", names.join("\t"));
    for (row, name) in names.iter().enumerate() {
        let cells = (0..count).map(|column| if column == row { " X " } else { "NV18" });
        let cells: Vec<&str> = cells.collect();
        text.push_str(&format!("{name}\t{}\t0\t{}\n", cells.join("\t"), row * 2 / count));
    }
    machine(&text)
}

#[test]
fn seventy_two_gpus_fit_a_page() {
    let machine = many(72);
    assert_eq!(machine.gpus().len(), 72);
    let svg = machine.svg();
    assert!(is_well_formed(&svg));
    assert!(svg.contains(">36 GPUs<") && svg.contains(">GPU71<"), "{svg}");
    let width = svg.split("width=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(width.parse::<f64>().unwrap() < 1400.0, "{width}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn whatever_can_be_merged_can_be_drawn(
        readings in prop::collection::vec(any_reading(), 0..4),
        name in ".{0,12}",
    ) {
        let mut readings: Vec<Reading> = readings;
        for node in readings.iter_mut().flat_map(|reading| &mut reading.observations.nodes) {
            node.labels.retain(|label| label.tool != Tool::Os);
            node.model = Some(name.clone());
        }
        let machine = Machine::merge(&readings);
        let svg = machine.svg();
        prop_assert!(is_well_formed(&svg), "{}", svg);
        prop_assert!(!machine.table().is_empty() && !machine.tree().is_empty());
        let dot = machine.dot();
        prop_assert_eq!(dot.lines().last(), Some("}"));
        prop_assert_eq!(machine.svg(), svg);
    }
}
