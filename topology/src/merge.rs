//! Several sources about one machine, joined.
//!
//! Nodes are one where they have the same PCI address or UUID, or the same label of the same tool.
//! Of several figures the one of better quality stands; where equally good sources say different
//! things, the first in a fixed order of formats stands, and a warning names both. The result
//! does not depend on the order in which the sources are given.

use crate::{Format, Observations, Reading};
use identity::Groups;
use said::Said;

mod fields;
mod identity;
mod relations;
mod said;
#[cfg(test)]
pub(crate) mod tests;

/// Joins readings of one machine.
pub(crate) fn merge(readings: &[Reading]) -> Observations {
    let readings = canonical(readings);
    let sources: Vec<Said<'_>> = readings.into_iter().map(Said::new).collect();
    let mut merged = Observations::default();
    for source in &sources {
        for warning in &source.observations.warnings {
            merged.warnings.push(crate::SourceWarning {
                line: warning.line,
                text: source.attributed(&warning.text, sources.len()),
            });
        }
        merged.channel_graphs.extend(source.observations.channel_graphs.iter().cloned());
    }
    let groups = Groups::of(&sources, &mut merged);
    fields::merge(&sources, &groups, &mut merged);
    relations::merge(&sources, &groups, &mut merged);
    merged
}

/// The nodes of two descriptions of one machine, side by side; `None` where one has no such node.
pub(crate) fn side_by_side(
    old: &Observations,
    new: &Observations,
) -> Vec<(Option<usize>, Option<usize>)> {
    let sources = [old, new].map(|observations| Said { format: Format::Json, observations });
    let groups = Groups::of(&sources, &mut Observations::default());
    let member = |members: &[(usize, usize)], source| {
        members.iter().find(|member| member.0 == source).map(|member| member.1)
    };
    groups.members.iter().map(|group| (member(group, 0), member(group, 1))).collect()
}

/// The readings in an order that depends on what they say alone; each once.
fn canonical(readings: &[Reading]) -> Vec<&Reading> {
    let mut keyed: Vec<_> = readings
        .iter()
        .map(|reading| {
            // A text of all that is said gives an order where the formats are the same.
            let text = serde_json::to_string(&reading.observations).unwrap_or_default();
            ((reading.format, text), reading)
        })
        .collect();
    keyed.sort_by(|(a, _), (b, _)| a.cmp(b));
    keyed.dedup_by(|(a, _), (b, _)| a == b);
    keyed.into_iter().map(|(_, reading)| reading).collect()
}
