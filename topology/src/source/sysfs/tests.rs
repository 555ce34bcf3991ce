//! A PCI tree of our own: a GPU and a NIC on a switch, a GPU on a root port, a management chip.

use std::path::Path;

use super::{is_wanted_directory, read_tree};
use crate::source::wanted_in_sysfs;
use crate::{FileTree, Format, Machine, NodeKind, Reading, Tool};

fn device(tree: &mut FileTree, path: &str, ids: [&str; 3]) {
    let [class, vendor, device] = ids;
    let path = format!("sys/devices/{path}");
    tree.insert(format!("{path}/class"), format!("{class}\n"));
    tree.insert(format!("{path}/vendor"), format!("{vendor}\n"));
    tree.insert(format!("{path}/device"), format!("{device}\n"));
    tree.insert(format!("{path}/numa_node"), "1\n");
    tree.insert(format!("{path}/current_link_speed"), "2.5 GT/s PCIe\n");
    tree.insert(format!("{path}/current_link_width"), "8\n");
    tree.insert(format!("{path}/max_link_speed"), "16.0 GT/s PCIe\n");
    tree.insert(format!("{path}/max_link_width"), "16\n");
}

fn tree() -> FileTree {
    let mut tree = FileTree::default();
    let bridge = ["0x060400", "0x10b5", "0x8796"];
    let port = "pci0000:16/0000:16:00.0/0000:17:00.0";
    device(&mut tree, "pci0000:16/0000:16:00.0", bridge);
    device(&mut tree, port, bridge);
    device(&mut tree, &format!("{port}/0000:18:04.0"), bridge);
    device(&mut tree, &format!("{port}/0000:18:08.0"), bridge);
    let gpu = ["0x030200", "0x10de", "0x2330"];
    device(&mut tree, &format!("{port}/0000:18:04.0/0000:19:00.0"), gpu);
    let nic = format!("{port}/0000:18:08.0/0000:1a:00.0");
    device(&mut tree, &nic, ["0x020700", "0x15b3", "0x1021"]);
    tree.insert(format!("sys/devices/{nic}/infiniband/mlx5_0/node_guid"), "1");
    device(&mut tree, "pci0000:16/0000:16:02.0/0000:1b:00.0", gpu);
    device(&mut tree, "pci0000:00/0000:00:1c.0/0000:02:00.0", ["0x030000", "0x1a03", "0x2000"]);
    tree
}

#[test]
fn a_switch_is_one_node_and_a_root_port_none() {
    let observations = read_tree(&tree()).unwrap();
    let machine = Machine::merge(&[Reading { format: Format::Sysfs, observations }]);
    assert_eq!((machine.gpus().len(), machine.nics().len()), (2, 1));
    let count = |kind| machine.nodes().iter().filter(|node| node.kind == kind).count();
    assert_eq!(count(NodeKind::PcieSwitch), 1);
    assert_eq!(count(NodeKind::HostBridge), 1);
    let classes = machine.classes();
    assert_eq!((&*classes[0][1], &*classes[0][2], &*classes[1][2]), ("PHB", "PIX", "PHB"));
    let gpu = &machine.nodes()[machine.gpus()[0]];
    let uplink = gpu.uplink.unwrap();
    assert_eq!(
        (uplink.current.to_string(), uplink.maximum.to_string()),
        ("Gen1 x8".into(), "Gen4 x16".into())
    );
    assert_eq!((gpu.numa_node(), gpu.model.as_deref()), (Some(1), Some("10de:2330")));
    assert_eq!(machine.nodes()[machine.nics()[0]].label(Tool::Os), Some("mlx5_0"));
}

#[test]
fn only_what_is_read_is_walked() {
    for wanted in
        ["devices", "sys/devices/pci0000:16/0000:16:00.0", "devices/virtual/kfd/kfd", "class/kfd"]
    {
        assert!(is_wanted_directory(wanted), "{wanted}");
    }
    for unwanted in ["kernel", "devices/system", "devices/pci0000:16/power", "class/net", "bus"] {
        assert!(!is_wanted_directory(unwanted), "{unwanted}");
    }
}

#[test]
fn this_machine_is_read_or_has_no_pci() {
    if let Ok(tree) = FileTree::read(Path::new("/sys"), wanted_in_sysfs) {
        let _ = read_tree(&tree);
    }
    assert!(read_tree(&FileTree::default()).is_err());
}
