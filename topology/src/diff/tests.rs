//! What is worth an alarm, what is not, and that nothing differs from itself.

use super::Severity;
use crate::{
    Format, InterconnectType, Machine, Node, NodeKind, Observations, Pair, PcieWidth,
    PeerCapability, PeerStatus, Reading, Statement, Tool, Uplink,
};

const fn width(generation: u8, lanes: u8) -> PcieWidth {
    PcieWidth { generation: Some(generation), lanes: Some(lanes) }
}

/// Two GPUs on Gen4 x16, joined by four NVLinks, with peer access.
fn described() -> Observations {
    let mut all = Observations::default();
    for bus in [1, 2] {
        let mut gpu = Node::new(NodeKind::Gpu).labelled(Tool::NvidiaSmi, format!("GPU{}", bus - 1));
        gpu.pci = Some(crate::PciAddress { domain: 0, bus, device: 0, function: 0 });
        gpu.uplink = Some(Uplink { current: width(4, 16), maximum: width(4, 16) });
        gpu.numa_nodes = vec![0];
        gpu.nvlinks_up = Some(4);
        all.add_node(gpu);
    }
    for (from, to) in [(0, 1), (1, 0)] {
        let class = InterconnectType::NvLink { generation: Some(3), links: 4 };
        let peer =
            Statement::Peer { capability: PeerCapability::Read, status: PeerStatus::Supported };
        for statement in [Statement::Class(class), peer] {
            all.pairs.push(Pair { from, to, statement, line: None });
        }
    }
    all
}

fn machine(observations: Observations) -> Machine {
    Machine::merge(&[Reading { format: Format::NvidiaSmiTopo, observations }])
}

/// The changes that follow from a change of the description, as text with `!` before alarms.
fn told(change: impl Fn(&mut Observations)) -> Vec<String> {
    let mut after = described();
    change(&mut after);
    let changes = machine(after).changes_since(&machine(described()));
    let mark = |severity| if severity == Severity::Alarm { "! " } else { "" };
    changes.iter().map(|change| format!("{}{change}", mark(change.severity))).collect()
}

fn uplink(all: &mut Observations) -> &mut Uplink {
    all.nodes[1].uplink.as_mut().unwrap()
}

#[test]
fn nothing_differs_from_itself() {
    assert_eq!(told(|_| {}), [""; 0]);
}

#[test]
fn a_link_that_came_up_narrower_is_an_alarm() {
    let now = told(|all| uplink(all).current = width(4, 8));
    assert_eq!(now, ["! GPU1: PCIe now was Gen4 x16, is Gen4 x8"]);
    let best = told(|all| uplink(all).maximum = width(3, 16));
    assert_eq!(best, ["! GPU1: PCIe at best was Gen4 x16, is Gen3 x16"]);
}

#[test]
fn an_idle_card_is_a_note() {
    let now = told(|all| uplink(all).current = width(1, 16));
    assert_eq!(now, ["GPU1: PCIe now was Gen4 x16, is Gen1 x16 (an idle card saves power)"]);
}

#[test]
fn fewer_links_and_lost_access_are_alarms() {
    let fewer = told(|all| {
        for pair in &mut all.pairs {
            if let Statement::Class(InterconnectType::NvLink { links, .. }) = &mut pair.statement {
                *links = 3;
            }
        }
        all.nodes[0].nvlinks_up = Some(3);
    });
    assert_eq!(fewer, ["! GPU0: 4 NVLinks were up, 3 are", "! GPU0 - GPU1: was NV4, is NV3"]);
    let lost = told(|all| {
        for pair in &mut all.pairs {
            if let Statement::Peer { status, .. } = &mut pair.statement {
                *status = PeerStatus::ChipsetNotSupported;
            }
        }
    });
    assert_eq!(lost, ["! GPU0 - GPU1: peer access is lost"]);
}

#[test]
fn what_is_gone_is_an_alarm_and_what_is_new_a_note() {
    let gone = told(|all| {
        all.nodes.pop();
        all.pairs.clear();
    });
    assert_eq!(gone, ["! GPU1: is gone"]);
    let new = told(|all| {
        all.add_node(Node::new(NodeKind::Nic).labelled(Tool::NvidiaSmi, "NIC0"));
    });
    assert_eq!(new, ["NIC0: is new"]);
}

#[test]
fn what_only_one_knows_is_no_change() {
    let less = told(|all| {
        all.nodes[0].uplink = None;
        all.nodes[0].nvlinks_up = None;
        all.nodes[0].numa_nodes.clear();
        all.pairs.retain(|pair| matches!(pair.statement, Statement::Class(_)));
    });
    assert_eq!(less, [""; 0]);
}
