//! Tests of reading and writing.

use proptest::prelude::*;

use super::*;
use crate::{End, SwitchId, SwitchLink};

fn document(devices: &str, host_links: &str, connections: &str) -> String {
    format!(
        "{{\n\"format\": \"hopwise-topology\",\n\"version\": 1,\n\"devices\": [{devices}],\n\
         \"host_links\": [{host_links}],\n\"connections\": [\n{connections}]\n}}"
    )
}

/// Line, column and reason of the refusal.
fn refusal(text: &str) -> (usize, usize, String) {
    match GpuTopology::from_json(text) {
        Err(TopologyError::Json { line, column, reason }) => (line, column, reason),
        other => panic!("not refused as JSON: {other:?}"),
    }
}

fn refused_connection(connection: &str) -> (usize, usize, String) {
    refusal(&document(r#"{"index": 0}, {"index": 1}"#, "", connection))
}

#[test]
fn a_minimal_document_is_read() {
    let topology = GpuTopology::from_json(
        r#"{"format": "hopwise-topology", "version": 1, "devices": [{"index": 4}]}"#,
    )
    .unwrap();
    assert_eq!(topology, GpuTopology::new([4]));
}

#[test]
fn both_ways_sets_the_way_back_and_peer_access_follows_the_kind() {
    let text = document(
        r#"{"index": 0, "numa_node": 1}, {"index": 1}, {"index": 2}"#,
        r#"{"device": 0, "kind": {"pcie": {"generation": 4}},
            "to_host": {"latency_us": {"value": 1.5, "measured_at_unix_seconds": 9}}}"#,
        r#"{"from": 0, "to": 1, "both_ways": true, "kind": {"nvlink": {"links": 2}}},
           {"from": 2, "to": 1, "kind": "phb"}"#,
    );
    let topology = GpuTopology::from_json(&text).unwrap();
    assert!(topology.connection(1, 0).unwrap().peer_access);
    assert!(!topology.connection(2, 1).unwrap().peer_access);
    assert!(topology.connection(1, 2).is_none());
    assert_eq!(topology.numa_node(0), Some(1));
    let host_link = topology.host_link(0).unwrap();
    assert_eq!(host_link.to_host.latency, Figure::measured(1.5, 9).unwrap());
    assert!(host_link.from_host.latency.is_unknown());
}

#[test]
fn errors_name_line_and_column_of_the_entry() {
    let good = r#"{"from": 0, "to": 1, "kind": "pix"},"#;
    let (line, column, reason) =
        refused_connection(&format!("{good}\n   {{\"from\": 1, \"to\": 7, \"kind\": \"pix\"}}"));
    assert_eq!((line, column), (8, 4));
    assert!(reason.contains("device 7 is not in the topology"), "{reason}");

    let twice = format!("{good}\n\n{}", good.trim_end_matches(','));
    let (line, _, reason) = refused_connection(&twice);
    assert_eq!(line, 9);
    assert!(reason.contains("given twice"), "{reason}");

    let (line, column, reason) =
        refused_connection("{\"from\": 0,\n\"too\": 1, \"kind\": \"pix\"}");
    assert_eq!((line, column), (8, 5));
    assert!(reason.contains("unknown field `too`"), "{reason}");
    assert!(reason.contains("docs/topology-json.md"), "{reason}");
}

#[test]
fn figures_that_are_not_usable_are_refused() {
    for value in ["0", "-3", "0.0", "1e999", "NaN", "\"12\"", "null"] {
        let figure = format!(r#"{{"value": {value}, "reported_by": "tool"}}"#);
        for field in ["bandwidth_gb_per_s", "latency_us"] {
            let (line, _, _) = refused_connection(&format!(
                r#"{{"from": 0, "to": 1, "kind": "pix", "{field}": {figure}}}"#
            ));
            assert_eq!(line, 7, "{value}");
        }
    }
}

#[test]
fn a_figure_needs_exactly_one_origin() {
    for origin in ["", r#", "reported_by": "a", "estimated_by": "b""#] {
        let (_, _, reason) = refused_connection(&format!(
            r#"{{"from": 0, "to": 1, "kind": "pix", "latency_us": {{"value": 1{origin}}}}}"#
        ));
        assert!(reason.contains("exactly one of"), "{reason}");
    }
}

#[test]
fn refusals_say_what_is_wrong() {
    let cases = [
        (document(r#"{"index": 0}, {"index": 0}"#, "", ""), "already in the topology"),
        (document(r#"{"index": -1}"#, "", ""), "invalid value"),
        (document(r#"{"index": 0, "name": "x"}"#, "", ""), "unknown field `name`"),
        (document("", r#"{"device": 3, "kind": "unknown"}"#, ""), "device 3 is not in"),
        (
            document(
                r#"{"index": 3}"#,
                r#"{"device": 3, "kind": "unknown"}, {"device": 3, "kind": "unknown"}"#,
                "",
            ),
            "given twice",
        ),
        (document("", "", "") + "x", "trailing characters"),
        (document("", "", "").replace("version\": 1", "version\": 2"), "version 2"),
        (document("", "", "").replace("hopwise-topology", "other"), "`format` is not"),
        (document("", "", "").replace("\"devices\": [],", ""), "missing field `devices`"),
        (String::new(), "EOF"),
        ("[]".to_owned(), "expected an object"),
        (document("[0, 1]", "", ""), "expected an object"),
    ];
    for (text, expected) in cases {
        let (_, _, reason) = refusal(&text);
        assert!(reason.contains(expected), "{reason:?} lacks {expected:?}");
        assert!(reason.contains(';'), "{reason:?} has no remedy");
    }
    let refused = [
        (r#"{"from": 1, "to": 1, "kind": "pix"}"#, "leads to itself"),
        (r#"{"from": 0, "to": 1, "kind": {"nvlink": {"links": 0}}}"#, "zero links"),
        (r#"{"from": 0, "to": 1, "kind": "pcx"}"#, "unknown variant `pcx`"),
        (r#"{"from": 0, "to": 1, "kind": {"nvlink": {"link": 3}}}"#, "unknown field `link`"),
        (r#"{"from": 0, "to": 1, "kind": "pix", "to": 0}"#, "duplicate field"),
        (r#"{"from": 0, "to": 1, "kind": "pix", "latency_us": [1, 2]}"#, "expected an object"),
    ];
    for (connection, expected) in refused {
        let (_, _, reason) = refused_connection(connection);
        assert!(reason.contains(expected), "{reason:?} lacks {expected:?}");
    }
}

#[test]
fn switches_are_read_with_their_links() {
    let text = r#"{
        "format": "hopwise-topology", "version": 1, "devices": [{"index": 4}],
        "switches": [{"index": 0}, {"index": 1}],
        "switch_links": [
            {"from": {"device": 4}, "to": {"switch": 1}, "both_ways": true,
             "kind": {"nvswitch": {"links": 18}}},
            {"from": {"switch": 0}, "to": {"switch": 1}, "kind": "unknown"}
        ]
    }"#;
    let topology = GpuTopology::from_json(text).unwrap();
    let switch = SwitchId::new;
    assert_eq!(topology.switches().collect::<Vec<_>>(), [switch(0), switch(1)]);
    assert!(topology.switch_link(switch(1), 4).is_some());
    assert!(topology.switch_link(switch(0), switch(1)).is_some());
    assert!(topology.switch_link(switch(1), switch(0)).is_none());
}

#[test]
fn what_switches_cannot_be_is_refused() {
    let refused = |switches: &str, links: &str, expected: &str| {
        let text = format!(
            "{{\"format\": \"hopwise-topology\", \"version\": 1,\n\
             \"devices\": [{{\"index\": 0}}, {{\"index\": 1}}],\n\
             \"switches\": [{switches}],\n\"switch_links\": [{links}]\n}}"
        );
        let (line, _, reason) = refusal(&text);
        assert_eq!(line, if links.is_empty() { 3 } else { 4 }, "{reason}");
        assert!(reason.contains(expected) && reason.contains(';'), "{reason:?}");
    };
    let one = r#"{"index": 0}"#;
    refused(r#"{"index": 1}"#, "", "switch 1 stands where switch 0 was expected");
    refused(r#"{"index": 0}, {"index": 0}"#, "", "switch 0 stands where switch 1 was expected");
    refused("3", "", "expected an object");
    refused(r#"{"index": 0, "name": "x"}"#, "", "unknown field `name`");
    let link = |from: &str, to: &str| format!(r#"{{"from": {from}, "to": {to}, "kind": "pix"}}"#);
    let (device, switch) = (r#"{"device": 0}"#, r#"{"switch": 0}"#);
    refused(one, &link(device, r#"{"switch": 4000000000}"#), "switch 4000000000 is not in");
    refused(one, &link(r#"{"device": 7}"#, switch), "device 7 is not in");
    refused(one, &link(device, r#"{"device": 1}"#), "no switch at either end");
    refused(one, &link(switch, switch), "leads to itself");
    refused(one, &link("0", switch), "expected");
    refused(one, &link(r#"{"host": 0}"#, switch), "unknown variant `host`");
    let twice = link(device, switch);
    refused(one, &format!("{twice}, {twice}"), "from device 0 to switch 0 is given twice");
    let peers =
        r#"{"from": {"device": 0}, "to": {"switch": 0}, "kind": "pix", "peer_access": true}"#;
    refused(one, peers, "unknown field `peer_access`");
}

fn figure() -> impl Strategy<Value = Figure> {
    let value = prop_oneof![f64::MIN_POSITIVE..1.0, 1.0..1e6, 1e300..f64::MAX];
    prop_oneof![
        Just(Figure::unknown()),
        (value.clone(), any::<u64>()).prop_map(|(v, at)| Figure::measured(v, at).unwrap()),
        (value.clone(), ".*").prop_map(|(v, by)| Figure::reported(v, by).unwrap()),
        (value, ".*").prop_map(|(v, rule)| Figure::estimated(v, rule).unwrap()),
    ]
}

fn kind() -> impl Strategy<Value = InterconnectType> {
    use InterconnectType as Kind;
    let (generation, links) = (|| any::<Option<u8>>(), 1_u16..);
    prop_oneof![
        (generation(), links.clone())
            .prop_map(|(generation, links)| Kind::NvLink { generation, links }),
        (generation(), links.clone())
            .prop_map(|(generation, links)| Kind::NvSwitch { generation, links }),
        links.clone().prop_map(|links| Kind::InfinityFabric { links }),
        links.prop_map(|links| Kind::XeLink { links }),
        (generation(), prop::option::of(1_u8..))
            .prop_map(|(generation, lanes)| Kind::Pcie { generation, lanes }),
        prop::sample::select(vec![
            Kind::XeLinkIndirect,
            Kind::TileFabric,
            Kind::NvLinkC2c,
            Kind::PcieSwitch,
            Kind::PcieSwitches,
            Kind::HostBridge,
            Kind::Node,
            Kind::System,
            Kind::HostMemory,
            Kind::Unknown,
        ]),
    ]
}

fn connection() -> impl Strategy<Value = GpuConnection> {
    (0_usize..5, 0_usize..5, kind(), figure(), figure(), any::<bool>()).prop_map(
        |(from, to, kind, bandwidth, latency, peer_access)| {
            GpuConnection::new(from, to, kind)
                .with_bandwidth(bandwidth)
                .with_latency(latency)
                .with_peer_access(peer_access)
        },
    )
}

fn host_link() -> impl Strategy<Value = HostLink> {
    (0_usize..5, kind(), figure(), figure(), figure(), figure()).prop_map(
        |(device, kind, a, b, c, d)| HostLink {
            device,
            kind,
            to_host: crate::LinkFigures { bandwidth: a, latency: b },
            from_host: crate::LinkFigures { bandwidth: c, latency: d },
        },
    )
}

/// How many switches, and links at them, of which some lead nowhere.
fn switches() -> impl Strategy<Value = (usize, Vec<SwitchLink>)> {
    let end = || {
        prop_oneof![
            (0_usize..5).prop_map(End::Device),
            (0_usize..3).prop_map(|number| End::Switch(SwitchId::new(number))),
        ]
    };
    let link = (end(), end(), kind(), figure(), figure()).prop_map(
        |(from, to, kind, bandwidth, latency)| {
            SwitchLink::new(from, to, kind).with_bandwidth(bandwidth).with_latency(latency)
        },
    );
    (0_usize..4, prop::collection::vec(link, 0..8))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_written_is_read_back_equal(
        numa_nodes in prop::collection::vec(any::<Option<u32>>(), 5),
        connections in prop::collection::vec(connection(), 0..12),
        host_links in prop::collection::vec(host_link(), 0..4),
        (switches, switch_links) in switches(),
    ) {
        let mut topology = GpuTopology::new(0..5);
        for (device, numa_node) in numa_nodes.into_iter().enumerate() {
            topology.set_numa_node(device, numa_node).unwrap();
        }
        for link in connections.into_iter().filter(|link| link.from != link.to) {
            topology.set_connection(link).unwrap();
        }
        for link in host_links {
            topology.set_host_link(link).unwrap();
        }
        for _ in 0..switches {
            topology.add_switch();
        }
        for link in switch_links {
            let _ = topology.set_switch_link(link);
        }
        let text = topology.to_json();
        let read = GpuTopology::from_json(&text).unwrap();
        prop_assert_eq!(&read, &topology);
        prop_assert_eq!(read.to_json(), text);
    }

    #[test]
    fn no_text_makes_reading_panic(cut in 0.0..1.0_f64, inserted in ".{0,6}") {
        let text = document(
            r#"{"index": 0}, {"index": 1}"#,
            r#"{"device": 0, "kind": {"pcie": {}}}"#,
            r#"{"from": 0, "to": 1, "kind": "pix", "latency_us": {"value": 1, "reported_by": "x"}}"#,
        );
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a rough position in a short ASCII text"
        )]
        let at = (text.len() as f64 * cut) as usize;
        let _ = GpuTopology::from_json(&text[..at]);
        let _ = GpuTopology::from_json(&format!("{}{inserted}{}", &text[..at], &text[at..]));
    }
}
