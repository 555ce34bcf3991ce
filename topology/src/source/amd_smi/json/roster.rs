//! The GPUs of a document, found by number, by address, or by both.

use std::collections::BTreeMap;

use super::super::Gpu;
use crate::{PciAddress, SourceWarning};

/// The GPUs that have objects of their own.
#[derive(Debug, Default)]
pub(super) struct Roster {
    gpus: Vec<Gpu>,
    by_number: BTreeMap<u32, usize>,
    by_address: BTreeMap<PciAddress, usize>,
}

impl Roster {
    /// Of objects that share one of number and address, but not the other, none is listed: one of
    /// them is damaged.
    pub(super) fn new(
        objects: impl Iterator<Item = (Gpu, usize)>,
        warnings: &mut Vec<SourceWarning>,
    ) -> Self {
        let objects: Vec<(Gpu, usize)> = objects.collect();
        let mut numbers = Partners::default();
        let mut addresses = Partners::default();
        for (gpu, _) in &objects {
            numbers.note(gpu.number, gpu.pci);
            addresses.note(gpu.pci, gpu.number);
        }
        let is_single = |gpu: &Gpu| numbers.is_one(gpu.number) && addresses.is_one(gpu.pci);
        let mut roster = Self::default();
        for (gpu, line) in &objects {
            if is_single(gpu) {
                roster.list(gpu);
            } else {
                let text = "another GPU has the same number or address; both are left out";
                warnings.push(SourceWarning { line: Some(*line), text: text.to_owned() });
            }
        }
        roster
    }

    fn list(&mut self, gpu: &Gpu) {
        let is_known = gpu.number.is_some() || gpu.pci.is_some();
        if !is_known || self.find(gpu).is_some() {
            return;
        }
        let position = self.gpus.len();
        self.by_number.extend(gpu.number.map(|number| (number, position)));
        self.by_address.extend(gpu.pci.map(|pci| (pci, position)));
        self.gpus.push(gpu.clone());
    }

    /// The position of a GPU; none unless all that is said about it leads to the same one.
    pub(super) fn find(&self, gpu: &Gpu) -> Option<usize> {
        let by_number = gpu.number.map(|number| self.by_number.get(&number).copied());
        let by_address = gpu.pci.map(|pci| self.by_address.get(&pci).copied());
        match (by_number, by_address) {
            (Some(number), Some(address)) => number.filter(|_| number == address),
            (Some(found), None) | (None, Some(found)) => found,
            (None, None) => None,
        }
    }

    pub(super) fn into_gpus(self) -> Vec<Gpu> {
        self.gpus
    }
}

/// With what each number occurs, or each address.
#[derive(Debug)]
struct Partners<K, P> {
    /// The first partner, and whether it is the only one.
    of_each: BTreeMap<K, (Option<P>, bool)>,
}

impl<K, P> Default for Partners<K, P> {
    fn default() -> Self {
        Self { of_each: BTreeMap::new() }
    }
}

impl<K: Ord, P: PartialEq> Partners<K, P> {
    fn note(&mut self, key: Option<K>, partner: Option<P>) {
        let Some(key) = key else { return };
        let Some((first, is_one)) = self.of_each.get_mut(&key) else {
            self.of_each.insert(key, (partner, true));
            return;
        };
        *is_one = *is_one && *first == partner;
    }

    fn is_one(&self, key: Option<K>) -> bool {
        let found = key.and_then(|key| self.of_each.get(&key));
        found.is_none_or(|(_, is_one)| *is_one)
    }
}
