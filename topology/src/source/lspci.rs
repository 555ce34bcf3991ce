//! `lspci -tv`: the PCI tree with names, without classes and NUMA nodes.

use std::collections::{BTreeMap, BTreeSet};

use super::pci_tree::PciTree;
use super::{Format, SourceError};
use crate::{Node, NodeKind, Observations};
use drawing::Drawing;
use functions::Endpoint;
use product::Product;

mod drawing;
mod functions;
mod ids;
mod product;
#[cfg(test)]
mod tests;
mod token;

/// Whether the text looks like it.
pub(super) fn recognizes(text: &str) -> bool {
    text.lines().any(|line| token::root_bus(line).is_some())
}

/// Reads it.
pub(super) fn read(text: &str) -> Result<Observations, SourceError> {
    let mut observed = Observations::default();
    let mut listings: Vec<(Drawing<'_>, Observations)> = listings(text)
        .iter()
        .map(|lines| {
            let mut observed = Observations::default();
            (Drawing::of(lines, &mut observed), observed)
        })
        .collect();
    let best = (0..listings.len()).max_by_key(|&at| {
        let functions = &listings[at].0.functions;
        let named = functions.iter().filter(|function| !function.name.is_empty()).count();
        // The first of equals.
        (named, functions.len(), std::cmp::Reverse(at))
    });
    let Some((drawing, drawn)) = best.map(|best| listings.swap_remove(best)) else {
        return Err(SourceError::new(
            Format::Lspci,
            None,
            "there is no tree of PCI buses in it; give what `lspci -tv` prints",
        ));
    };
    if !listings.is_empty() {
        observed.warn(None, "the tree is there several times; the one with most names is read");
    }
    observed.warnings.extend(drawn.warnings);
    add_nodes(&drawing, &mut observed);
    Ok(observed)
}

/// The lines of each listing of the tree, with their numbers. A listing may have several trees,
/// one a domain; where a root bus comes again, another listing begins.
fn listings(text: &str) -> Vec<Vec<(usize, &str)>> {
    let mut listings: Vec<Vec<(usize, &str)>> = Vec::new();
    let mut seen = BTreeSet::new();
    for (line, number) in text.lines().zip(1..) {
        if let Some(bus) = token::root_bus(line) {
            let is_new = seen.insert(bus);
            if !is_new {
                seen = BTreeSet::from([bus]);
            }
            if !is_new || listings.is_empty() {
                listings.push(Vec::new());
            }
        }
        if let Some(lines) = listings.last_mut() {
            lines.push((number, line));
        }
    }
    listings
}

fn add_nodes(drawing: &Drawing<'_>, observed: &mut Observations) {
    let mut tree = PciTree::default();
    let endpoints = functions::endpoints(drawing, &mut tree, observed);
    let products = products(drawing, &endpoints);
    let of_kind = |kind| {
        let all = endpoints.iter().zip(&products);
        all.filter(move |(_, product)| product.as_ref().is_some_and(|p| p.kind == kind))
    };
    for kind in [NodeKind::Gpu, NodeKind::Nic, NodeKind::NvSwitch, NodeKind::PciDevice] {
        for (endpoint, product) in of_kind(kind) {
            let mut node = Node::new(kind);
            node.pci = Some(endpoint.address);
            node.model = product.as_ref().and_then(|product| product.model.clone());
            let position = observed.add_node(node);
            if let Some(place) = endpoint.place {
                observed.nodes[position].parent = Some(tree.node(place, observed));
            }
        }
    }
}

/// What each endpoint is. Virtual functions beside the function that they are of are left out.
fn products(drawing: &Drawing<'_>, endpoints: &[Endpoint<'_>]) -> Vec<Option<Product>> {
    let has_names = drawing.functions.iter().any(|function| !function.name.is_empty());
    let mut products: Vec<Option<Product>> =
        endpoints.iter().map(|endpoint| product(endpoint, has_names)).collect();
    let mut by_bus: BTreeMap<(u32, u8), Vec<usize>> = BTreeMap::new();
    for (at, endpoint) in endpoints.iter().enumerate().filter(|(_, e)| !e.is_on_root_bus) {
        by_bus.entry((endpoint.address.domain, endpoint.address.bus)).or_default().push(at);
    }
    for on_bus in by_bus.into_values() {
        let kind_of = |at: usize| products[at].as_ref().map(|product| product.kind);
        let first_gpu = on_bus.iter().find(|&&at| kind_of(at) == Some(NodeKind::Gpu)).copied();
        let is_virtual = |at: usize| endpoints[at].name.contains("Virtual Function");
        let has_nic =
            on_bus.iter().any(|&at| kind_of(at) == Some(NodeKind::Nic) && !is_virtual(at));
        let left_out: Vec<usize> = on_bus
            .into_iter()
            .filter(|&at| match kind_of(at) {
                // Below a bridge a card is one device; others of its name are virtual.
                Some(NodeKind::Gpu) => first_gpu
                    .is_some_and(|gpu| gpu != at && endpoints[gpu].name == endpoints[at].name),
                Some(NodeKind::Nic) => has_nic && is_virtual(at),
                _ => false,
            })
            .collect();
        for at in left_out {
            products[at] = None;
        }
    }
    products
}

fn product(endpoint: &Endpoint<'_>, has_names: bool) -> Option<Product> {
    if endpoint.name.is_empty() {
        // Without names the tree itself is what is known. What sits on a root bus is mostly the
        // processor's own. Where others have names, the line was cut.
        return (!has_names && !endpoint.is_on_root_bus)
            .then_some(Product { kind: NodeKind::PciDevice, model: None });
    }
    product::of(endpoint.name, endpoint.address.function, endpoint.is_on_root_bus)
}
