//! A source with its name.

use crate::{Format, Node, Observations, Reading};

/// What a source says, and which source it is.
pub(super) struct Said<'a> {
    pub(super) format: Format,
    pub(super) observations: &'a Observations,
}

impl<'a> Said<'a> {
    pub(super) const fn new(reading: &'a Reading) -> Self {
        Self { format: reading.format, observations: &reading.observations }
    }

    pub(super) fn node(&self, position: usize) -> &'a Node {
        &self.observations.nodes[position]
    }

    /// The text with the source's name before it, if there are other sources.
    pub(super) fn attributed(&self, text: &str, sources: usize) -> String {
        if sources > 1 { format!("{}: {text}", self.format) } else { text.to_owned() }
    }
}
