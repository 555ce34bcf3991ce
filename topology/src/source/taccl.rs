//! TACCL's profiles and sketches of machines, and the topologies that TACCL and MSCCL store, in
//! JSON.
//!
//! A profile states how many GPUs and NICs a machine has and what a transfer costs: `alpha`
//! microseconds and `beta` microseconds for each megabyte, so that 1000 / `beta` is GB/s. A sketch
//! states, for several equal machines, which GPUs share a switch and which of them send to other
//! machines. What the fields mean is taken from TACCL's `INPUT_GUIDE.md` and
//! `taccl/topologies`.

use serde::Deserialize;
use serde_json::Value;

use super::{Format, SourceError};
use crate::Observations;

mod machines;
mod profile;
mod sketch;
#[cfg(test)]
mod tests;

/// The source that figures of these files name.
const SOURCE: &str = "TACCL profile";

/// All fields that are read, of whatever type they are. One that stands there twice is an error.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Document {
    name: Value,
    // Of a profile.
    gpus_per_node: Value,
    nics_per_node: Value,
    alpha: Value,
    node_betas_list: Value,
    node_invbws_list: Value,
    betas: Value,
    invbws: Value,
    remote_beta: Value,
    // Of a sketch.
    nnodes: Value,
    intranode_sketch: Value,
    internode_sketch: Value,
    symmetry_offsets: Value,
    // Of a stored topology; a profile may have links too.
    #[serde(alias = "sccl_type")]
    msccl_type: Value,
    topology: Value,
    #[serde(alias = "node_links")]
    links: Value,
    copies: Value,
    internode_conn: Value,
    local_switches: Value,
}

/// Whether the text looks like it.
pub(super) fn recognizes(text: &str) -> bool {
    let has = |key: &str| text.contains(key);
    let is_stored = has("\"msccl_type\"") || has("\"sccl_type\"");
    has("\"gpus_per_node\"")
        || has("\"intranode_sketch\"")
        || has("\"internode_sketch\"")
        || is_stored && has("\"topology\"")
}

/// Reads it.
pub(super) fn read(text: &str) -> Result<Observations, SourceError> {
    let start = text.find('{').unwrap_or(0);
    let end = text.rfind('}').map_or(text.len(), |end| end + 1).max(start);
    let refuse = |error: &serde_json::Error| {
        let line = text[..start].matches('\n').count() + error.line();
        SourceError::new(Format::Msccl, line, format!("{error}; give the whole file"))
    };
    let mut document: Document =
        serde_json::from_str(&text[start..end]).map_err(|error| refuse(&error))?;
    if document.topology.is_object() {
        // An algorithm, stored with the topology that it was made for.
        document = serde_json::from_value(document.topology).map_err(|error| refuse(&error))?;
    }
    let is_sketch = !document.intranode_sketch.is_null() || !document.internode_sketch.is_null();
    if is_sketch {
        sketch::read(&document)
    } else if document.gpus_per_node.is_null() {
        sketch::read_stored(&document)
    } else {
        profile::read(&document)
    }
}

/// A number that is positive and no more than `most`.
fn count(value: &Value, most: usize) -> Option<usize> {
    let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
    number.filter(|number| (1..=most).contains(number))
}

fn refusal(reason: impl Into<String>) -> SourceError {
    SourceError::new(Format::Msccl, None, reason)
}
