//! Tests of reading what xpu-smi prints.

use super::*;
use crate::{Node, NodeKind, Tool};

mod damaged;

fn kinds(text: &str) -> Vec<(usize, usize, InterconnectType)> {
    let pairs = read(text).unwrap().pairs.into_iter();
    pairs
        .map(|pair| match pair.statement {
            Statement::Class(kind) => (pair.from, pair.to, kind),
            _ => panic!("{pair:?}"),
        })
        .collect()
}

fn warnings(text: &str) -> Vec<String> {
    read(text).unwrap().warnings.iter().map(ToString::to_string).collect()
}

/// Kind, label and CPUs of each node.
fn nodes(text: &str) -> Vec<(NodeKind, String, Option<String>)> {
    let name = |node: &Node| node.labels.first().map(|label| label.name.clone());
    let nodes = read(text).unwrap().nodes.into_iter();
    nodes.map(|node| (node.kind, name(&node).unwrap_or_default(), node.cpu_affinity)).collect()
}

#[test]
fn bars_boxes_and_blanks_make_no_difference() {
    for text in [
        "         GPU 0/0  GPU 1/0  CPU Affinity\nGPU 0/0  S        XL24     0-143    \n\
         GPU 1/0  XL24     S        0-143    \n",
        "GPU 0/0 GPU 1/0 CPU Affinity\nGPU 0/0 S XL24 0-143\nGPU 1/0 XL24 S 0-143\n",
        "         GPU 0/0|GPU 1/0|CPU Affinity\nGPU 0/0 |S      |XL24   |0-143\n\
         GPU 1/0 |XL24   |S      |0-143\n",
        "         |GPU 0/0|GPU 1/0|CPU Affinity   \nGPU 0/0  |S      |XL24   |0-143          \n\
         GPU 1/0  |XL24   |S      |0-143          \n",
        "+---------+---------+---------+--------------+\n\
         |         | GPU 0/0 | GPU 1/0 | CPU Affinity |\n\
         +=========+=========+=========+==============+\n\
         | GPU 0/0 | S       | XL24    | 0-143        |\n\
         | GPU 1/0 | XL24    | S       | 0-143        |\n\
         +---------+---------+---------+--------------+\n",
        "\u{2502} \u{2502} GPU 0/0 \u{2502} GPU 1/0 \u{2502} CPU Affinity \u{2502}\n\
         \u{2502} GPU 0/0 \u{2502} S \u{2502} XL24 \u{2502} 0-143 \u{2502}\n\
         \u{2502} GPU 1/0 \u{2502} XL24 \u{2502} S \u{2502} 0-143 \u{2502}\n",
    ] {
        assert!(recognizes(text), "{text}");
        let link = InterconnectType::XeLink { links: 24 };
        assert_eq!(kinds(text), [(0, 1, link), (1, 0, link)], "{text}");
        let gpu = |name: &str| (NodeKind::Gpu, name.to_owned(), Some("0-143".to_owned()));
        assert_eq!(nodes(text), [gpu("GPU 0/0"), gpu("GPU 1/0")], "{text}");
        assert_eq!(warnings(text), [] as [&str; 0], "{text}");
    }
}

#[test]
fn all_classes_are_known_and_interfaces_are_nodes() {
    let text = "GPU 0/0 GPU 0/1 NIC0 NIC1 CPU Affinity\n\
                GPU 0/0 S MDF PIX SYS 0-3\nGPU 0/1 MDF S PXB NODE 0-3\n\
                NIC0 PIX PXB S PHB 0-3\nNIC1 SYS NODE PHB S N/A\n";
    let expected = [
        (0, 1, InterconnectType::TileFabric),
        (0, 2, InterconnectType::PcieSwitch),
        (0, 3, InterconnectType::System),
        (1, 2, InterconnectType::PcieSwitches),
        (1, 3, InterconnectType::Node),
        (2, 3, InterconnectType::HostBridge),
    ];
    let there: Vec<_> = kinds(text).into_iter().filter(|(from, to, _)| from < to).collect();
    assert_eq!(there, expected);
    let kinds: Vec<NodeKind> = nodes(text).into_iter().map(|(kind, ..)| kind).collect();
    assert_eq!(kinds, [NodeKind::Gpu, NodeKind::Gpu, NodeKind::Nic, NodeKind::Nic, NodeKind::Card]);
    assert_eq!(read(text).unwrap().nodes[1].card, Some(4));
    assert_eq!(nodes(text)[3].2, None);
}

#[test]
fn a_single_device_has_a_matrix_too() {
    let text = "         GPU 0/0  CPU Affinity\nGPU 0/0  S        0-15     \n";
    assert_eq!(kinds(text), []);
    assert_eq!(nodes(text), [(NodeKind::Gpu, "GPU 0/0".to_owned(), Some("0-15".to_owned()))]);
}

#[test]
fn rows_that_do_not_fit_give_what_is_certain() {
    let spaced = "         GPU 0/0  GPU 1/0  GPU 2/0  CPU Affinity\n";
    // The second cell is glued to the third.
    let glued = format!("{spaced}GPU 2/0  XL8      NODES        0-15\n");
    assert_eq!(kinds(&glued), [(2, 0, InterconnectType::XeLink { links: 8 })]);
    // Here the last is glued to the CPUs, which looks as if any one were missing.
    let glued = format!("{spaced}GPU 1/0  XL8      S        NODE0-15\n");
    assert_eq!(kinds(&glued), []);
    // Without CPUs a row is whole.
    let without = format!("{spaced}GPU 1/0  XL8      S        NODE\n");
    assert_eq!(kinds(&without).len(), 2);
    let barred = "         GPU 0/0|GPU 1/0|GPU 2/0|CPU Affinity\n";
    let lost = format!("{barred}GPU 1/0 |XL8    |S      NODE   |0-15\n");
    assert_eq!(kinds(&lost), []);
    assert_eq!(warnings(&lost), ["line 2: only 0 of 3 cells of GPU 1/0 are certain"]);
    let cut = format!("{barred}GPU 1/0 |XL8    |S      |NO");
    assert_eq!(kinds(&cut), [(1, 0, InterconnectType::XeLink { links: 8 })]);
    let cut = format!("{barred}GPU 1/0 |XL8    |S      |NODE   |0-1");
    assert_eq!(kinds(&cut).len(), 2);
    assert_eq!(nodes(&cut)[1].2, None);
}

#[test]
fn strange_cells_are_left_out() {
    let text = "GPU 0/0 GPU 1/0 GPU 2/0 CPU Affinity\nGPU 0/0 S XL XL0 0\nGPU 1/0 SYS S NODE 0\n\
                GPU 2/0 S SYS S 0\n";
    assert_eq!(kinds(text), [(0, 1, InterconnectType::Unknown), (1, 0, InterconnectType::System)]);
    assert_eq!(
        warnings(text),
        [
            "line 2: from GPU 0/0 to GPU 1/0 the Xe Link has no number of lanes",
            "line 2: from GPU 0/0 to GPU 2/0 stands `XL0`, which is no link; it is left out",
            "line 3: from GPU 1/0 to GPU 2/0 stands NODE, but back SYS (line 4); neither is taken",
            "line 4: from GPU 2/0 to GPU 0/0 stands `S`, which is no link; it is left out",
        ]
    );
}

const BOX: &str = "\
+-----------+------------------------------------------+
| Device ID | Topology Information                     |
+-----------+------------------------------------------+
| 3         | Local CPU List: 0-23,48-71               |
|           | Local CPUs: 000000ff,ffff0000            |
|           | PCIe Switch Count: 1                     |
|           | PCIe Switch: /sys/devices/pci0000:4a/00  |
|           |   00:4a:02.0/0000:4b:00.0/0000:4c:01     |
+-----------+------------------------------------------+
";

#[test]
fn the_table_of_a_device_has_three_forms() {
    let path = "/sys/devices/pci0000:4a/0000:4a:02.0/0000:4b:00.0/0000:4c:01";
    let properties = format!(
        "+-------------------+------------+\n| Property          | Value      |\n\
         +-------------------+------------+\n| Device ID         | 3          |\n\
         | Local CPU List    | 0-23,48-71 |\n| Local CPUs        | 000000ff   |\n\
         | PCIe Switch Count | 2          |\n| PCIe Switch       | {path} |\n\
         +-------------------+------------+\n"
    );
    let plain = format!(
        "Device ID: 3\nLocal CPU List: 0-23,48-71\nLocal CPUs: ff\nPCIe Switch Count: 1\n\
         PCIe Switch: {path}\n"
    );
    for text in [BOX, &properties, &plain] {
        assert!(recognizes(text), "{text}");
        let observations = read(text).unwrap();
        let [gpu, switch] = &observations.nodes[..] else { panic!("{:?}", observations.nodes) };
        assert_eq!(gpu.label(Tool::XpuSmi), Some("GPU 3/0"));
        assert_eq!(gpu.cpu_affinity.as_deref(), Some("0-23,48-71"));
        assert_eq!((gpu.parent, switch.kind), (Some(1), NodeKind::PcieSwitch));
        assert_eq!(switch.label(Tool::Os), Some(path));
        assert_eq!(observations.warnings, [], "{text}");
    }
}

#[test]
fn a_box_that_was_cut_gives_no_half_path() {
    let last_line = BOX.trim_end().rfind('\n').unwrap() + 1;
    for end in 0..BOX.len() {
        let text = &BOX[..end];
        recognizes(text);
        let Ok(observations) = read(text) else { continue };
        assert_eq!(observations.nodes.len() == 2, end > last_line, "{text}");
        let cpus = observations.nodes[0].cpu_affinity.as_deref();
        assert!(cpus.is_none_or(|cpus| cpus == "0-23,48-71"), "{text}");
    }
}

#[test]
fn a_table_and_a_matrix_are_about_the_same_tiles() {
    let text = format!("GPU 3/0 GPU 3/1 CPU Affinity\nGPU 3/0 S MDF\nGPU 3/1 MDF S\n{BOX}");
    let observations = read(&text).unwrap();
    let parents: Vec<_> = observations.nodes.iter().map(|node| node.parent).collect();
    assert_eq!(parents, [Some(3), Some(3), None, None]);
    assert_eq!(observations.nodes[2].kind, NodeKind::Card);
    assert_eq!(observations.nodes[1].cpu_affinity.as_deref(), Some("0-23,48-71"));
}

#[test]
fn switches_hang_below_each_other_or_nowhere() {
    let table = |count: u32, paths: &[&str]| {
        let paths: String = paths.iter().map(|path| format!("PCIe Switch: {path}\n")).collect();
        format!("Device ID: 0\nLocal CPU List: 0-1\nPCIe Switch Count: {count}\n{paths}")
    };
    let (upper, lower) = (
        "/sys/devices/pci0000:4a/0000:4a:02.0",
        "/sys/devices/pci0000:4a/0000:4a:02.0/0000:4b:00.0",
    );
    let observations = read(&table(2, &[lower, upper])).unwrap();
    let parents: Vec<_> = observations.nodes.iter().map(|node| node.parent).collect();
    assert_eq!(parents, [Some(2), None, Some(1)]);
    for text in [
        table(1, &[upper, lower]),
        table(2, &[upper, "/sys/devices/pci0000:5a/0000:5a:02.0"]),
        table(1, &["/sys/devices/pci0000:4a/0000:4a:02.0/0000:4a:02.0"]),
        table(1, &["somewhere"]),
    ] {
        assert_eq!(read(&text).unwrap().nodes.len(), 1, "{text}");
        assert_eq!(warnings(&text).len(), 1, "{text}");
    }
    assert_eq!(warnings(&table(0, &["N/A"])), [] as [&str; 0]);
    // Two tables about one device, which differ.
    let two = table(0, &[]) + "\n" + &table(0, &[]).replace("0-1", "2-3");
    assert_eq!(nodes(&two), [(NodeKind::Gpu, "GPU 0/0".to_owned(), None)]);
    assert_eq!(warnings(&two), ["line 7: two tables of device 0 differ; neither is taken"]);
}

/// The pair of two tiles as JSON.
fn pair(from: u32, to: u32, link: &str, numa: u32, cpus: &str) -> String {
    format!(
        "{{\"link_type\": {link}, \"local_cpu_affinity\": \"{cpus}\", \"local_device_id\": {from}, \
         \"local_numa_index\": {numa}, \"local_on_subdevice\": false, \"local_subdevice_id\": 0, \
         \"max_bit_rate\": -1, \"remote_device_id\": {to}, \"remote_subdevice_id\": 0}}"
    )
}

#[test]
fn json_has_a_list_of_pairs() {
    let link = "\"XL\", \"port_list\": [0, 4, 4, 0]";
    let text = |numa| {
        format!(
            "$ xpu-smi topology -m -j\n{{\"topo_list\": [{},\n{},\n{},\n{}]}}\n",
            pair(0, 0, "\"S\"", 0, "0-3"),
            pair(0, 1, link, 0, "0-3"),
            pair(1, 0, "\"XL*\"", numa, "4-7"),
            pair(1, 1, "\"S\"", numa, "4-7")
        )
    };
    assert!(recognizes(&text(1)));
    // The two directions contradict each other.
    assert_eq!(kinds(&text(1)), []);
    let text = |numa| text(numa).replace("\"XL*\"", "\"Unknown\"");
    assert_eq!(kinds(&text(1)), [(0, 1, InterconnectType::XeLink { links: 8 })]);
    assert_eq!(read(&text(1)).unwrap().pairs[0].line, Some(3));
    let numa_nodes =
        |text: &str| -> Vec<_> { read(text).unwrap().nodes.iter().map(Node::numa_node).collect() };
    assert_eq!(numa_nodes(&text(1)), [Some(0), Some(1)]);
    // A release that writes 0 everywhere.
    assert_eq!(numa_nodes(&text(0)), [None, None]);
    assert_eq!(nodes(&text(1))[1].2.as_deref(), Some("4-7"));
}

#[test]
fn json_about_devices_has_two_forms() {
    let text = "{\"affinity_localcpulist\": \"0-23\", \"affinity_localcpus\": \"ff\", \"device_id\": 0, \
                \"switch_count\": 1, \"switch_list\": [\"/sys/devices/pci0000:4a/0000:4a:02.0\"]}\n\
                {\"device_id\": 1, \"local_cpu_list\": \"24-47\", \"local_cpus\": \"ff\", \
                \"pcie_switch_count\": 0, \"pcie_switch\": \"N/A\"}";
    assert!(recognizes(text));
    let observations = read(text).unwrap();
    assert_eq!(observations.nodes[0].parent, Some(2));
    assert_eq!(observations.nodes[1].parent, None);
    assert_eq!(observations.nodes[1].cpu_affinity.as_deref(), Some("24-47"));
    let broken = text.replace("\"device_id\": 0,", "\"device_id\": ...,");
    assert_eq!(read(&broken).unwrap_err().line(), Some(1));
}

#[test]
fn messages_in_place_of_an_output_are_errors_with_a_remedy() {
    for (text, remedy) in [
        ("-bash: xpu-smi: command not found", "install Intel's xpu-smi"),
        ("Error: Level Zero Initialization Error", "group render"),
        ("{\"error\": \"No devices found or error getting device list\"}", "i915"),
        ("Error: device not found", "xpu-smi discovery"),
    ] {
        assert!(recognizes(text), "{text}");
        let error = read(text).unwrap_err();
        assert_eq!(error.line(), Some(1));
        assert!(error.to_string().contains(remedy), "{error}");
    }
}

#[test]
fn other_tools_are_not_recognized() {
    for text in [
        "",
        "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV12\t0-15\nGPU1\tNV12\t X \t0-15\n",
        "=== Link Type between two GPUs ===\nGPU0 GPU1\nGPU0 0 XGMI\nGPU1 XGMI 0\n",
        "WEIGHT TABLE:\n0000:05:00.0 0000:26:00.0\n0000:05:00.0 0 15\n",
        "| Device ID | Device Information |\n| 0 | Device Name: Intel(R) Max |\n",
    ] {
        assert!(!recognizes(text), "{text}");
    }
}
