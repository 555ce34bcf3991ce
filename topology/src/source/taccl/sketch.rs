//! Sketches: which GPUs share a switch, and which send to other machines. Stored topologies say
//! the same with a matrix of links.

use serde_json::Value;

use super::machines::{MOST_GPUS, Machines};
use super::{Document, count, refusal};
use crate::{Figure, Observations, SourceError};

/// Reads a sketch. It says how many machines there are, and of the GPUs only how they are used.
pub(super) fn read(document: &Document) -> Result<Observations, SourceError> {
    let inside = &document.intranode_sketch;
    let between = &document.internode_sketch;
    let Some(machines) = count(&document.nnodes, MOST_GPUS) else {
        return Err(refusal(format!(
            "nnodes is no number from 1 to {MOST_GPUS}; state how many machines there are"
        )));
    };
    let has_switches = inside["strategy"] == "switch";
    let switches = if has_switches { &inside["switches"] } else { &Value::Null };
    let relays = &between["internode_conn"];
    let by_symmetry = gpus_by_symmetry(&document.symmetry_offsets, machines);
    let named = [switches, relays, &between["gpus_to_sender_rev_map"]].map(gpus_named);
    let gpus = named.into_iter().chain(by_symmetry).max().unwrap_or(0);
    if gpus == 0 {
        return Err(refusal(
            "the sketch names no GPU; give the profile of the machine that it is for",
        ));
    }
    let mut built = Machines::new(machines, gpus)?;
    if by_symmetry.is_none() && gpus_named(switches) == 0 {
        let text =
            "the sketch does not say how many GPUs there are; there may be more than it names";
        built.observed.warn(None, text);
    }
    built.add_switches(switches);
    if machines > 1 {
        built.add_relays(relays);
    }
    Ok(built.observed)
}

/// Reads a topology that TACCL or MSCCL has stored.
pub(super) fn read_stored(document: &Document) -> Result<Observations, SourceError> {
    let Some(rows) = document.links.as_array() else {
        return Err(refusal(
            "it holds no matrix of links; give a profile, a sketch or a stored topology",
        ));
    };
    let machines =
        if document.copies.is_null() { Some(1) } else { count(&document.copies, MOST_GPUS) };
    let Some(machines) = machines else {
        return Err(refusal(format!("copies is no number from 1 to {MOST_GPUS}")));
    };
    let mut built = Machines::new(machines, rows.len())?;
    built.add_links(&document.links, |_, _| (Figure::unknown(), Figure::unknown()));
    built.add_switches(&document.local_switches);
    if machines > 1 {
        built.add_relays(&document.internode_conn);
    }
    Ok(built.observed)
}

/// GPUs of a machine: what looks the same after a step of one machine, within a group of all
/// machines.
fn gpus_by_symmetry(offsets: &Value, machines: usize) -> Option<usize> {
    let pairs = offsets.as_array().into_iter().flatten();
    let steps = pairs.filter_map(|pair| {
        let step = count(&pair[0], MOST_GPUS)?;
        let group = count(&pair[1], MOST_GPUS)?;
        match machines {
            1 => Some(group),
            _ => (step.checked_mul(machines) == Some(group)).then_some(step),
        }
    });
    steps.max()
}

/// One more than the highest number in it; 0 if there is none.
fn gpus_named(value: &Value) -> usize {
    match value {
        Value::Number(number) => {
            let number = number.as_u64().and_then(|number| usize::try_from(number).ok());
            number.map_or(0, |number| number.saturating_add(1))
        }
        Value::Array(values) => values.iter().map(gpus_named).max().unwrap_or(0),
        Value::Object(entries) => {
            let named = |(key, value): (&String, &Value)| {
                let key: usize = key.parse().map_or(0, |key: usize| key.saturating_add(1));
                key.max(gpus_named(value))
            };
            entries.iter().map(named).max().unwrap_or(0)
        }
        _ => 0,
    }
}
