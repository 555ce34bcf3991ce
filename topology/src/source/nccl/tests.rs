//! The tree of a topology file: what its elements are, and what they hang on.

use super::{read, recognizes};
use crate::{Node, NodeKind, Observations, Tool};

mod graphs;
mod links;
mod repeated;

/// A system of one CPU that holds `content`.
pub(super) fn on_cpu(content: &str) -> Observations {
    read(&format!("<system version=\"1\">\n<cpu numaid=\"0\">\n{content}\n</cpu>\n</system>"))
        .unwrap()
}

pub(super) fn texts(observed: &Observations) -> Vec<String> {
    observed.warnings.iter().map(ToString::to_string).collect()
}

/// The positions of the nodes of a kind.
pub(super) fn all(observed: &Observations, kind: NodeKind) -> Vec<usize> {
    (0..observed.nodes.len()).filter(|&index| observed.nodes[index].kind == kind).collect()
}

/// The only node of a kind.
pub(super) fn only(observed: &Observations, kind: NodeKind) -> &Node {
    let found = all(observed, kind);
    assert_eq!(found.len(), 1, "{observed:#?}");
    &observed.nodes[found[0]]
}

fn current(node: &Node) -> (Option<u8>, Option<u8>) {
    node.uplink.map_or((None, None), |uplink| (uplink.current.generation, uplink.current.lanes))
}

#[test]
fn gpus_and_nics_hang_on_switches_of_a_numa_node() {
    let observed = read(
        r#"
<system version="1">
  <cpu numaid="1" affinity="ffff0000" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:10:00.0" class="0x060400" vendor="0x1000" device="0xc010" link_speed="8.0 GT/s PCIe" link_width="8">
      <pci busid="0000:12:00.0" class="0x030200" vendor="0x10de" device="0x20b0" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="80" rank="3" gdr="1"/>
      </pci>
      <pci busid="0000:13:00.0" class="0x020700" link_speed="16 GT/s" link_width="4">
        <nic><net name="mlx5_4" dev="2" speed="200000" port="1" keep="1"/></nic>
      </pci>
    </pci>
  </cpu>
</system>"#,
    )
    .unwrap();
    assert_eq!(texts(&observed), [""; 0]);
    let gpu = only(&observed, NodeKind::Gpu);
    assert_eq!(gpu.label(Tool::Nccl), Some("GPU0"));
    assert_eq!(gpu.pci.unwrap().to_string(), "0000:12:00.0");
    assert_eq!(
        (gpu.model.as_deref(), gpu.architecture.as_deref()),
        (Some("10de:20b0"), Some("sm80"))
    );
    assert_eq!((current(gpu), gpu.numa_node()), ((Some(4), Some(16)), Some(1)));
    let switch = &observed.nodes[gpu.parent.unwrap()];
    assert_eq!((switch.kind, current(switch)), (NodeKind::PcieSwitch, (Some(3), Some(8))));
    let cpu = &observed.nodes[switch.parent.unwrap()];
    assert_eq!((cpu.kind, cpu.label(Tool::Numa)), (NodeKind::NumaNode, Some("1")));
    assert_eq!(cpu.architecture.as_deref(), Some("x86_64 GenuineIntel 6 85"));
    assert_eq!(cpu.cpu_affinity.as_deref(), Some("ffff0000"));
    let nic = only(&observed, NodeKind::Nic);
    assert_eq!((nic.label(Tool::Os), nic.label(Tool::Nccl)), (Some("mlx5_4"), Some("NET2")));
    assert_eq!(
        (nic.parent, current(nic), nic.numa_node()),
        (gpu.parent, (Some(4), Some(4)), Some(1))
    );
    assert_eq!(nic.network_gb_per_s.to_string(), "=25");
}

#[test]
fn a_cpu_of_unknown_number_is_a_node_without_one() {
    let pci = "<pci busid='0:1:0.0' class='0x03'/>".replace("0:1:0.0", "0000:01:00.0");
    for numaid in ["numaid='-1'", "", "numaid='x'"] {
        let observed =
            read(&format!("<system><cpu {numaid} arch='arm64'>{pci}</cpu></system>")).unwrap();
        let cpu = only(&observed, NodeKind::NumaNode);
        assert_eq!((cpu.labels.len(), cpu.numa_nodes.len()), (0, 0));
        assert_eq!(cpu.architecture.as_deref(), Some("arm64"));
        let gpu = only(&observed, NodeKind::Gpu);
        assert!(gpu.numa_nodes.is_empty() && gpu.parent.is_some());
        assert_eq!(observed.warnings.len(), usize::from(numaid.contains('x')));
    }
}

#[test]
fn every_spelling_of_speed_and_width_is_read_and_no_other() {
    let read_one = |speed: &str, width: &str| {
        let pci = format!(
            "<pci busid='0000:01:00.0' class='0x030000' link_speed='{speed}' link_width='{width}'/>"
        );
        let observed = on_cpu(&pci);
        (current(only(&observed, NodeKind::Gpu)), observed.warnings.len())
    };
    let known = [
        ("2.5 GT/s PCIe", 1),
        ("5 GT/s", 2),
        ("5.0 GT/s PCIe", 2),
        ("8 GT/s", 3),
        ("16.0 GT/s", 4),
        ("32.0 GT/s PCIe", 5),
        ("64.0 GT/s PCIe", 6),
    ];
    for (speed, generation) in known {
        assert_eq!(read_one(speed, "16"), ((Some(generation), Some(16)), 0));
    }
    for (speed, width) in [("", "0"), ("Unknown", "255"), ("Unknown speed", ""), ("", "-1")] {
        assert_eq!(read_one(speed, width), ((None, None), 0));
    }
    for speed in ["6.0 GT/s PCIe", "100000 MT/s", "16", "1 6.0 GT/s"] {
        assert_eq!(read_one(speed, "8"), ((None, Some(8)), 1));
    }
    for width in ["7", "016", "x16", "4000000000", "99999999999999999999", "1.6"] {
        assert_eq!(read_one("8 GT/s", width), ((Some(3), None), 1));
    }
}

#[test]
fn the_class_tells_what_a_device_is_and_a_missing_one_does_not() {
    let kind = |attributes: &str, inside: &str| {
        let observed = on_cpu(&format!("<pci busid='0000:01:00.0' {attributes}>{inside}</pci>"));
        observed.nodes.iter().find(|node| node.pci.is_some()).unwrap().kind
    };
    let gpu = "<gpu dev='0' sm='90'/>";
    let net = "<nic><net name='eth0'/></nic>";
    assert_eq!(kind("class='0x030200'", ""), NodeKind::Gpu);
    assert_eq!(kind("class='0x03'", gpu), NodeKind::Gpu);
    assert_eq!(kind("class='0x120000'", gpu), NodeKind::Gpu);
    assert_eq!(kind("class='0x0b4000'", gpu), NodeKind::Gpu);
    assert_eq!(kind("class='0x120000'", ""), NodeKind::PciDevice);
    assert_eq!(kind("class='0x02'", ""), NodeKind::Nic);
    assert_eq!(kind("class='0x0c0600'", net), NodeKind::Nic);
    assert_eq!(kind("class='0x068000'", ""), NodeKind::NvSwitch);
    assert_eq!(kind("class='0x060400'", ""), NodeKind::PcieSwitch);
    assert_eq!(kind("class='0x080100'", "<pci busid='0000:02:00.0'/>"), NodeKind::PcieSwitch);
    assert_eq!(kind("class='0x060000'", net), NodeKind::HostBridge);
    assert_eq!(kind("", gpu), NodeKind::Gpu);
    assert_eq!(kind("", "<net name='eth0'/>"), NodeKind::Nic);
    assert_eq!(kind("", "<pci busid='0000:02:00.0'/>"), NodeKind::PcieSwitch);
    assert_eq!(kind("", ""), NodeKind::PciDevice);
    assert_eq!(kind("class='GPU'", ""), NodeKind::PciDevice);
}

#[test]
fn gpus_are_in_the_order_of_their_numbers() {
    let gpu = |bus: u8, dev: &str| {
        format!("<pci busid='0000:0{bus}:00.0' class='0x0302'><gpu dev='{dev}' sm='70'/></pci>")
    };
    let observed = on_cpu(&format!("{}{}{}", gpu(1, "10"), gpu(2, "0x1"), gpu(3, "2")));
    let gpus: Vec<_> = observed.nodes.iter().filter_map(|node| node.label(Tool::Nccl)).collect();
    assert_eq!(gpus, ["GPU1", "GPU2", "GPU10"]);
}

#[test]
fn a_net_without_a_card_has_no_address() {
    let observed = on_cpu(
        "<pci busid='0000:00:00.0' class='0x060000'>
           <nic><net name='a' speed='0'/><net name='b'/></nic>
         </pci>
         <nic><net name='veth0' dev='1'/></nic>",
    );
    let nics = all(&observed, NodeKind::Nic);
    assert_eq!(nics.len(), 3);
    for &nic in &nics {
        let nic = &observed.nodes[nic];
        assert!(nic.pci.is_none() && nic.network_gb_per_s.is_unknown());
        let parent = if nic.label(Tool::Os) == Some("veth0") {
            NodeKind::NumaNode
        } else {
            NodeKind::HostBridge
        };
        assert_eq!(observed.nodes[nic.parent.unwrap()].kind, parent);
    }
}

#[test]
fn the_ports_of_a_card_are_nics_of_one_address() {
    let observed = on_cpu(
        "<pci busid='0000:02:00.0' class='0x0207'><nic>
           <net name='mlx5_0' dev='0' port='1'/><net name='mlx5_1' dev='1' port='2'/>
         </nic></pci>",
    );
    let nics = all(&observed, NodeKind::Nic);
    let address = |nic: usize| observed.nodes[nic].pci.unwrap().to_string();
    assert_eq!(nics.iter().map(|&nic| address(nic)).collect::<Vec<_>>(), ["0000:02:00.0"; 2]);
    assert!(observed.warnings.is_empty());
}

#[test]
fn an_architecture_is_written_as_its_maker_writes_it() {
    let architecture = |version: u8, gpu: &str| {
        let text = format!(
            "<system version='{version}'><cpu numaid='0'><pci busid='0000:01:00.0' \
             class='0x0380'><gpu dev='0' {gpu}/></pci></cpu></system>"
        );
        only(&read(&text).unwrap(), NodeKind::Gpu).architecture.clone().unwrap_or_default()
    };
    assert_eq!(architecture(1, "sm='103'"), "sm103");
    assert_eq!(architecture(2, "sm='120' gcn='908' arch='38911'"), "gfx908");
    assert_eq!(architecture(2, "sm='104' gcn='910'"), "gfx90a");
    assert_eq!(architecture(2, "sm='104' gcn='gfx90a:sramecc+:xnack-'"), "gfx90a");
    assert_eq!(architecture(1, "sm='304' gcn='gfx942'"), "gfx942");
    // RCCL's sm is a number of compute units.
    assert_eq!(architecture(2, "sm='104'"), "");
    assert_eq!(architecture(1, "sm='104' arch='38911'"), "");
    assert_eq!(architecture(2, "sm='104' gcn='MI200'"), "");
}

#[test]
fn what_stands_around_the_file_does_not_matter() {
    let system = "<system version='1'>\n<cpu numaid='0'>\n<pci busid='0000:01:00.0' \
                  class='0x0302'/>\n</cpu>\n</system>";
    let before = [
        "\n",
        "<?xml version=\"1.0\"?>\n<!DOCTYPE system>\n",
        "<!-- <system><cpu> of another -->\n",
        "host:12:34 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0> & more\n```xml\n",
    ];
    for before in before {
        let text = format!("{before}{system}\nhost:12:34 [0] NCCL INFO <0> done\n");
        assert!(recognizes(&text), "{text}");
        let observed = read(&text).unwrap();
        assert_eq!((observed.nodes.len(), texts(&observed)), (2, vec![]));
    }
}

#[test]
fn of_several_systems_the_first_is_read() {
    let system = |bus: u8| {
        format!("<system><cpu numaid='0'><pci busid='0000:0{bus}:00.0' class='0x03'/></cpu>")
    };
    let observed = read(&format!("{}\ncut\n{}</system>", system(1), system(2))).unwrap();
    assert_eq!(only(&observed, NodeKind::Gpu).pci.unwrap().bus, 1);
    assert_eq!(observed.warnings.len(), 2, "{:?}", texts(&observed));
}

#[test]
fn a_start_that_is_missing_costs_a_warning() {
    let text = "</pci>\n<pci busid='0000:09:00.0'/>\n</cpu>\n<cpu numaid='1'>\n\
                <pci busid='0000:01:00.0' class='0x03'/>\n</cpu>\n</system>";
    assert!(recognizes(text));
    let observed = read(text).unwrap();
    assert_eq!(only(&observed, NodeKind::Gpu).numa_node(), Some(1));
    assert_eq!(texts(&observed).len(), 1);
    assert_eq!(observed.warnings[0].line, Some(4));
}

#[test]
fn what_is_no_topology_is_refused() {
    for text in ["", "<svg><graph/></svg>", "<system.web><pci/></system.web>", "<topology/>"] {
        assert!(!recognizes(text), "{text}");
        assert!(read(text).is_err());
    }
    let groups = "<system version='2'>\n<group name='a'><cpu numaid='3'><pci><gpu dev='0'/></pci>\
                  </cpu></group></system>";
    assert!(recognizes(groups));
    let error = read(groups).unwrap_err();
    assert_eq!(error.line(), Some(2));
    assert!(error.to_string().contains("not an NCCL topology"), "{error}");
    let error = read("<system version='1'><!-- <cpu --></system>").unwrap_err();
    assert!(error.to_string().contains("no device"), "{error}");
}

#[test]
fn size_is_no_trouble() {
    let many = |piece: &str| piece.repeat(30_000);
    let link = "<nvlink target='0000:02:00.0' count='65535' tclass='0x068000'/>";
    let pieces = [
        format!("<pci busid='0000:01:00.0'><gpu dev='0'>{}</gpu></pci>", many(link)),
        many("<pci busid='0000:01:00.0' class='0x03'/>"),
        many("<pci busid='0000:01:00.0' class='0x0604'/>"),
        format!("<pci busid='0000:01:00.0'>{}</pci>", many("<gpu dev='1'/>")),
        format!("<pci busid='0000:01:00.0'>{}</pci>", many("<net name='a' dev='7'/>")),
        many("</cpu><cpu numaid='0'>"),
        many("</cpu><cpu host_hash='1'>"),
        many("<cpu numaid='1'>"),
    ];
    for piece in pieces {
        assert!(on_cpu(&piece).nodes.len() <= 30_100);
    }
}
