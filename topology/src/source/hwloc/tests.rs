//! hwloc files of all versions: what is read from them, and from what is left of them.

use super::{read, recognizes};
use crate::{Node, NodeKind, Observations, Tool};

mod damage;
mod links;
mod machine;

/// What a file gives, which has nothing wrong with it.
fn clean(text: &str) -> Observations {
    let observed = read(text).unwrap();
    assert_eq!(observed.warnings, []);
    observed
}

/// A file of version 2 with these objects in its machine of two NUMA nodes, and what follows.
fn file(version: &str, in_machine: &str, behind: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n\
         <topology version=\"{version}\">\n\
         <object type=\"Machine\" os_index=\"0\" cpuset=\"0xff\" nodeset=\"0x3\" gp_index=\"1\">\n\
         <info name=\"Architecture\" value=\"x86_64\"/>\n\
         {in_machine}</object>\n{behind}</topology>\n"
    )
}

/// A package with its NUMA node of the same number, four CPUs, and these objects.
fn package(number: u32, inside: &str) -> String {
    let cpuset = if number == 0 { "0x0f" } else { "0xf0" };
    let sets = format!("cpuset=\"{cpuset}\" nodeset=\"0x{}\"", number + 1);
    format!(
        "<object type=\"Package\" os_index=\"{number}\" {sets} gp_index=\"{}\">\n\
         <info name=\"CPUVendor\" value=\"AuthenticAMD\"/>\n\
         <object type=\"NUMANode\" os_index=\"{number}\" {sets} gp_index=\"{}\"/>\n\
         {inside}</object>\n",
        10 + number,
        20 + number
    )
}

/// A host bridge to a range of buses, and what is below it.
fn host_bridge(buses: &str, below: &str) -> String {
    format!(
        "<object type=\"Bridge\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[{buses}]\">\n\
         {below}</object>\n"
    )
}

/// A bridge of this address, and what is below it.
fn bridge(address: &str, buses: &str, below: &str) -> String {
    format!(
        "<object type=\"Bridge\" bridge_type=\"1-1\" bridge_pci=\"0000:[{buses}]\" \
         pci_busid=\"0000:{address}\" pci_type=\"0604 [8086:2030] [0000:0000] 00\" \
         pci_link_speed=\"8.000000\">\n{below}</object>\n"
    )
}

/// A PCI device of this class, vendor and device, with its names.
fn device(address: &str, pci_type: &str, names: &str) -> String {
    format!(
        "<object type=\"PCIDev\" gp_index=\"{}\" pci_busid=\"0000:{address}\" \
         pci_type=\"{pci_type} [0000:0000] a1\" pci_link_speed=\"15.753846\">\n{names}</object>\n",
        1000 + address.bytes().map(u32::from).fold(0, |sum, byte| (sum * 31 + byte) % 100_000)
    )
}

/// A driver's device with a number, and these pairs of names and values.
fn os_device(name: &str, gp_index: u32, infos: &[(&str, &str)]) -> String {
    let infos: String = infos
        .iter()
        .map(|(name, value)| format!("<info name=\"{name}\" value=\"{value}\"/>\n"))
        .collect();
    let kind = if name.starts_with("mlx") { 3 } else { 2 };
    let is_network = ["mlx", "eth", "ib"].iter().any(|start| name.starts_with(start));
    let kind = if is_network { kind } else { 5 };
    format!(
        "<object type=\"OSDev\" gp_index=\"{gp_index}\" name=\"{name}\" osdev_type=\"{kind}\">\n\
         {infos}</object>\n"
    )
}

fn nvml(number: u32, model: &str) -> String {
    let uuid = format!("GPU-{number:08x}-0000-0000-0000-00000000000{}", number + 1);
    let infos = [("GPUModel", model), ("NVIDIAUUID", uuid.as_str())];
    os_device(&format!("nvml{number}"), 900 + number, &infos)
}

fn of_kind(observed: &Observations, kind: NodeKind) -> Vec<&Node> {
    observed.nodes.iter().filter(|node| node.kind == kind).collect()
}

fn gpus(observed: &Observations) -> Vec<String> {
    let gpus = of_kind(observed, NodeKind::Gpu).into_iter();
    gpus.map(|gpu| gpu.pci.map_or_else(|| "none".to_owned(), |pci| pci.to_string())).collect()
}

fn labels(node: &Node) -> Vec<(Tool, &str)> {
    node.labels.iter().map(|label| (label.tool, label.name.as_str())).collect()
}

/// Two GPUs behind a switch with a network card on node 0, one GPU on node 1.
fn small_machine() -> String {
    let gpu = |address, names: &str| device(address, "0302 [10de:1db1]", names);
    let nic = device(
        "05:00.0",
        "0207 [15b3:1017]",
        &(os_device("ib0", 801, &[]) + &os_device("mlx5_0", 802, &[])),
    );
    let behind_switch =
        bridge("02:00.0", "03-03", &gpu("03:00.0", &nvml(1, "Tesla V100-SXM2-16GB")))
            + &bridge("02:01.0", "04-04", &gpu("04:00.0", &nvml(0, "Tesla V100-SXM2-16GB")))
            + &bridge("02:02.0", "05-05", &nic);
    let near = bridge("00:01.0", "01-05", &bridge("01:00.0", "02-05", &behind_switch));
    let far = bridge("80:00.0", "81-81", &gpu("81:00.0", &nvml(2, "Tesla V100-SXM2-16GB")));
    file(
        "2.0",
        &(package(0, &host_bridge("00-05", &near)) + &package(1, &host_bridge("80-81", &far))),
        &links::nvlink_matrix(
            &[900, 901, 902],
            &[0, 50_000, 25_000, 50_000, 0, 25_000, 25_000, 25_000, 0],
        ),
    )
}

#[test]
fn the_formats_of_others_are_not_taken_for_it() {
    assert!(recognizes(&small_machine()));
    assert!(recognizes("<topology>\n<object type=\"Machine\" cpuset=\"0x1\"/></topology>"));
    assert!(recognizes("<object type=\"PCIDev\" pci_busid=\"0000:00:1f.2\"/>"));
    assert!(!recognizes("<system version=\"1\"><cpu numaid=\"0\"/></system>"));
    assert!(!recognizes("<capabilities><host><topology><cells num='2'/></topology></host>"));
    assert!(!recognizes(""));
}

#[test]
fn a_file_without_objects_is_an_error() {
    for text in ["", "<topology version=\"2.0\"/>", "<topology><", "no xml"] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.starts_with("hwloc-xml: "), "{error}");
        assert!(error.contains("lstopo --of xml"), "{error}");
    }
}

#[test]
fn text_around_the_file_does_not_matter() {
    let text = format!("$ lstopo --of xml | head & more\n\n{}\n$ exit < x\n", small_machine());
    let observed = clean(&text);
    assert_eq!(gpus(&observed).len(), 3);
    // Lines are those of the text.
    let cut = text.replace("0000:03:00.0", "0000:03:zz.0");
    let line = 1 + cut.lines().position(|line| line.contains("zz")).unwrap();
    assert_eq!(read(&cut).unwrap().warnings[0].line, Some(line));
}

#[test]
fn of_several_topologies_the_first_is_read() {
    let observed = read(&(small_machine() + &small_machine())).unwrap();
    assert_eq!(gpus(&observed).len(), 3);
    assert!(observed.warnings.iter().any(|warning| warning.text.contains("several topologies")));
}
