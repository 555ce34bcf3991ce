//! Facts about the recorded profiles and sketches of TACCL.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use hopwise_topology::{
    Format, InterconnectType, NodeKind, Observations, Quality, Statement, Tool,
};

use crate::{Case, Outcome};

pub(crate) const CASES: &[Case] = &[
    ("msccl/taccl-dgx2-1mb-profile.json", dgx2_profile),
    ("msccl/taccl-sketch-dgx2-2node.json", dgx2_sketch),
];

fn clean(outcome: &Outcome) -> &Observations {
    let readings = outcome.as_ref().unwrap();
    assert_eq!((readings.len(), readings[0].format), (1, Format::Msccl));
    assert_eq!(readings[0].observations.warnings, []);
    &readings[0].observations
}

/// The positions of the nodes of a kind.
fn all(observed: &Observations, kind: NodeKind) -> Vec<usize> {
    (0..observed.nodes.len()).filter(|&at| observed.nodes[at].kind == kind).collect()
}

fn dgx2_profile(outcome: &Outcome) {
    let observed = clean(outcome);
    assert_eq!(all(observed, NodeKind::Gpu), (0..16).collect::<Vec<_>>());
    assert_eq!(all(observed, NodeKind::Nic).len(), 8);
    assert_eq!(observed.nodes[15].label(Tool::Profile), Some("GPU15"));
    assert_eq!(observed.pairs.len(), 16 * 15);
    for pair in &observed.pairs {
        let Statement::Bandwidth(figure) = &pair.statement else { panic!("{pair:?}") };
        // 8 us for each MB.
        assert_eq!((figure.value(), figure.quality()), (Some(125.0), Quality::Reported));
    }
    // 105 us for each MB, of the NICs.
    let network = &observed.nodes[all(observed, NodeKind::Nic)[0]].network_gb_per_s;
    assert_eq!(network.to_string(), "=9.524");
    assert_eq!(observed.links, []);
}

fn dgx2_sketch(outcome: &Outcome) {
    let observed = clean(outcome);
    assert_eq!(all(observed, NodeKind::Gpu), (0..32).collect::<Vec<_>>());
    // One switch of 16 in each of the two machines.
    let switches = all(observed, NodeKind::NvSwitch);
    assert_eq!(switches.len(), 2);
    for (machine, &switch) in switches.iter().enumerate() {
        let from: Vec<usize> =
            observed.links.iter().filter(|link| link.to == switch).map(|link| link.from).collect();
        assert_eq!(from, (machine * 16..machine * 16 + 16).collect::<Vec<_>>());
    }
    let between: Vec<_> = observed
        .links
        .iter()
        .filter(|link| link.from < 32 && link.to < 32)
        .map(|link| (link.from, link.to))
        .collect();
    assert_eq!(between.len(), 16);
    for sender in (1..16).step_by(2) {
        assert!(between.contains(&(sender, 16 + sender - 1)));
        assert!(between.contains(&(16 + sender, sender - 1)));
    }
    assert!(observed.links.iter().all(|link| link.kind == InterconnectType::Unknown));
}
