//! Which adapter each device of a list is on.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use hopwise_backend_wgpu::AdapterFilter;

use super::{Kind, Wanted};

#[cfg(test)]
mod tests;

/// A logical device of an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The adapter's index among those of the machine.
    pub(super) adapter: usize,
    /// Counts the devices on that adapter, whatever name it was asked for by.
    pub(super) logical: usize,
}

/// The place of each device, in their order; none for host devices. Devices with one filter go to
/// the adapters that it fits, one after the other and around again. `fitting` tells those adapters,
/// at least one.
///
/// # Errors
///
/// Those of `fitting`.
pub(super) fn places<E>(
    devices: &[Wanted],
    fitting: impl Fn(Option<&AdapterFilter>) -> Result<Vec<usize>, E>,
) -> Result<Vec<Option<Place>>, E> {
    let mut adapters = HashMap::new();
    for filter in devices.iter().filter_map(filter_of) {
        if let Entry::Vacant(unasked) = adapters.entry(filter) {
            unasked.insert(fitting(filter)?.into_iter().cycle());
        }
    }
    let mut counts = HashMap::new();
    let mut place = |wanted| {
        let adapter = adapters.get_mut(&filter_of(wanted)?)?.next()?;
        let count = counts.entry(adapter).or_insert(0);
        let logical = *count;
        *count += 1;
        Some(Place { adapter, logical })
    };
    Ok(devices.iter().map(&mut place).collect())
}

/// What names the adapter, where the device is on one.
fn filter_of(wanted: &Wanted) -> Option<Option<&AdapterFilter>> {
    match &wanted.kind {
        Kind::Host => None,
        Kind::Wgpu(filter) => Some(filter.as_ref()),
    }
}
