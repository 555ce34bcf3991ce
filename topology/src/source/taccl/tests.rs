//! Profiles, sketches and stored topologies, in order and damaged.

use proptest::prelude::{any, proptest};

use super::{read, recognizes};
use crate::{Format, InterconnectType, NodeKind, Observations, Statement, Tool, read_text};

const PROFILE: &str = r#"{
    "name": "Small_1MB",
    "gpus_per_node": 3,
    "nics_per_node": 2,
    "alpha": 0.5,
    "node_betas_list": [20],
    "node_invbws_list": [20.5],
    "remote_alpha": 2.0,
    "remote_beta": 100,
    "remote_invbw": 102
}"#;

const SKETCH: &str = r#"{
    "nnodes": 2,
    "intranode_sketch": {
        "strategy": "switch",
        "switches": [[0, 1, 2, 3]],
        "switch_hyperedge_strategy": ["uc-min"]
    },
    "internode_sketch": {
        "strategy": "relay",
        "internode_conn": {"1": [0], "3": [2]},
        "gpus_to_sender_rev_map": {"1": [0, 1], "3": [2, 3]}
    },
    "symmetry_offsets": [[2, 4], [4, 8]],
    "hyperparameters": {"input_chunkup": 2}
}"#;

fn count(observed: &Observations, kind: NodeKind) -> usize {
    observed.nodes.iter().filter(|node| node.kind == kind).count()
}

/// All bandwidths of pairs, as shown.
fn bandwidths(observed: &Observations) -> Vec<String> {
    let show = |statement: &Statement| match statement {
        Statement::Bandwidth(figure) => figure.to_string(),
        other => panic!("{other:?}"),
    };
    observed.pairs.iter().map(|pair| show(&pair.statement)).collect()
}

#[test]
fn a_profile_states_gpus_nics_and_costs() {
    let observed = read(PROFILE).unwrap();
    assert_eq!(observed.warnings, []);
    assert_eq!((count(&observed, NodeKind::Gpu), count(&observed, NodeKind::Nic)), (3, 2));
    assert_eq!(observed.nodes[2].label(Tool::Profile), Some("GPU2"));
    assert_eq!(observed.nodes[4].label(Tool::Profile), Some("NIC1"));
    assert_eq!(observed.nodes[4].network_gb_per_s.to_string(), "=10");
    assert_eq!(bandwidths(&observed), ["=50"; 6]);
    assert_eq!(observed.links, []);
}

#[test]
fn costs_of_other_messages_are_no_bandwidths() {
    for name in ["Small_1KB", "Small_32KB", "Small-2MB"] {
        let observed = read(&PROFILE.replace("Small_1MB", name)).unwrap();
        assert_eq!((bandwidths(&observed).len(), observed.warnings.len()), (0, 1), "{name}");
        assert!(observed.nodes[4].network_gb_per_s.is_unknown());
    }
    for name in ["Small", "DGX2_MB", "Small_1mb"] {
        let observed = read(&PROFILE.replace("Small_1MB", name)).unwrap();
        assert_eq!(bandwidths(&observed).len(), 6, "{name}");
    }
}

#[test]
fn costs_of_unnamed_pairs_are_left_out() {
    let observed = read(&PROFILE.replace("[20]", "[20, 40]")).unwrap();
    assert_eq!((bandwidths(&observed).len(), observed.warnings.len()), (0, 1));
    // A whole transfer takes alpha and beta.
    let observed = read(&PROFILE.replace("\"node_betas_list\": [20],", "")).unwrap();
    assert_eq!(bandwidths(&observed), ["=50"; 6]);
}

#[test]
fn a_matrix_states_links_by_destination_and_source() {
    let text = r#"{"name": "custom", "gpus_per_node": 2, "alpha": 0.7, "nics_per_node": -1,
        "links": [[1, 2], [0, 0]], "betas": [[0, 40], [0, 0]], "invbws": [[0, 40.7], [0, 0]]}"#;
    let observed = read(text).unwrap();
    assert_eq!(observed.warnings, []);
    let [link] = &observed.links[..] else { panic!("{observed:?}") };
    assert_eq!((link.from, link.to, link.kind), (1, 0, InterconnectType::Unknown));
    assert_eq!(
        (link.bandwidth.to_string(), link.latency.to_string()),
        ("=25".into(), "=0.7".into())
    );
    let observed = read(&text.replace("[0, 0]], \"betas\"", "[0]], \"betas\"")).unwrap();
    assert_eq!((observed.links.len(), observed.warnings.len()), (0, 1));
}

#[test]
fn a_sketch_states_switches_and_relays_of_equal_machines() {
    let observed = read(SKETCH).unwrap();
    assert_eq!(observed.warnings, []);
    assert_eq!((count(&observed, NodeKind::Gpu), count(&observed, NodeKind::NvSwitch)), (8, 2));
    let is_gpu = |at: usize| observed.nodes[at].kind == NodeKind::Gpu;
    let between: Vec<_> = observed
        .links
        .iter()
        .filter(|link| is_gpu(link.from) && is_gpu(link.to))
        .map(|link| (link.from, link.to))
        .collect();
    assert_eq!(between, [(1, 4), (3, 6), (5, 0), (7, 2)]);
    for (machine, switch) in [8, 9].into_iter().enumerate() {
        let from: Vec<_> = observed.links.iter().filter(|link| link.to == switch).collect();
        let gpus: Vec<_> = from.iter().map(|link| link.from).collect();
        assert_eq!(gpus, (machine * 4..machine * 4 + 4).collect::<Vec<_>>());
        assert_eq!(observed.links.iter().filter(|link| link.from == switch).count(), 4);
    }
    assert!(observed.links.iter().all(|link| link.kind == InterconnectType::Unknown));
}

#[test]
fn what_stands_there_twice_counts_once_and_too_much_is_left_out() {
    let observed = read(&SKETCH.replace("[0, 1, 2, 3]", "[0, 1, 1, 0]").replace("[2]", "[2, 2]"));
    let observed = observed.unwrap();
    assert_eq!((observed.links.len(), observed.warnings.len()), (2 * 4 + 4, 0));
    let many = format!("[{}[0]]", "[0, 1], ".repeat(100_000));
    let observed = read(&SKETCH.replace("[[0, 1, 2, 3]]", &many)).unwrap();
    assert_eq!((count(&observed, NodeKind::NvSwitch), observed.warnings.len()), (0, 1));
}

#[test]
fn a_sketch_may_name_its_connections_by_a_word() {
    let count = |word: &str| {
        let named = SKETCH.replace(r#"{"1": [0], "3": [2]}"#, word);
        let observed = read(&named).unwrap();
        let relays = observed.links.iter().filter(|link| link.from < 8 && link.to < 8).count();
        (relays, observed.warnings.len())
    };
    assert_eq!(count("\"direct-map\""), (8, 0));
    assert_eq!(count("\"fully-connected\""), (32, 0));
    assert_eq!(count("\"ring\""), (0, 1));
    assert_eq!(count(r#"{"1": [0], "x": [2], "2": 3}"#), (2, 2));
}

#[test]
fn gpus_that_a_sketch_does_not_name_are_not_made_up() {
    let sketch = |between: &str, rest: &str| {
        format!(
            r#"{{"nnodes": 2, "intranode_sketch": {{"strategy": "none"}},
            "internode_sketch": {{"strategy": "relay", "internode_conn": {between}}} {rest}}}"#
        )
    };
    let observed = read(&sketch(r#"{"0": [1]}"#, r#", "symmetry_offsets": [[8, 16]]"#)).unwrap();
    assert_eq!((observed.nodes.len(), observed.warnings.len()), (16, 0));
    let observed = read(&sketch(r#"{"0": [1]}"#, "")).unwrap();
    assert_eq!((observed.nodes.len(), observed.warnings.len()), (4, 1));
    assert!(read(&sketch("\"direct-map\"", "")).is_err());
}

#[test]
fn stored_topologies_are_read_with_or_without_their_algorithm() {
    let topology = r#"{"msccl_type": "topology", "name": "t", "switches": [],
        "links": [[0, 1], [2, 0]]}"#;
    let algorithm = format!(r#"{{"msccl_type": "algorithm", "topology": {topology}}}"#);
    let of_taccl = r#"{"sccl_type": "topology", "copies": 2, "ngpus_per_node": 2,
        "node_links": [[0, 1], [1, 0]], "internode_conn": {"0": [1]}, "local_switches": [[0, 1]]}"#;
    for (text, nodes, links) in [(topology, 2, 2), (&algorithm, 2, 2), (of_taccl, 6, 4 + 8 + 2)] {
        assert!(recognizes(text));
        let observed = read(text).unwrap();
        assert_eq!((observed.nodes.len(), observed.links.len()), (nodes, links), "{text}");
        assert_eq!(observed.warnings, []);
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_its_line() {
    let line = |text: &str| read(text).unwrap_err().line();
    assert_eq!(line(&PROFILE[..60]), Some(4));
    assert_eq!(line(&PROFILE.replace("0.5,", "0.5, \"alpha\": 1,")), Some(5));
    assert_eq!(line(&format!("log\n\n{}", PROFILE.replace("[20]", "[20"))), Some(9));
    assert_eq!(line(&PROFILE.replace("3,", "4000000000,")), None);
    assert!(read(&SKETCH.replace("3]]", "300]]")).unwrap_err().to_string().contains("512"));
    assert!(read("").is_err() && read("[]").is_err() && read("{}").is_err());
    assert!(!recognizes("{\"format\": \"hopwise-topology\"}"));
}

#[test]
fn a_paste_around_the_file_does_not_matter() {
    let text = format!("$ cat topo.json\n```\n{PROFILE}\n```\n");
    let readings = read_text(&text, None).unwrap();
    assert_eq!(readings.len(), 1);
    assert_eq!((readings[0].format, readings[0].observations.nodes.len()), (Format::Msccl, 5));
}

proptest! {
    #[test]
    fn damage_is_read_or_refused(
        is_sketch in any::<bool>(),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<proptest::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut bytes = if is_sketch { SKETCH } else { PROFILE }.as_bytes().to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let text = String::from_utf8_lossy(&bytes);
        if let Ok(observed) = read(&text) {
            let nodes = observed.nodes.len();
            assert!(observed.links.iter().all(|link| link.from < nodes && link.to < nodes));
            assert!(observed.links.iter().all(|link| link.from != link.to));
        }
    }
}
