//! NVLink, xGMI, C2C and the links of switches.

use super::{all, on_cpu, only, read, texts};
use crate::{InterconnectType, NodeKind, Observations};

/// A GPU of this number, at bus number + 1.
fn gpu(number: u8, attributes: &str, links: &str) -> String {
    format!(
        "<pci busid='0000:{:02x}:00.0' class='0x030200'>\n<gpu dev='{number}' {attributes}>\n\
         {links}</gpu>\n</pci>\n",
        number + 1
    )
}

fn nvlink(target: &str, count: u16, class: &str) -> String {
    format!("<nvlink target='{target}' count='{count}' tclass='{class}'/>\n")
}

fn bus(number: u8) -> String {
    format!("0000:{number:02x}:00.0")
}

/// The links as `from to class`, without generation.
fn links(observed: &Observations) -> Vec<String> {
    let name = |node: usize| match observed.nodes[node].kind {
        NodeKind::Gpu => format!("{node}"),
        NodeKind::NvSwitch => "S".to_owned(),
        NodeKind::NumaNode => "C".to_owned(),
        kind => format!("{kind:?}"),
    };
    let links = observed.links.iter();
    let count = |kind: InterconnectType| match kind {
        InterconnectType::InfinityFabric { links } => format!("XGMI{links}"),
        kind => kind.class_name(),
    };
    links
        .map(|link| format!("{} {} {}", name(link.from), name(link.to), count(link.kind)))
        .collect()
}

#[test]
fn each_direction_is_what_its_own_gpu_states() {
    let observed = on_cpu(
        &[
            gpu(0, "sm='70'", &(nvlink(&bus(2), 1, "0x030200") + &nvlink(&bus(3), 2, "0x0302"))),
            gpu(1, "sm='70'", &nvlink(&bus(1), 1, "")),
            gpu(2, "sm='70'", ""),
        ]
        .concat(),
    );
    assert_eq!(links(&observed), ["0 1 NV1", "0 2 NV2", "1 0 NV1"]);
    assert_eq!(texts(&observed), [""; 0]);
    let generation = InterconnectType::NvLink { generation: Some(2), links: 1 };
    assert_eq!(observed.links[0].kind, generation);
    assert!(observed.links[0].bandwidth.is_unknown());
    let up: Vec<_> = observed.nodes[..3].iter().map(|gpu| gpu.nvlinks_up).collect();
    assert_eq!(up, [Some(3), Some(1), None]);
}

#[test]
fn links_to_several_switches_add_up() {
    let to_switches: String =
        (5..9).zip([5, 4, 4, 5]).map(|(at, count)| nvlink(&bus(at), count, "0x068000")).collect();
    let observed = on_cpu(&(gpu(0, "sm='90'", &to_switches) + &gpu(1, "sm='90'", &to_switches)));
    assert_eq!(links(&observed), ["0 S NV18", "S 0 NV18", "1 S NV18", "S 1 NV18"]);
    assert_eq!(only(&observed, NodeKind::NvSwitch).pci, None);
    assert_eq!(observed.nodes[0].nvlinks_up, Some(18));
    assert_eq!(texts(&observed), [""; 0]);
}

#[test]
fn a_peer_that_is_not_visible_is_a_switch() {
    for link in [nvlink("fffffff:ff:ff.0", 18, "0x068000"), nvlink("FFFFFFF:FFFF:FF", 18, "")] {
        let observed = on_cpu(&gpu(0, "sm='103'", &link));
        assert_eq!(links(&observed), ["0 S NV18", "S 0 NV18"]);
    }
}

#[test]
fn peers_behind_switches_share_the_links() {
    for class in ["0x068000", "0x030200"] {
        let peers: String = (2..5).map(|at| nvlink(&bus(at), 12, class)).collect();
        let others = gpu(1, "sm='80'", "") + &gpu(2, "sm='80'", "") + &gpu(3, "sm='80'", "");
        let observed = on_cpu(&(gpu(0, "sm='80'", &peers) + &others));
        assert_eq!(links(&observed), ["0 S NV12", "S 0 NV12"]);
        assert_eq!(observed.nodes[0].nvlinks_up, Some(12));
        // The same where some or all of the peers are missing.
        for others in [gpu(1, "sm='80'", ""), String::new()] {
            let observed = on_cpu(&(gpu(0, "sm='80'", &peers) + &others));
            assert_eq!(links(&observed), ["0 S NV12", "S 0 NV12"]);
        }
    }
}

#[test]
fn numbers_that_contradict_are_left_out() {
    let contradictions = [
        // More than such a GPU can have, and not the same to each.
        nvlink(&bus(5), 18, "0x068000") + &nvlink(&bus(6), 17, "0x068000"),
        nvlink(&bus(2), 92, "0x030200"),
        // A peer behind the switches, with another number.
        nvlink(&bus(2), 18, "0x068000") + &nvlink(&bus(6), 4, "0x068000"),
        // Twice, with different numbers.
        nvlink(&bus(2), 4, "0x030200") + &nvlink(&bus(2), 5, "0x030200"),
    ];
    for links_of_first in contradictions {
        let observed = on_cpu(&(gpu(0, "sm='90'", &links_of_first) + &gpu(1, "sm='90'", "")));
        assert_eq!(links(&observed), [""; 0], "{links_of_first}");
        assert_eq!(observed.nodes[0].nvlinks_up, None);
        assert!(!observed.warnings.is_empty());
    }
}

#[test]
fn a_gpu_that_cannot_have_nvlink_gets_none() {
    let observed = on_cpu(&gpu(0, "sm='89'", &nvlink("fffffff:ff:ff.0", 4, "0x068000")));
    assert_eq!((links(&observed).len(), observed.nodes[0].nvlinks_up), (0, None));
    assert_eq!(observed.warnings.len(), 1);
}

#[test]
fn a_link_to_itself_or_to_nothing_is_left_out() {
    let observed = on_cpu(
        &(gpu(0, "sm='80'", &nvlink(&bus(1), 12, "0x030200"))
            + &gpu(1, "sm='80'", &nvlink(&bus(9), 12, "0x030200"))
            + &gpu(2, "sm='80'", "<nvlink target='2' count='4'/>\n<nvlink target='x'/>\n")),
    );
    assert_eq!(links(&observed), [""; 0]);
    let up: Vec<_> = observed.nodes[..3].iter().map(|gpu| gpu.nvlinks_up).collect();
    assert_eq!(up, [None, Some(12), None]);
    let lines: Vec<_> = observed.warnings.iter().filter_map(|warning| warning.line).collect();
    for line in [5, 10, 15, 16] {
        assert!(lines.contains(&line), "{:?}", texts(&observed));
    }
}

#[test]
fn a_list_that_was_cut_does_not_add_up() {
    let whole =
        gpu(0, "sm='90'", &(nvlink(&bus(7), 5, "0x068000") + &nvlink(&bus(8), 4, "0x0680")));
    let at = whole.find("<nvlink target='0000:08").unwrap();
    for cut in [at, at + 20] {
        let text = format!("<system version='1'><cpu numaid='0'>{}", &whole[..cut]);
        let observed = read(&text).unwrap();
        assert_eq!((links(&observed).len(), observed.nodes[0].nvlinks_up), (0, None));
        assert_eq!(observed.nodes[0].architecture.as_deref(), Some("sm90"));
    }
}

#[test]
fn a_gpu_with_fewer_links_than_the_others_is_pointed_out() {
    let switch = |count| nvlink("fffffff:ff:ff.0", count, "0x068000");
    let observed = on_cpu(
        &(gpu(0, "sm='90'", &switch(18))
            + &gpu(1, "sm='90'", &switch(16))
            + &gpu(2, "sm='90'", "")),
    );
    assert_eq!(observed.nodes[1].nvlinks_up, Some(16));
    assert_eq!(texts(&observed).len(), 2);
    assert!(texts(&observed)[0].starts_with("line 9: GPU1 has 16 links"), "{:?}", texts(&observed));
}

#[test]
fn listed_switches_are_kept_apart() {
    let switches = "<pci busid='0000:07:00.0' class='0x068000'/><pci busid='0000:08:00.0' \
                    class='0x068000'/>";
    let both = nvlink(&bus(7), 2, "0x068000") + &nvlink(&bus(8), 1, "");
    let observed = on_cpu(&format!("{switches}{}", gpu(0, "sm='90'", &both)));
    assert_eq!(links(&observed), ["0 S NV2", "S 0 NV2", "0 S NV1", "S 0 NV1"]);
    assert_eq!(all(&observed, NodeKind::NvSwitch).len(), 2);
    assert_eq!(observed.nodes[0].nvlinks_up, Some(3));
}

#[test]
fn a_cpu_has_nvlink_or_a_coherent_link() {
    let to_cpu = nvlink("0004:00:00.0", 2, "0x068001") + &nvlink("0004:00:00.1", 1, "0x068001");
    let observed = on_cpu(&gpu(0, "sm='70'", &to_cpu));
    assert_eq!(links(&observed), ["0 C NV3", "C 0 NV3"]);
    assert_eq!(observed.nodes[0].nvlinks_up, Some(3));

    let observed = on_cpu(&gpu(0, "sm='90'", "<c2c bw='44712' count='10'/>"));
    assert_eq!(links(&observed), ["0 C C2C", "C 0 C2C"]);
    assert!(observed.links.iter().all(|link| link.bandwidth.to_string() == "=447.12"));
    let observed = on_cpu(&gpu(0, "sm='90'", "<c2c count='10'/>"));
    assert!(observed.links.len() == 2 && observed.links[0].bandwidth.is_unknown());
}

#[test]
fn amd_gpus_have_xgmi_whatever_the_element_is_called() {
    let link = |element: &str, at: u8| {
        format!("<{element} target='{}' count='2' tclass='0x038000'/>\n", bus(at))
    };
    let observed = on_cpu(
        &(gpu(0, "sm='104' gcn='gfx90a'", &link("xgmi", 2))
            + &gpu(1, "sm='104' gcn='gfx90a'", &link("nvlink", 1))
            + &gpu(2, "sm='304' gcn='gfx942'", &(link("xgmi", 3) + &link("xgmi", 9)))),
    );
    assert_eq!(links(&observed), ["0 1 XGMI2", "1 0 XGMI2"]);
    assert_eq!(observed.nodes[0].nvlinks_up, None);
    assert_eq!(texts(&observed).len(), 2);
}

#[test]
fn links_may_stand_beside_the_gpu() {
    let card = |at: u8, to: u8| {
        format!(
            "<pci busid='{}' class='0x120000'><gpu dev='{at}' gcn='gfx942'/><xgmi target='{}' \
             count='1'/></pci>",
            bus(at),
            bus(to)
        )
    };
    let observed = on_cpu(&(card(1, 2) + &card(2, 1)));
    assert_eq!(links(&observed), ["0 1 XGMI1", "1 0 XGMI1"]);
}

#[test]
fn partitions_are_gpus_of_a_card() {
    let part = |number: u8| {
        format!(
            "<gpu dev='{number}' gcn='gfx942' mlopart='{number}'><xgmi target='0000:0c:00.{}' \
             count='1'/></gpu>",
            1 - number
        )
    };
    let card = format!(
        "<pci busid='0000:0c:00.0' class='0x120000' link_speed='32 GT/s' link_width='16'>{}{}</pci>",
        part(0),
        part(1)
    );
    let observed = on_cpu(&card);
    assert_eq!(links(&observed), ["0 1 XGMI1", "1 0 XGMI1"]);
    let cards = all(&observed, NodeKind::Card);
    for gpu in &observed.nodes[..2] {
        assert_eq!((gpu.kind, gpu.card, gpu.pci), (NodeKind::Gpu, Some(cards[0]), None));
        assert_eq!((gpu.numa_node(), gpu.parent), (Some(0), observed.nodes[cards[0]].parent));
    }
    assert!(observed.nodes[cards[0]].uplink.is_some());
    assert_eq!(texts(&observed), [""; 0]);
}

#[test]
fn switches_of_one_chip_are_linked() {
    let switch = |at: u8, to: u8| {
        format!("<pci busid='{}' class='0x060400'><pcilink target='{}'/></pci>", bus(at), bus(to))
    };
    let observed = on_cpu(&(switch(1, 2) + &switch(2, 1) + &switch(3, 9)));
    assert_eq!(links(&observed), ["PcieSwitch PcieSwitch PCIE"; 2]);
}
