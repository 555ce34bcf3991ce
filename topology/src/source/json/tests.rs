//! Machines and topologies as JSON, there and back.

use super::read;
use crate::{
    Figure, Format, GpuConnection, GpuTopology, HostLink, InterconnectType, Link, Machine, Node,
    NodeKind, Observations, Reading, read_text,
};

fn reading(observations: Observations) -> Reading {
    Reading { format: Format::NcclXml, observations }
}

#[test]
fn a_machine_is_read_back_equal() {
    let mut all = Observations::default();
    let mut gpu = Node::new(NodeKind::Gpu);
    gpu.pci = Some("3b:00.0".parse().unwrap());
    gpu.architecture = Some("sm80".to_owned());
    let a = all.add_node(gpu);
    let b = all.add_node(Node::new(NodeKind::Gpu));
    all.add_link_both(Link {
        from: a,
        to: b,
        kind: InterconnectType::NvLink { generation: None, links: 12 },
        bandwidth: Figure::unknown(),
        latency: Figure::measured(1.25, 7).unwrap(),
    });
    all.warn(3, "odd");
    let machine = Machine::merge(&[reading(all)]);
    let back = read_text(&machine.to_json(), None).unwrap();
    assert_eq!(back.len(), 1);
    assert_eq!(back[0].format, Format::Json);
    assert_eq!(Machine::merge(&back), machine);
}

#[test]
fn a_topology_of_devices_keeps_its_figures() {
    let mut topology = GpuTopology::new([0, 1, 2]);
    let figure = |value| Figure::measured(value, 99).unwrap();
    let link = |from, to, kind| GpuConnection::new(from, to, kind).with_bandwidth(figure(17.5));
    let nvlink = InterconnectType::NvLink { generation: Some(2), links: 2 };
    topology.set_connection_both(link(0, 1, nvlink).with_latency(figure(3.25))).unwrap();
    topology
        .set_connection(link(1, 2, InterconnectType::PcieSwitch).with_peer_access(true))
        .unwrap();
    topology.set_connection(link(2, 0, InterconnectType::System)).unwrap();
    topology
        .set_host_link(HostLink::new(2, InterconnectType::HostMemory).with_latency(figure(0.5)))
        .unwrap();
    topology.set_numa_node(1, Some(3)).unwrap();
    let machine = Machine::merge(&read_text(&topology.to_json(), None).unwrap());
    let back = machine.topology();
    for (read, written) in back.connections().into_iter().zip(topology.connections()) {
        assert_eq!((read.from, read.to, read.kind), (written.from, written.to, written.kind));
        assert_eq!((&read.bandwidth, read.peer_access), (&written.bandwidth, written.peer_access));
        // An estimate may stand where nothing was known.
        assert!(written.latency.is_unknown() || read.latency == written.latency);
    }
    assert_eq!(back.connections().len(), topology.connections().len());
    assert_eq!(back.host_link(2), topology.host_link(2));
    assert_eq!(back.numa_node(1), Some(3));
    assert_eq!(machine.classes()[0][1], "NV2");
}

#[test]
fn positions_that_are_no_nodes_are_refused() {
    let document = |machine: &str| {
        format!("{{\"format\": \"hopwise-machine\", \"version\": 1,\n \"machine\": {machine}}}")
    };
    let cases = [
        (r#"{"nodes": [{"kind": "gpu", "parent": 7}]}"#, "node 0 hangs on node 7"),
        (r#"{"nodes": [{"kind": "gpu", "card": 0}]}"#, "node 0 hangs on node 0"),
        (
            r#"{"nodes": [{"kind": "gpu"}], "links": [{"from": 0, "to": 1, "kind": "pix"}]}"#,
            "from node 0 to node 1",
        ),
        (
            r#"{"nodes": [{"kind": "gpu"}, {"kind": "gpu"}],
                "links": [{"from": 0, "to": 1, "kind": {"nvlink": {"links": 0}}}]}"#,
            "zero links",
        ),
        (r#"{"nodes": [{"kind": "gpu", "colour": 1}]}"#, "line 2: unknown field `colour`"),
    ];
    for (machine, expected) in cases {
        let error = read(&document(machine)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error} lacks {expected}");
    }
}

#[test]
fn the_example_of_the_documentation_is_read() {
    let page = include_str!("../../../../docs/machine-json.md");
    let example = page.split("```json").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let machine = Machine::merge(&read_text(example, None).unwrap());
    assert_eq!(machine.classes()[0], ["X", "NV12"]);
    assert_eq!(machine.warnings(), []);
}
