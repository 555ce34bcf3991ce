//! Tests of switches in the graph.

use super::{Figure, SwitchId};
use crate::{
    End, GpuConnection, GpuTopology, InterconnectType, Quality, SwitchLink, TopologyError,
    TopologyWarning,
};

fn nvlink(links: u16) -> InterconnectType {
    InterconnectType::NvLink { generation: Some(4), links }
}

fn port(from: impl Into<End>, to: impl Into<End>, links: u16) -> SwitchLink {
    let gb_per_s = f64::from(links) * 25.0;
    SwitchLink::new(from, to, nvlink(links))
        .with_bandwidth(Figure::measured(gb_per_s, 1).unwrap())
        .with_latency(Figure::estimated(0.5, "rule").unwrap())
}

/// Devices on one switch, with this many NVLinks each.
fn star(links: &[u16]) -> (GpuTopology, SwitchId) {
    let mut topology = GpuTopology::new(0..links.len());
    let switch = topology.add_switch();
    for (device, &links) in links.iter().enumerate() {
        topology.set_switch_link_both(port(device, switch, links)).unwrap();
    }
    (topology, switch)
}

#[test]
fn two_devices_on_one_switch_are_joined_by_the_narrower_port() {
    let (mut topology, switch) = star(&[18, 12, 18]);
    let connection = topology.connection(0, 1).unwrap();
    assert_eq!(connection.kind, InterconnectType::NvSwitch { generation: Some(4), links: 12 });
    assert_eq!(connection.bandwidth, Figure::measured(300.0, 1).unwrap());
    assert_eq!(connection.latency, Figure::estimated(1.0, "rule").unwrap());
    assert!(connection.peer_access && topology.has_peer_access(0, 1));
    assert!(topology.direct_connection(0, 1).is_none());
    assert_eq!(topology.connection(1, 1), None);
    assert_eq!(topology.neighbors(2), [0, 1]);
    assert_eq!(topology.peer_neighbors(2), [0, 1]);
    assert!(topology.is_fully_connected() && topology.connections().is_empty());
    assert!(topology.table().contains("GPU1  NV12"), "{}", topology.table());

    // A link of a pair's own stands before the switch.
    topology.set_connection(GpuConnection::new(0, 2, InterconnectType::System)).unwrap();
    assert_eq!(topology.connection(0, 2).unwrap().kind, InterconnectType::System);
    assert_eq!(topology.neighbors(0), [1, 2]);
    assert_eq!(topology.peer_neighbors(0), [1]);
    assert!(!topology.has_peer_access(0, 2) && topology.has_peer_access(2, 0));

    // Each direction needs its links.
    assert_eq!(topology.remove_switch_link(1, switch), Some(port(1, switch, 12)));
    assert_eq!(topology.remove_switch_link(1, switch), None);
    assert_eq!(topology.connection(1, 0), None);
    assert!(topology.connection(0, 1).is_some() && !topology.is_fully_connected());
    let warning = TopologyWarning::OneWaySwitchLink { from: switch.into(), to: End::Device(1) };
    assert!(topology.validate().contains(&warning));
}

#[test]
fn the_worse_origin_and_an_unknown_figure_stand_for_the_pair() {
    let (mut topology, switch) = star(&[18, 18]);
    let narrow = port(0, switch, 2).with_bandwidth(Figure::measured(50.0, 1).unwrap());
    topology.set_switch_link(narrow).unwrap();
    let vague = SwitchLink::new(switch, 1, nvlink(4))
        .with_bandwidth(Figure::estimated(100.0, "a rule").unwrap());
    topology.set_switch_link(vague).unwrap();
    let connection = topology.connection(0, 1).unwrap();
    assert_eq!(connection.bandwidth, Figure::estimated(50.0, "a rule").unwrap());
    assert_eq!(connection.latency.quality(), Quality::Unknown);
}

#[test]
fn of_several_switches_the_widest_way_is_the_connection() {
    let (mut topology, _) = star(&[6, 6]);
    let wide = topology.add_switch();
    for device in 0..2 {
        topology.set_switch_link_both(port(device, wide, 12)).unwrap();
    }
    assert_eq!(topology.connection(0, 1).unwrap().kind.class_name(), "NV12");
    assert_eq!(topology.neighbors(0), [1]);
}

#[test]
fn other_kinds_stay_what_they_are_through_a_switch() {
    use InterconnectType as Kind;
    let pcie = |generation, lanes| Kind::Pcie { generation: Some(generation), lanes };
    let cases = [
        (Kind::XeLink { links: 8 }, Kind::XeLink { links: 4 }, Kind::XeLink { links: 4 }),
        (pcie(5, Some(8)), pcie(4, Some(16)), pcie(4, Some(8))),
        (pcie(5, None), pcie(4, Some(16)), pcie(4, None)),
        (Kind::PcieSwitch, Kind::PcieSwitch, Kind::PcieSwitch),
        (Kind::PcieSwitch, Kind::System, Kind::Unknown),
        (nvlink(4), Kind::XeLink { links: 4 }, Kind::Unknown),
    ];
    for (up, down, expected) in cases {
        let mut topology = GpuTopology::new(0..2);
        let switch = topology.add_switch();
        topology.set_switch_link(SwitchLink::new(0, switch, up)).unwrap();
        topology.set_switch_link(SwitchLink::new(switch, 1, down)).unwrap();
        assert_eq!(topology.connection(0, 1).unwrap().kind, expected);
    }
}

#[test]
fn refused_links_change_nothing() {
    let (mut topology, switch) = star(&[18, 18]);
    let before = (topology.clone(), topology.epoch());
    let missing = SwitchId::new(4);
    let set = |topology: &mut GpuTopology, from: End, to: End| {
        topology.set_switch_link(SwitchLink::new(from, to, nvlink(1)))
    };
    assert_eq!(
        set(&mut topology, End::Device(0), missing.into()),
        Err(TopologyError::UnknownSwitch { switch: missing })
    );
    assert_eq!(
        set(&mut topology, switch.into(), End::Device(7)),
        Err(TopologyError::UnknownDevice { index: 7 })
    );
    assert_eq!(
        set(&mut topology, End::Device(0), End::Device(1)),
        Err(TopologyError::NoSwitch { from: 0, to: 1 })
    );
    assert_eq!(
        set(&mut topology, switch.into(), switch.into()),
        Err(TopologyError::SwitchLoop { switch })
    );
    let empty = SwitchLink::new(0, switch, nvlink(0));
    assert_eq!(
        topology.set_switch_link_both(empty),
        Err(TopologyError::EmptyLink { kind: nvlink(0) })
    );
    assert_eq!((topology.clone(), topology.epoch()), before);
}

#[test]
fn a_device_that_is_removed_leaves_its_switches() {
    let (mut topology, first) = star(&[18, 18, 6]);
    let second = topology.add_switch();
    topology.set_switch_link_both(port(first, second, 4)).unwrap();
    topology.remove_device(2).unwrap();
    assert_eq!(topology.switches().collect::<Vec<_>>(), [first, second]);
    assert_eq!(topology.switch_links().len(), 6);
    assert!(topology.switch_link(first, second).is_some());
    let mut expected = star(&[18, 18]).0;
    assert_ne!(topology, expected);
    expected.add_switch();
    expected.set_switch_link_both(port(first, second, 4)).unwrap();
    assert_eq!(topology, expected);
}

#[test]
fn a_kind_that_differs_on_the_way_back_is_a_warning() {
    let (mut topology, switch) = star(&[18]);
    topology.set_switch_link(port(switch, 0, 12)).unwrap();
    let warning = TopologyWarning::SwitchKindsDiffer {
        from: End::Device(0),
        to: switch.into(),
        there: "NV18".into(),
        back: "NV12".into(),
    };
    assert_eq!(
        warning.to_string(),
        "the link between device 0 and switch 0 is NV18 one way and NV12 the other; \
         check the source"
    );
    assert_eq!(topology.validate(), [warning]);
}
