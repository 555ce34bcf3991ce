//! Names that several devices of one file have say nothing about any of them.

use std::collections::BTreeMap;

use crate::{Label, Observations};

/// Removes UUIDs and labels that more than one node has.
pub(super) fn remove(observed: &mut Observations) {
    let mut uuids: BTreeMap<String, usize> = BTreeMap::new();
    let mut labels: BTreeMap<Label, usize> = BTreeMap::new();
    for node in &observed.nodes {
        if let Some(uuid) = &node.uuid {
            *uuids.entry(uuid.clone()).or_default() += 1;
        }
        for label in &node.labels {
            *labels.entry(label.clone()).or_default() += 1;
        }
    }
    uuids.retain(|_, count| *count > 1);
    labels.retain(|_, count| *count > 1);
    for node in &mut observed.nodes {
        node.uuid = node.uuid.take().filter(|uuid| !uuids.contains_key(uuid));
        node.labels.retain(|label| !labels.contains_key(label));
    }
    for uuid in uuids.keys() {
        observed.warn(None, format!("several devices have the UUID {uuid}; it is left out"));
    }
    for label in labels.keys() {
        observed.warn(None, format!("several devices are called {}; it is left out", label.name));
    }
}
