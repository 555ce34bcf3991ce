//! Statements that agree, and statements that do not.

use super::*;
use crate::{Figure, Node, NodeKind, PeerStatus, Tool};

/// What stands of some claims between three GPUs, and the warnings.
fn finish(claims: &[(usize, usize, Statement)]) -> (Vec<Pair>, Vec<String>) {
    let mut observations = Observations::default();
    for name in ["GPU0", "GPU1", "GPU2"] {
        observations.add_node(Node::new(NodeKind::Gpu).labelled(Tool::RocmSmi, name));
    }
    let mut all = Claims::default();
    for ((from, to, statement), line) in claims.iter().zip(1..) {
        all.add(*from, *to, statement.clone(), line);
    }
    all.finish(&mut observations);
    let warnings = observations.warnings.iter().map(ToString::to_string).collect();
    (observations.pairs, warnings)
}

#[test]
fn a_statement_repeated_is_made_once() {
    let (pairs, warnings) = finish(&[
        (0, 1, Statement::Hops(2)),
        (0, 1, Statement::Hops(2)),
        (1, 0, Statement::Hops(2)),
    ]);
    assert_eq!(pairs.len(), 2);
    assert_eq!(pairs[0].line, Some(1));
    assert!(warnings.is_empty());
}

#[test]
fn of_two_statements_that_differ_neither_stands() {
    let hops = |hops| (0, 1, Statement::Hops(hops));
    let (pairs, warnings) = finish(&[hops(1), hops(2), hops(1), (0, 1, Statement::Weight(15))]);
    assert_eq!(pairs.len(), 1);
    assert_eq!(
        warnings,
        ["line 1: from GPU0 to GPU1 stands 1 hops, but also 2 hops (line 2); neither is taken"]
    );
    // What contradicts itself does not contradict the other direction.
    let (pairs, _) = finish(&[hops(1), hops(2), (1, 0, Statement::Hops(1))]);
    assert_eq!(pairs.len(), 1);
}

#[test]
fn kinds_of_links_are_mutual_and_access_is_not() {
    let class = |kind| Statement::Class(kind);
    let (pairs, warnings) = finish(&[
        (0, 1, class(InterconnectType::System)),
        (1, 0, class(InterconnectType::Node)),
        (0, 2, class(InterconnectType::System)),
        (2, 0, class(InterconnectType::Unknown)),
    ]);
    assert_eq!(pairs.len(), 2);
    assert_eq!(
        warnings,
        ["line 1: from GPU0 to GPU1 stands SYS, but back NODE (line 2); neither is taken"]
    );
    let peer = |status| Statement::Peer { capability: PeerCapability::Read, status };
    let bandwidth = |value| Statement::Bandwidth(Figure::reported(value, "test").unwrap());
    let (pairs, warnings) = finish(&[
        (0, 1, peer(PeerStatus::Supported)),
        (1, 0, peer(PeerStatus::NotSupported)),
        (0, 1, bandwidth(50.0)),
        (1, 0, bandwidth(25.0)),
    ]);
    assert_eq!(pairs.len(), 4);
    assert!(warnings.is_empty());
}
