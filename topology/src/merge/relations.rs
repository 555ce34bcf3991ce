//! The links and pairs of the merged machine.

use std::collections::BTreeMap;

use super::fields::first_or_warn;
use super::identity::Groups;
use super::said::Said;
use crate::{
    Figure, Format, InterconnectType, Link, Observations, Pair, PeerCapability, Statement,
};

/// Adds the links and pairs that the sources state.
pub(super) fn merge(sources: &[Said<'_>], groups: &Groups, merged: &mut Observations) {
    merge_links(sources, groups, merged);
    merge_pairs(sources, groups, merged);
}

fn merge_links(sources: &[Said<'_>], groups: &Groups, merged: &mut Observations) {
    let mut stated = BTreeMap::<_, Vec<(Format, &Link)>>::new();
    for (number, said) in sources.iter().enumerate() {
        for link in &said.observations.links {
            let from = groups.group((number, link.from));
            let to = groups.group((number, link.to));
            if from != to {
                let key = (from, to, link.kind.family());
                stated.entry(key).or_default().push((said.format, link));
            }
        }
    }
    for ((from, to, _), links) in stated {
        let what = format!("the link from {} to {}", name(merged, from), name(merged, to));
        let kinds = links.iter().map(|(format, link)| (*format, link.kind)).collect();
        let kind = merge_kinds(&what, kinds, merged);
        let mut figure = |what: &str, figure: fn(&Link) -> &Figure| {
            let figures = links.iter().map(|(format, link)| (*format, figure(link))).collect();
            merge_figures(what, figures, merged)
        };
        let bandwidth = figure(&format!("the bandwidth of {what}"), |link| &link.bandwidth);
        let latency = figure(&format!("the latency of {what}"), |link| &link.latency);
        merged.links.push(Link { from, to, kind, bandwidth, latency });
    }
}

/// The first kind; the generation may come from another source.
fn merge_kinds(
    what: &str,
    kinds: Vec<(Format, InterconnectType)>,
    merged: &mut Observations,
) -> InterconnectType {
    let known = kinds.iter().find_map(|&(_, kind)| kind.generation());
    let filled = kinds.into_iter().map(|(format, kind)| (format, kind.or_generation(known)));
    first_or_warn(what, filled.collect(), merged).unwrap_or(InterconnectType::Unknown)
}

/// The figure of the best quality; a warning for each other one that is as good and differs.
fn merge_figures(what: &str, figures: Vec<(Format, &Figure)>, merged: &mut Observations) -> Figure {
    let best = figures.iter().map(|(_, figure)| figure.quality()).max();
    let as_good: Vec<_> =
        figures.into_iter().filter(|(_, figure)| Some(figure.quality()) == best).collect();
    let values =
        as_good.iter().filter_map(|(format, figure)| Some((*format, figure.value()?))).collect();
    first_or_warn(what, values, merged);
    as_good.first().map(|(_, figure)| (*figure).clone()).unwrap_or_default()
}

/// Statements about a pair with the same subject can contradict each other.
fn subject(statement: &Statement) -> (Option<PeerCapability>, u8) {
    match statement {
        Statement::Class(_) => (None, 0),
        Statement::Peer { capability, .. } => (Some(*capability), 1),
        Statement::Hops(_) => (None, 2),
        Statement::Weight(_) => (None, 3),
        Statement::Bandwidth(_) => (None, 4),
        Statement::Latency(_) => (None, 5),
    }
}

fn merge_pairs(sources: &[Said<'_>], groups: &Groups, merged: &mut Observations) {
    let mut stated = BTreeMap::<_, Vec<(Format, &Pair)>>::new();
    for (number, said) in sources.iter().enumerate() {
        for pair in &said.observations.pairs {
            let from = groups.group((number, pair.from));
            let to = groups.group((number, pair.to));
            if from != to {
                let key = (from, to, subject(&pair.statement));
                stated.entry(key).or_default().push((said.format, pair));
            }
        }
    }
    for ((from, to, _), pairs) in stated {
        let what = format!("from {} to {}", name(merged, from), name(merged, to));
        let line = pairs[0].1.line.filter(|_| sources.len() == 1);
        let statement = merge_statements(&what, &pairs, merged);
        merged.pairs.push(Pair { from, to, statement, line });
    }
}

fn merge_statements(what: &str, pairs: &[(Format, &Pair)], merged: &mut Observations) -> Statement {
    match &pairs[0].1.statement {
        Statement::Bandwidth(_) => {
            Statement::Bandwidth(merge_stated(&format!("the bandwidth {what}"), pairs, merged))
        }
        Statement::Latency(_) => {
            Statement::Latency(merge_stated(&format!("the latency {what}"), pairs, merged))
        }
        Statement::Class(_) => Statement::Class(merge_classes(what, pairs, merged)),
        // Weights and hops are in each tool's own units, so they cannot contradict.
        other @ (Statement::Hops(_) | Statement::Weight(_)) => other.clone(),
        other @ Statement::Peer { .. } => {
            let said = pairs.iter().map(|(format, pair)| (*format, pair.statement.clone()));
            let said = first_or_warn(&format!("peer access {what}"), said.collect(), merged);
            said.unwrap_or_else(|| other.clone())
        }
    }
}

/// Of figures that are stated about a pair, all of one kind.
fn merge_stated(what: &str, pairs: &[(Format, &Pair)], merged: &mut Observations) -> Figure {
    let figures = pairs.iter().filter_map(|(format, pair)| match &pair.statement {
        Statement::Bandwidth(figure) | Statement::Latency(figure) => Some((*format, figure)),
        _ => None,
    });
    merge_figures(what, figures.collect(), merged)
}

/// The first class that says more than "some PCIe".
fn merge_classes(
    what: &str,
    pairs: &[(Format, &Pair)],
    merged: &mut Observations,
) -> InterconnectType {
    let classes = || {
        pairs.iter().filter_map(|(format, pair)| match pair.statement {
            Statement::Class(class) => Some((*format, class)),
            _ => None,
        })
    };
    let says_more = |class: InterconnectType| {
        !matches!(class, InterconnectType::Pcie { .. } | InterconnectType::Unknown)
    };
    let telling: Vec<_> = classes().filter(|&(_, class)| says_more(class)).collect();
    let vague = classes().next().map_or(InterconnectType::Unknown, |(_, class)| class);
    first_or_warn(&format!("the class {what}"), telling, merged).unwrap_or(vague)
}

fn name(merged: &Observations, position: usize) -> String {
    let node = &merged.nodes[position];
    match (node.labels.first(), node.pci) {
        (Some(label), _) => label.name.clone(),
        (None, Some(pci)) => pci.to_string(),
        (None, None) => format!("node {position}"),
    }
}
