//! Which adapter or GPU each device of a list is on.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::{Kind, Wanted};

#[cfg(test)]
mod tests;

/// A logical device of an adapter or GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) card: Card,
    /// Counts the devices on that card, whatever name it was asked for by.
    pub(super) logical: usize,
}

/// Something that devices can be on, by its place in its backend's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Card {
    /// An adapter of wgpu.
    Wgpu(usize),
    /// A GPU of the CUDA driver.
    Cuda(usize),
}

/// The place of each device, in their order; none for host devices. Devices of one kind go to the
/// cards that it fits, one after the other and around again. `fitting` tells those cards, at least
/// one.
///
/// # Errors
///
/// Those of `fitting`.
pub(super) fn places<E>(
    devices: &[Wanted],
    fitting: impl Fn(&Kind) -> Result<Vec<Card>, E>,
) -> Result<Vec<Option<Place>>, E> {
    let mut cards = HashMap::new();
    for kind in devices.iter().map(|wanted| &wanted.kind).filter(|kind| **kind != Kind::Host) {
        if let Entry::Vacant(unasked) = cards.entry(kind) {
            unasked.insert(fitting(kind)?.into_iter().cycle());
        }
    }
    let mut counts = HashMap::new();
    let mut place = |wanted: &Wanted| {
        let card = cards.get_mut(&wanted.kind)?.next()?;
        let count = counts.entry(card).or_insert(0);
        let logical = *count;
        *count += 1;
        Some(Place { card, logical })
    };
    Ok(devices.iter().map(&mut place).collect())
}
