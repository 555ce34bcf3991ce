//! Devices, what they hang on, and what they are near to.

use super::{
    bridge, clean, device, file, gpus, host_bridge, labels, nvml, of_kind, os_device, package,
    read, small_machine,
};
use crate::{NodeKind, Observations, PcieWidth, Tool};

#[test]
fn devices_hang_on_switches_and_host_bridges() {
    let observed = clean(&small_machine());
    // NVML's order, not that of addresses.
    assert_eq!(gpus(&observed), ["0000:04:00.0", "0000:03:00.0", "0000:81:00.0"]);
    let all = of_kind(&observed, NodeKind::Gpu);
    let numa: Vec<_> = all.iter().map(|gpu| gpu.numa_node()).collect();
    assert_eq!(numa, [Some(0), Some(0), Some(1)]);
    assert_eq!(all[0].cpu_affinity.as_deref(), Some("0-3"));
    let [switch] = of_kind(&observed, NodeKind::PcieSwitch)[..] else { panic!("{observed:?}") };
    assert_eq!(switch.pci, "01:00.0".parse().ok());
    let parent = |position: Option<usize>| &observed.nodes[position.unwrap()];
    assert_eq!(parent(all[0].parent), switch);
    assert_eq!(parent(all[1].parent), switch);
    assert_eq!(parent(of_kind(&observed, NodeKind::Nic)[0].parent), switch);
    let bridge = parent(switch.parent);
    assert_eq!((bridge.kind, bridge.label(Tool::Os)), (NodeKind::HostBridge, Some("pci0000:00")));
    assert_eq!(parent(bridge.parent).label(Tool::Numa), Some("0"));
    assert_eq!(parent(all[2].parent).label(Tool::Os), Some("pci0000:80"));
    assert_eq!(
        labels(of_kind(&observed, NodeKind::Nic)[0]),
        [(Tool::Os, "mlx5_0"), (Tool::Os, "ib0")]
    );
    let cpu = of_kind(&observed, NodeKind::NumaNode)[1];
    assert_eq!(cpu.architecture.as_deref(), Some("x86_64 AuthenticAMD"));
    assert_eq!(cpu.cpu_affinity.as_deref(), Some("4-7"));
}

#[test]
fn one_gpu_has_many_names() {
    let names =
        os_device("opencl0d1", 1, &[("OpenCLDeviceType", "GPU"), ("GPUModel", "gfx90a:xnack-")])
            + &os_device("opencl1d0", 2, &[("GPUModel", "Some other name")])
            + &os_device("cuda3", 3, &[("GPUModel", "Tesla T4")])
            + &os_device("renderD130", 4, &[])
            + &os_device("card2", 5, &[])
            + &os_device("controlD65", 6, &[])
            + &nvml(5, "Tesla T4 of NVML");
    let gpu = device("01:00.0", "0302 [10de:1eb8]", &names);
    let observed =
        clean(&file("2.0", &host_bridge("00-01", &bridge("00:01.0", "01-01", &gpu)), ""));
    let [gpu] = of_kind(&observed, NodeKind::Gpu)[..] else { panic!("{observed:?}") };
    assert_eq!(
        labels(gpu),
        [
            (Tool::NvidiaSmi, "GPU5"),
            (Tool::Nccl, "GPU3"),
            (Tool::Os, "card2"),
            (Tool::Os, "renderD130")
        ]
    );
    assert_eq!(gpu.model.as_deref(), Some("Tesla T4 of NVML"));
    assert_eq!(gpu.architecture.as_deref(), Some("gfx90a"));
    assert_eq!(gpu.uuid.as_deref(), Some("GPU-00000005-0000-0000-0000-000000000006"));
}

/// Devices on one bus, which is how tests of classes do without bridges.
fn on_one_bus(devices: &[&str]) -> Observations {
    clean(&file("2.0", &host_bridge("00-00", &devices.concat()), ""))
}

#[test]
fn consoles_and_virtual_functions_are_no_gpus() {
    let card = |name| os_device(name, 0, &[]);
    let observed = on_one_bus(&[
        &device("00:01.0", "0300 [1a03:2000]", &card("card0")),
        &device("00:02.0", "0300 [8086:3e92]", &card("card1")),
        &device("00:03.0", "0300 [102b:0536]", ""),
        &device("00:04.0", "0300 [1002:515e]", &card("card2")),
        &device("00:05.4", "0302 [10de:2235]", ""),
        &device("00:06.0", "0403 [10de:10f0]", ""),
        &device("00:07.0", "0300 [1234:1111]", &card("card3")),
        &device("00:08.0", "0300 [8086:4680]", ""),
        &device("00:09.0", "1200 [8086:0d8c]", ""),
    ]);
    assert_eq!(gpus(&observed), [""; 0]);
}

#[test]
fn gpus_are_known_by_class_or_by_a_library() {
    let observed = on_one_bus(&[
        &device("00:01.0", "0302 [10de:1db1]", ""),
        &device("00:02.1", "0000 [0000:0000]", &os_device("cuda0", 1, &[])),
        &device("00:03.0", "0380 [1002:7408]", ""),
        &device("00:04.0", "0300 [8086:56a0]", &os_device("card1", 2, &[])),
        &device("00:05.0", "1200 [1002:74a1]", &os_device("rsmi0", 3, &[("GPUVendor", "AMD")])),
        &device(
            "00:06.0",
            "0380 [8086:0bd5]",
            &os_device("ze1", 4, &[("LevelZeroDeviceType", "GPU")]),
        ),
        &device(
            "00:07.0",
            "1200 [ffff:0001]",
            &os_device("ze0", 5, &[("LevelZeroDeviceType", "FPGA")]),
        ),
        &device(
            "00:08.0",
            "0b40 [ffff:0002]",
            &os_device("opencl0d0", 6, &[("OpenCLDeviceType", "CPU")]),
        ),
    ]);
    // By the number of the library that knows it, then by address.
    let expected = ["05.0", "02.1", "06.0", "01.0", "03.0", "04.0"];
    assert_eq!(gpus(&observed), expected.map(|place| format!("0000:00:{place}")));
    assert_eq!(of_kind(&observed, NodeKind::Gpu)[3].model.as_deref(), Some("10de:1db1"));
    assert_eq!(labels(of_kind(&observed, NodeKind::Gpu)[0]), [(Tool::RocmSmi, "GPU0")]);
}

#[test]
fn types_of_drivers_devices_depend_on_the_version() {
    let names = |network: u32, fabric: u32| {
        let named = |name, kind| {
            format!("<object type=\"OSDev\" name=\"{name}\" osdev_type=\"{kind}\"/>\n")
        };
        device("00:01.0", "0200 [15b3:1017]", &(named("net", network) + &named("fab", fabric)))
            + &device(
                "00:02.0",
                "0108 [144d:a808]",
                &named("disk", if network == 2 { 0 } else { 1 }),
            )
            + &device(
                "00:03.0",
                "0502 [8086:0d93]",
                &named("mem", if network == 2 { 6 } else { 2 }),
            )
    };
    for (version, network, fabric) in [("2.0", 2, 3), ("3.0", 16, 32), ("3.1", 16, 48)] {
        let observed = clean(&file(version, &host_bridge("00-00", &names(network, fabric)), ""));
        let [nic] = of_kind(&observed, NodeKind::Nic)[..] else { panic!("{version} {observed:?}") };
        assert_eq!(labels(nic), [(Tool::Os, "fab"), (Tool::Os, "net")], "{version}");
    }
}

#[test]
fn version_1_has_numa_nodes_around_and_memory_of_gpus_beside() {
    let gpu = device("01:00.0", "0302 [10de:1db1]", &os_device("card1", 1, &[]));
    let near = host_bridge("00-01", &bridge("00:00.0", "01-01", &gpu));
    let node = |number: u32, sets: &str, inside: &str| {
        format!("<object type=\"NUMANode\" os_index=\"{number}\" {sets}>\n{inside}</object>\n")
    };
    let text = format!(
        "<topology>\n<object type=\"Machine\" cpuset=\"0xff\" nodeset=\"0x80000000,,0x00000101\">\n\
         <distances nbobjs=\"2\" relative_depth=\"1\" latency_base=\"10.0\">\
         <latency value=\"1.0\"/></distances>\n\
         <object type=\"Socket\" cpuset=\"0xff\" nodeset=\"0x101\">\n{}{}</object>\n{}</object>\n\
         </topology>\n",
        // A node without memory is in no set of nodes.
        node(0, "cpuset=\"0x0f\" nodeset=\"0x0\" complete_nodeset=\"0x1\"", &near),
        node(8, "cpuset=\"0xf0\" nodeset=\"0x100\"", ""),
        node(95, "cpuset=\"0x0\" nodeset=\"0x80000000,,0x0\"", "")
    );
    let observed = clean(&text);
    let numa: Vec<_> = of_kind(&observed, NodeKind::NumaNode);
    assert_eq!(numa.iter().filter_map(|node| node.numa_node()).collect::<Vec<_>>(), [0, 8, 95]);
    assert_eq!(numa[2].cpu_affinity, None);
    assert_eq!(of_kind(&observed, NodeKind::Gpu)[0].numa_nodes, [0]);
}

#[test]
fn what_is_near_to_everything_is_near_to_nothing() {
    let gpu = device("01:00.0", "0302 [10de:1db1]", "");
    let lone = host_bridge("00-01", &bridge("00:01.0", "01-01", &gpu));
    let observed = clean(&file("2.0", &(package(0, "") + &package(1, "") + &lone), ""));
    let gpu = of_kind(&observed, NodeKind::Gpu)[0];
    assert!(gpu.numa_nodes.is_empty() && gpu.cpu_affinity.is_none());
    assert_eq!(observed.nodes[gpu.parent.unwrap()].parent, None);
    // With one node there is no doubt.
    let observed = clean(
        &file("2.0", &(package(0, "") + &lone), "").replace("nodeset=\"0x3\"", "nodeset=\"0x1\""),
    );
    assert_eq!(of_kind(&observed, NodeKind::Gpu)[0].numa_nodes, [0]);
}

#[test]
fn memory_without_cpus_is_no_affinity() {
    let gpu = device("01:00.0", "0302 [10de:2342]", "");
    let lone = host_bridge("00-01", &bridge("00:01.0", "01-01", &gpu));
    let memory = |number: u32, subtype: &str| {
        format!(
            "<object type=\"MemCache\" cpuset=\"0x0f\" nodeset=\"0x{0:x}\">\n\
             <object type=\"NUMANode\" subtype=\"{subtype}\" os_index=\"{number}\" \
             cpuset=\"0x0f\" nodeset=\"0x{0:x}\"/>\n</object>\n",
            1 << number
        )
    };
    let inside = memory(2, "GPUMemory") + &memory(3, "HBM") + &lone;
    let near = package(0, &inside).replacen("nodeset=\"0x1\"", "nodeset=\"0xd\"", 1);
    let observed = clean(&file("2.0", &(near + &package(1, "")), ""));
    assert_eq!(of_kind(&observed, NodeKind::Gpu)[0].numa_nodes, [0]);
    assert_eq!(of_kind(&observed, NodeKind::NumaNode).len(), 4);
}

#[test]
fn without_sets_of_nodes_cpus_tell() {
    let gpu = device("01:00.0", "0302 [10de:1db1]", "");
    let inside = host_bridge("00-01", &bridge("00:01.0", "01-01", &gpu));
    let far = package(1, &inside).replacen(" nodeset=\"0x2\"", "", 1);
    let observed = clean(&file("2.0", &(package(0, "") + &far), ""));
    assert_eq!(of_kind(&observed, NodeKind::Gpu)[0].numa_nodes, [1]);
}

#[test]
fn a_device_out_of_place_hangs_on_nothing() {
    let gpu = device("09:00.0", "0302 [10de:1db1]", "");
    let text = file("2.0", &host_bridge("00-02", &bridge("00:01.0", "01-02", &gpu)), "");
    let observed = read(&text).unwrap();
    assert_eq!(of_kind(&observed, NodeKind::Gpu)[0].parent, None);
    assert_eq!(observed.warnings.len(), 1, "{:?}", observed.warnings);
    // Without bridges nothing is known, and nothing is wrong.
    let observed = clean(&file("2.0", &package(0, &device("09:00.0", "0302 [10de:1db1]", "")), ""));
    assert_eq!(of_kind(&observed, NodeKind::Gpu)[0].parent, None);
}

#[test]
fn without_pci_devices_each_gpu_is_counted_once() {
    let names = nvml(0, "H100")
        + &nvml(1, "H100")
        + &os_device("cuda0", 1, &[])
        + &os_device("cuda1", 2, &[])
        + &os_device("opencl0d0", 3, &[])
        + &os_device("mlx5_0", 4, &[])
        + &os_device("eth0", 5, &[]);
    let observed = clean(&file("2.0", &package(1, &names), ""));
    assert_eq!(gpus(&observed), ["none"; 2]);
    assert_eq!(of_kind(&observed, NodeKind::Gpu)[0].numa_nodes, [1]);
    assert_eq!(of_kind(&observed, NodeKind::Nic).len(), 1);
}

#[test]
fn a_missing_tag_costs_affinity_but_no_address() {
    let whole = small_machine();
    let end = whole.find("</object>\n<object type=\"OSDev\"").unwrap();
    let text = whole[..end].to_owned() + &whole[end + "</object>\n".len()..];
    let observed = read(&text).unwrap();
    assert_eq!(gpus(&observed), ["0000:04:00.0", "0000:03:00.0", "0000:81:00.0"]);
    assert!(of_kind(&observed, NodeKind::Gpu).iter().all(|gpu| gpu.numa_nodes.is_empty()));
    assert!(observed.warnings.iter().any(|warning| warning.text.contains("a tag is missing")));
}

#[test]
fn names_that_several_have_are_left_out() {
    let gpu = |address, number: u32| {
        device(
            address,
            "0302 [10de:1db1]",
            &os_device(&format!("nvml{number}"), 1, &[("NVIDIAUUID", "GPU-1")]),
        )
    };
    let text = file("2.0", &host_bridge("00-00", &(gpu("00:01.0", 0) + &gpu("00:02.0", 0))), "");
    let observed = read(&text).unwrap();
    for gpu in of_kind(&observed, NodeKind::Gpu) {
        assert_eq!((gpu.uuid.as_ref(), gpu.labels.len()), (None, 0));
    }
    assert_eq!(observed.warnings.len(), 2);
    // Zeros are no UUID, and not worth a word.
    let observed = clean(&text.replace("GPU-1", "GPU-00000000-0000").replacen("nvml0", "nvml1", 1));
    assert!(of_kind(&observed, NodeKind::Gpu).iter().all(|gpu| gpu.uuid.is_none()));
}

#[test]
fn a_device_that_is_listed_twice_is_one() {
    let gpu = device("00:01.0", "0302 [10de:1db1]", &nvml(0, "Tesla V100"));
    let observed = read(&file("2.0", &host_bridge("00-00", &gpu.repeat(2)), "")).unwrap();
    assert_eq!(gpus(&observed), ["0000:00:01.0"]);
    assert!(observed.warnings[0].text.contains("listed before"));
}

#[test]
fn a_speed_that_one_link_has_tells_generation_and_lanes() {
    let at = |speed: &str| {
        let gpu = device("00:01.0", "0302 [1002:66a1]", "").replace("15.753846", speed);
        let observed = clean(&file("2.0", &host_bridge("00-00", &gpu), ""));
        let uplink = of_kind(&observed, NodeKind::Gpu)[0].uplink?;
        assert_eq!(uplink.maximum, PcieWidth::default());
        Some((uplink.current.generation?, uplink.current.lanes?))
    };
    assert_eq!(at("0.250000"), Some((1, 1)));
    assert_eq!(at("8.000000"), Some((2, 16)));
    assert_eq!(at("63.015385"), Some((5, 16)));
    assert_eq!(at("121.000000"), Some((6, 16)));
    for speed in ["15.753846", "31.507692", "4.000000", "0.615385", "0.000000", "nan", "inf", "x"] {
        assert_eq!(at(speed), None, "{speed}");
    }
}
