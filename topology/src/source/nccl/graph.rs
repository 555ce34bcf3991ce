//! Graph dumps: the rings and trees that NCCL laid through a machine.

use std::collections::BTreeSet;

use super::super::xml::Element;
use super::attributes::{decimal, number};
use crate::{ChannelGraph, Node, NodeKind, Observations, Tool};

/// Reads a `<graphs>`.
pub(super) fn read(graphs: &Element, observed: &mut Observations) {
    for graph in graphs.children_named("graph") {
        let id: Option<u32> = number(graph, "id", observed);
        let pattern: Option<u32> = number(graph, "pattern", observed);
        let (Some(id), Some(pattern)) = (id, pattern) else {
            observed.warn(graph.line, "a graph without its id or pattern is left out");
            continue;
        };
        let channels = channels(graph, observed);
        let text = |attribute: &str| {
            graph.attribute(attribute).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let read = ChannelGraph {
            id,
            pattern,
            intra_gb_per_s: decimal(graph, "speedintra", observed),
            inter_gb_per_s: decimal(graph, "speedinter", observed),
            intra_class: text("typeintra"),
            inter_class: text("typeinter"),
            channels,
        };
        observed.channel_graphs.push(read);
    }
    add_nodes(graphs, observed);
}

fn channels(graph: &Element, observed: &mut Observations) -> Vec<Vec<String>> {
    let mut channels = Vec::new();
    for channel in graph.children_named("channel") {
        let labels: Vec<Option<String>> =
            channel.children.iter().filter_map(|stop| label(stop, observed)).collect();
        let is_whole = channel.closed && !channel.doubtful;
        match labels.into_iter().collect::<Option<Vec<_>>>() {
            Some(labels) if is_whole => channels.push(labels),
            _ => observed.warn(channel.line, "a channel that is not whole is left out"),
        }
    }
    let stated: Option<usize> = number(graph, "nchannels", observed);
    if stated.is_some_and(|stated| stated != channels.len()) || !graph.closed || graph.doubtful {
        let text = format!("{} channels of this graph are read, which are not all", channels.len());
        observed.warn(graph.line, text);
    }
    channels
}

/// The label of what a channel passes; nothing within if it has no number.
fn label(stop: &Element, observed: &mut Observations) -> Option<Option<String>> {
    let prefix = match stop.name.as_str() {
        "gpu" => "GPU",
        "net" => "NET",
        _ => return None,
    };
    let number: Option<u64> = number(stop, "dev", observed);
    Some(number.map(|number| format!("{prefix}{number}")))
}

/// Adds the GPUs and networks that channels pass, unless they are there.
fn add_nodes(graphs: &Element, observed: &mut Observations) {
    let mut passed = BTreeSet::new();
    let channels = graphs.children_named("graph").flat_map(|graph| graph.children_named("channel"));
    for stop in channels.flat_map(|channel| &channel.children) {
        let kind = match stop.name.as_str() {
            "gpu" => NodeKind::Gpu,
            "net" => NodeKind::Nic,
            _ => continue,
        };
        let number = stop.attribute("dev").and_then(super::attributes::parse_number);
        passed.extend(number.map(|number| (kind, number)));
    }
    let label = |node: &Node| node.label(Tool::Nccl).map(str::to_owned);
    let known: BTreeSet<String> = observed.nodes.iter().filter_map(label).collect();
    for (kind, number) in passed {
        let prefix = if kind == NodeKind::Gpu { "GPU" } else { "NET" };
        let name = format!("{prefix}{number}");
        if !known.contains(&name) {
            observed.add_node(Node::new(kind).labelled(Tool::Nccl, name));
        }
    }
}
