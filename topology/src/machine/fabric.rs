//! Links that follow from what sources say about pairs.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Figure, InterconnectType, Link, Node, NodeKind, Observations, Statement};

/// NVLinks of one GPU, at most, in any generation so far (vendor data: 18 in generations 4 and 5).
const MOST_NVLINKS: u16 = 18;

/// Adds a link for each pair of GPUs that a source says is joined by a fabric, unless there is one.
pub(super) fn add_implied_links(all: &mut Observations) {
    let stated = stated_fabrics(all);
    let through_switch = gpus_behind_a_switch(all, &stated);
    let linked: BTreeSet<(usize, usize)> = all
        .links
        .iter()
        .filter(|link| is_fabric(link.kind))
        .map(|link| (link.from, link.to))
        .collect();
    for (&(from, to), &class) in &stated {
        let behind = through_switch.contains_key(&from) && through_switch.contains_key(&to);
        let is_nvlink = matches!(class, InterconnectType::NvLink { .. });
        if linked.contains(&(from, to)) || (is_nvlink && (behind || share_switch(all, from, to))) {
            warn_if_counts_differ(all, from, to, class);
            continue;
        }
        all.links.push(link(from, to, class));
    }
    add_switch(all, &through_switch);
}

const fn is_fabric(kind: InterconnectType) -> bool {
    matches!(
        kind,
        InterconnectType::NvLink { .. }
            | InterconnectType::NvSwitch { .. }
            | InterconnectType::InfinityFabric { .. }
            | InterconnectType::XeLink { .. }
            | InterconnectType::TileFabric
    )
}

const fn link(from: usize, to: usize, kind: InterconnectType) -> Link {
    Link { from, to, kind, bandwidth: Figure::unknown(), latency: Figure::unknown() }
}

/// Ordered pairs of GPUs that a source says are joined by a fabric, without a stop between.
fn stated_fabrics(all: &Observations) -> BTreeMap<(usize, usize), InterconnectType> {
    let is_far = |from, to| {
        all.pairs.iter().any(|pair| {
            (pair.from, pair.to) == (from, to)
                && matches!(pair.statement, Statement::Hops(hops) if hops > 1)
        })
    };
    let is_gpu = |at: usize| all.nodes[at].kind == NodeKind::Gpu;
    let classes = all.pairs.iter().filter_map(|pair| match pair.statement {
        Statement::Class(class) if is_fabric(class) => Some(((pair.from, pair.to), class)),
        _ => None,
    });
    classes.filter(|&((from, to), _)| is_gpu(from) && is_gpu(to) && !is_far(from, to)).collect()
}

/// GPUs of which NVLinks to each of several peers are stated, and more than one GPU has: they are
/// the same links, through a switch. With the most links stated to one peer.
fn gpus_behind_a_switch(
    all: &Observations,
    stated: &BTreeMap<(usize, usize), InterconnectType>,
) -> BTreeMap<usize, u16> {
    let mut counts: BTreeMap<usize, (u32, u16)> = BTreeMap::new();
    for (&(from, to), &class) in stated {
        if let (InterconnectType::NvLink { links, .. }, false) =
            (class, share_switch(all, from, to))
        {
            let (sum, most) = counts.entry(from).or_default();
            *sum += u32::from(links);
            *most = (*most).max(links);
        }
    }
    let has_too_many = |gpu: usize, sum: u32| {
        sum > u32::from(all.nodes[gpu].nvlinks_up.filter(|&up| up > 0).unwrap_or(MOST_NVLINKS))
    };
    let behind = counts.into_iter().filter(|&(gpu, (sum, _))| has_too_many(gpu, sum));
    behind.map(|(gpu, (_, most))| (gpu, most)).collect()
}

/// Whether both are linked to one NVSwitch.
fn share_switch(all: &Observations, a: usize, b: usize) -> bool {
    let switches = |from: usize| {
        let links = all.links.iter().filter(move |link| link.from == from);
        links.map(|link| link.to).filter(|&to| all.nodes[to].kind == NodeKind::NvSwitch)
    };
    switches(a).any(|switch| switches(b).any(|other| other == switch))
}

fn add_switch(all: &mut Observations, behind: &BTreeMap<usize, u16>) {
    if behind.is_empty() {
        return;
    }
    let known = all.nodes.iter().position(|node| node.kind == NodeKind::NvSwitch);
    let implied = || Node { is_implied: true, ..Node::new(NodeKind::NvSwitch) };
    let switch = known.unwrap_or_else(|| all.add_node(implied()));
    for (&gpu, &links) in behind {
        if all.links.iter().any(|link| (link.from, link.to) == (gpu, switch)) {
            continue;
        }
        all.add_link_both(link(gpu, switch, InterconnectType::NvLink { generation: None, links }));
    }
}

/// A warning where a source counts other links than a link has.
fn warn_if_counts_differ(all: &mut Observations, from: usize, to: usize, class: InterconnectType) {
    let direct = all.links.iter().find(|link| (link.from, link.to) == (from, to));
    let Some(have) = direct.and_then(|link| link.kind.link_count()) else { return };
    let Some(said) = class.link_count() else { return };
    // Infinity Fabric is said to be there without a count.
    if have != said && matches!(class, InterconnectType::NvLink { .. }) && from < to {
        let name = |at: usize| {
            let node = &all.nodes[at];
            node.labels.first().map_or_else(|| format!("node {at}"), |label| label.name.clone())
        };
        let text = format!(
            "{} and {} are joined by {have} links by one source, but by {said} by another",
            name(from),
            name(to)
        );
        all.warn(None, text);
    }
}
