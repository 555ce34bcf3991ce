//! Labels: the ways that a search has found, each with its cost.

use super::cost::Cost;
use super::links::Hop;
use super::lists::number;
use crate::Quality;

/// A way to one place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Label {
    pub(super) cost: Cost,
    pub(super) place: u32,
    /// The label that this one extends; that of the source, which is the first, extends itself.
    pub(super) previous: u32,
    pub(super) quality: Quality,
    /// Whether no other label of the place is as good in everything.
    pub(super) is_best: bool,
}

impl Label {
    pub(super) fn at_source(source: usize) -> Self {
        Self {
            cost: Cost::NOTHING,
            place: number(source),
            previous: 0,
            quality: Quality::Measured,
            is_best: true,
        }
    }

    /// The way that goes on from this one, which has the number `id`.
    pub(super) fn extended(&self, id: u32, hop: &Hop) -> Self {
        Self {
            cost: self.cost.and(hop),
            place: hop.to,
            previous: id,
            quality: self.quality.min(hop.quality),
            is_best: true,
        }
    }
}
