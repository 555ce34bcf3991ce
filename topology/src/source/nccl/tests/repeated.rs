//! Things that stand in a file twice, or in the wrong place.

use super::{all, on_cpu, only, read, texts};
use crate::{NodeKind, Tool};

const GPU: &str = "<pci busid='0000:01:00.0' class='0x0302' link_speed='8 GT/s' link_width='16'>\
                   <gpu dev='0' sm='70'/></pci>\n";

#[test]
fn a_device_that_is_listed_twice_is_one() {
    let observed = on_cpu(&(GPU.to_owned() + GPU));
    let gpu = only(&observed, NodeKind::Gpu);
    assert_eq!((gpu.label(Tool::Nccl), gpu.numa_node()), (Some("GPU0"), Some(0)));
    assert!(gpu.uplink.is_some() && gpu.parent.is_some());
    assert_eq!(observed.warnings[0].line, Some(4));
}

#[test]
fn what_two_listings_say_differently_is_unknown() {
    let second = GPU.replace("'16'", "'8'").replace("dev='0'", "dev='1'");
    let text =
        format!("<system><cpu numaid='0'>\n{GPU}</cpu>\n<cpu numaid='1'>\n{second}</cpu></system>");
    let observed = read(&text).unwrap();
    let gpu = only(&observed, NodeKind::Gpu);
    assert_eq!((gpu.numa_node(), gpu.uplink, gpu.parent), (None, None, None));
    assert_eq!((gpu.labels.len(), gpu.architecture.as_deref()), (0, Some("sm70")));
}

#[test]
fn a_line_that_stands_twice_does_not_nest_a_device_in_itself() {
    let line = "<pci busid='0000:09:00.0' class='0x060400'>\n";
    let text = format!(
        "<system><cpu numaid='0'>\n{line}{line}{GPU}</pci>\n<pci busid='0000:0a:00.0' \
         class='0x02'/></cpu></system>"
    );
    let observed = read(&text).unwrap();
    assert_eq!(all(&observed, NodeKind::PcieSwitch).len(), 1);
    let gpu = only(&observed, NodeKind::Gpu);
    assert_eq!((gpu.numa_node(), gpu.label(Tool::Nccl)), (Some(0), Some("GPU0")));
    let nic = only(&observed, NodeKind::Nic);
    assert_eq!((nic.numa_node(), nic.parent), (Some(0), None));
    assert_eq!(texts(&observed).len(), 2);
}

#[test]
fn switches_of_one_address_stay_several() {
    let switch = |inside: &str| format!("<pci busid='0000:09:00.0' class='0x0604'>{inside}</pci>");
    let other = GPU.replace(":01:", ":02:").replace("dev='0'", "dev='1'");
    let observed = on_cpu(&(switch(GPU) + &switch(&other) + &switch("")));
    let switches = all(&observed, NodeKind::PcieSwitch);
    let addresses: Vec<_> = switches.iter().map(|&at| observed.nodes[at].pci.is_some()).collect();
    assert_eq!(addresses, [true, false, false]);
    assert_ne!(observed.nodes[0].parent, observed.nodes[1].parent);
    assert_eq!(texts(&observed).len(), 1);
}

#[test]
fn a_number_of_two_gpus_names_neither() {
    let other = GPU.replace(":01:", ":02:");
    let observed = on_cpu(&(GPU.to_owned() + &other));
    assert!(observed.nodes[..2].iter().all(|gpu| gpu.labels.is_empty()));
    assert_eq!(texts(&observed).len(), 1);
    // Containers list each virtual interface below each CPU.
    let net = "<nic><net name='tunl0' dev='1'/></nic>";
    let observed = on_cpu(&(net.to_owned() + net));
    assert!(observed.nodes.iter().all(|node| node.label(Tool::Nccl).is_none()));
    assert_eq!(texts(&observed), [""; 0]);
}

#[test]
fn processes_that_share_a_gpu_are_one_gpu() {
    let pci = |second: &str| {
        format!(
            "<pci busid='0000:01:00.0' class='0x03'><gpu dev='3' sm='90' rank='0'/>{second}</pci>"
        )
    };
    let observed = on_cpu(&pci("<gpu dev='3' sm='90' rank='1'/>"));
    assert_eq!(only(&observed, NodeKind::Gpu).label(Tool::Nccl), Some("GPU3"));
    assert_eq!(texts(&observed), [""; 0]);
    let observed = on_cpu(&pci("<gpu dev='4' sm='90' rank='1'/>"));
    assert_eq!(only(&observed, NodeKind::Gpu).labels.len(), 0);
    assert_eq!(texts(&observed).len(), 1);
}

#[test]
fn a_gpu_without_its_pci_has_no_address() {
    let observed = on_cpu("<pci busid='0000:09:00.0' class='0x0604'><gpu dev='2' sm='90'/></pci>");
    let gpu = only(&observed, NodeKind::Gpu);
    assert_eq!((gpu.pci, gpu.label(Tool::Nccl)), (None, Some("GPU2")));
    assert_eq!(texts(&observed).len(), 1);
}

#[test]
fn what_stands_in_a_gpu_hangs_on_nothing_known() {
    let inner = GPU.replace(":01:", ":02:").replace("dev='0'", "dev='1'");
    let observed = on_cpu(&GPU.replace("</pci>", &format!("{inner}</pci>")));
    let [outer, inner] = &observed.nodes[..2] else { panic!("{observed:?}") };
    assert_eq!((outer.numa_node(), outer.parent.is_some()), (Some(0), true));
    assert_eq!((inner.numa_node(), inner.parent), (Some(0), None));
    assert_eq!(texts(&observed).len(), 1);
}

#[test]
fn a_cpu_within_a_cpu_makes_the_numa_nodes_uncertain() {
    let gpu = |at: u8| GPU.replace(":01:", &format!(":0{at}:")).replace("'0'", &format!("'{at}'"));
    let text = format!(
        "<system><cpu numaid='0'>{}\n<cpu numaid='1'>{}</cpu>\n{}</cpu></system>",
        gpu(1),
        gpu(2),
        gpu(3)
    );
    let observed = read(&text).unwrap();
    let numa: Vec<_> = observed.nodes[..3].iter().map(|gpu| gpu.numa_node()).collect();
    assert_eq!(numa, [Some(0), None, None]);
    assert_eq!(all(&observed, NodeKind::NumaNode).len(), 2);
}

#[test]
fn a_missing_end_leaves_the_numa_node_and_not_the_parent() {
    let text = format!(
        "<system><cpu numaid='0'><pci busid='0000:09:00.0' class='0x0604'>\n{GPU}\n</cpu>\n\
         <cpu numaid='1'>{}</cpu></system>",
        GPU.replace(":01:", ":02:").replace("dev='0'", "dev='1'")
    );
    let observed = read(&text).unwrap();
    let [first, second] = &observed.nodes[..2] else { panic!("{observed:?}") };
    assert_eq!((first.numa_node(), first.parent), (Some(0), None));
    assert_eq!((second.numa_node(), second.parent.is_some()), (Some(1), true));
}

#[test]
fn hosts_of_one_nvlink_domain_are_kept_apart() {
    let host = |hash: &str| {
        let link = "<nvlink target='fffffff:ff:ff.0' count='18' tclass='0x068000'/>";
        let gpu = GPU.replace("sm='70'/>", &format!("sm='100'>{link}</gpu>"));
        format!("<cpu host_hash='{hash}' numaid='0'>{gpu}</cpu>")
    };
    let observed = read(&format!("<system>{}{}</system>", host("0x1"), host("0x2"))).unwrap();
    let gpus = all(&observed, NodeKind::Gpu);
    assert_eq!((gpus.len(), observed.links.len()), (2, 4));
    assert_eq!(all(&observed, NodeKind::NvSwitch).len(), 1);
    assert!(observed.nodes.iter().all(|node| node.pci.is_none() && node.labels.is_empty()));
    assert_eq!(texts(&observed).len(), 1);
    // A hash that differs is no second host by itself.
    let second = host("0x3").replace(":01:", ":02:").replace("'0'", "'1'");
    let observed = read(&format!("<system>{}{second}</system>", host("0x1"))).unwrap();
    assert!(observed.nodes[..2].iter().all(|gpu| gpu.pci.is_some() && !gpu.labels.is_empty()));
}
