//! Figures of links that no source states.

use crate::estimate::rules;
use crate::{Figure, InterconnectType, NodeKind, Observations, Quality};

/// Gives each link an estimate where a rule has one, and none stands there that is better.
pub(super) fn estimate(all: &mut Observations) {
    let totals = nvlinks_of_each(all);
    for at in 0..all.links.len() {
        let (bandwidth, latency) = figures_of(all, &totals, at);
        let link = &mut all.links[at];
        if link.bandwidth.quality() <= Quality::Estimated && !bandwidth.is_unknown()
            || bandwidth.quality() > link.bandwidth.quality()
        {
            link.bandwidth = bandwidth;
        }
        if link.latency.quality() <= Quality::Estimated && !latency.is_unknown() {
            link.latency = latency;
        }
    }
}

/// How many NVLinks each node is known to have.
fn nvlinks_of_each(all: &Observations) -> Vec<u16> {
    let mut totals: Vec<u16> = all.nodes.iter().map(|node| node.nvlinks_up.unwrap_or(0)).collect();
    let mut counted = vec![0_u16; all.nodes.len()];
    for link in &all.links {
        if let InterconnectType::NvLink { links, .. } = link.kind {
            counted[link.from] = counted[link.from].saturating_add(links);
        }
    }
    for (total, counted) in totals.iter_mut().zip(counted) {
        *total = (*total).max(counted);
    }
    totals
}

/// Bandwidth and latency of a link by the rules.
fn figures_of(all: &Observations, totals: &[u16], at: usize) -> (Figure, Figure) {
    let link = &all.links[at];
    let ends = [link.from, link.to].map(|end| &all.nodes[end]);
    let architecture = || ends.iter().find_map(|node| node.architecture.as_deref());
    let is_half_a_hop = ends.iter().any(|node| node.kind == NodeKind::NvSwitch);
    match link.kind {
        InterconnectType::NvLink { generation, links } => {
            let rates = ends.iter().map(|node| &node.nvlink_gb_per_s);
            let stated = rates.into_iter().find(|rate| !rate.is_unknown());
            let total =
                totals[link.from].min(if is_half_a_hop { u16::MAX } else { totals[link.to] });
            let generation = generation.or_else(|| rules::nvlink_generation(architecture()?));
            let bandwidth = match (stated, generation) {
                (Some(rate), _) => rules::times(rate, links),
                (None, Some(generation)) => rules::nvlink_of_generation(generation, links),
                (None, None) => rules::nvlink_at_least(links, total),
            };
            (bandwidth, rules::nvlink_latency(is_half_a_hop))
        }
        InterconnectType::InfinityFabric { links } => {
            (rules::xgmi(architecture(), links), Figure::unknown())
        }
        InterconnectType::NvLinkC2c => (rules::c2c(), Figure::unknown()),
        InterconnectType::System if ends.iter().all(|node| node.kind == NodeKind::NumaNode) => {
            (rules::sockets(architecture()), Figure::unknown())
        }
        kind => (kind.estimated_bandwidth(), kind.estimated_latency()),
    }
}
