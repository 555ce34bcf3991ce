//! NCCL's and RCCL's topology files and graph dumps, in XML.
//!
//! What the elements and attributes mean is taken from NCCL 2.30 (`src/graph/xml.cc` and
//! `topo.cc`) and RCCL's additions to it. Only what a file states is read: bandwidths that NCCL
//! derives from it are estimates, and not made here.

use super::xml::{self, Document, Element};
use super::{Format, SourceError};
use crate::Observations;
use machine::Machine;

mod attributes;
mod card;
mod claims;
mod graph;
mod links;
mod listing;
mod machine;
mod nvlink;
mod repeated;
#[cfg(test)]
mod tests;

/// Whether the text looks like it.
pub(super) fn recognizes(text: &str) -> bool {
    let has = |name: &str| {
        text.match_indices(name).any(|(at, _)| {
            let next = text[at + name.len()..].chars().next();
            next.is_some_and(|next| next.is_whitespace() || "/>".contains(next))
        })
    };
    let has_part = || ["<cpu", "<pci", "<gpu", "<nic"].into_iter().any(has);
    has("<system") && has_part()
        || has("<graphs") && has("<graph")
        || has("<cpu") && has("<pci") && text.contains("busid")
}

/// Reads it.
pub(super) fn read(text: &str) -> Result<Observations, SourceError> {
    let mut document = xml::parse_embedded(text, &["system", "graphs"]);
    if document.roots.is_empty() {
        document = fragments(text);
    }
    let Document { roots, warnings } = document;
    let mut observed = Observations { warnings, ..Observations::default() };
    let system = only(&roots, "system", &mut observed);
    let graphs = only(&roots, "graphs", &mut observed);
    if let Some(group) = system.and_then(|system| system.children_named("group").next()) {
        return Err(SourceError::new(
            Format::NcclXml,
            group.line,
            "this is not an NCCL topology: it lists groups of numbered GPUs for several machines \
             to choose from; give the file that NCCL_TOPO_DUMP_FILE writes on the machine itself",
        ));
    }
    if let Some(system) = system {
        Machine::read(system, &mut observed);
    }
    if let Some(graphs) = graphs {
        graph::read(graphs, &mut observed);
    }
    if observed.nodes.is_empty() && observed.channel_graphs.is_empty() {
        return Err(SourceError::new(
            Format::NcclXml,
            system.or(graphs).map(|root| root.line),
            "no device and no channel is in it; give the file that NCCL_TOPO_DUMP_FILE or \
             NCCL_GRAPH_DUMP_FILE writes",
        ));
    }
    Ok(observed)
}

/// The first element of this name: a text with several is about several machines, or about one
/// several times.
fn only<'a>(roots: &'a [Element], name: &str, observed: &mut Observations) -> Option<&'a Element> {
    let mut named = roots.iter().filter(|root| root.name == name);
    let first = named.next()?;
    for other in named {
        let text = format!("another <{name}> starts here, which is not read; give it by itself");
        observed.warn(other.line, text);
    }
    Some(first)
}

/// A topology of which the start is missing: what is left, as if it had one.
fn fragments(text: &str) -> Document {
    let Document { roots, mut warnings } = xml::parse_embedded(text, &["cpu"]);
    let Some(first) = roots.first() else { return Document { roots, warnings } };
    let mut system = Element::default();
    system.name.push_str("system");
    system.line = first.line;
    warnings.push(crate::SourceWarning {
        line: Some(first.line),
        text: "the text does not start with <system>; what stood before is missing".to_owned(),
    });
    system.children = roots;
    system.closed = true;
    Document { roots: vec![system], warnings }
}
