//! The kernels of one device, in order of arrival: adding and removing cost O(1), listing costs
//! the length.
//!
//! A linked list inside a vector. An entry never moves, so a kernel's record can keep its position.

use crate::id::KernelId;

/// Ends a chain.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Entry {
    kernel: KernelId,
    previous: u32,
    /// The next entry of the list, or of the chain of free entries.
    next: u32,
}

/// See the module.
#[derive(Debug)]
pub(super) struct KernelList {
    entries: Vec<Entry>,
    first: u32,
    last: u32,
    first_free: u32,
    length: usize,
}

impl KernelList {
    pub(super) const fn new() -> Self {
        Self { entries: Vec::new(), first: NONE, last: NONE, first_free: NONE, length: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Adds a kernel at the end and returns its position.
    pub(super) fn push(&mut self, kernel: KernelId) -> u32 {
        let entry = Entry { kernel, previous: self.last, next: NONE };
        let position = self.store(entry);
        match self.last {
            NONE => self.first = position,
            last => self.entries[last as usize].next = position,
        }
        self.last = position;
        self.length += 1;
        position
    }

    fn store(&mut self, entry: Entry) -> u32 {
        if self.first_free == NONE {
            let position = u32::try_from(self.entries.len())
                .ok()
                .filter(|&position| position != NONE)
                .expect("a device takes fewer than 2^28 kernels");
            self.entries.push(entry);
            return position;
        }
        let position = self.first_free;
        let free = &mut self.entries[position as usize];
        self.first_free = free.next;
        *free = entry;
        position
    }

    /// Removes the kernel at this position, which [`push`](Self::push) returned for it.
    pub(super) fn remove(&mut self, position: u32, kernel: &KernelId) {
        let entry = &mut self.entries[position as usize];
        debug_assert_eq!(entry.kernel, *kernel, "a record and its list agree on positions");
        let (previous, next) = (entry.previous, entry.next);
        entry.next = self.first_free;
        self.first_free = position;
        match previous {
            NONE => self.first = next,
            previous => self.entries[previous as usize].next = next,
        }
        match next {
            NONE => self.last = previous,
            next => self.entries[next as usize].previous = previous,
        }
        self.length -= 1;
        if self.length == 0 {
            // Memory of a peak is not kept for ever.
            *self = Self { entries: std::mem::take(&mut self.entries), ..Self::new() };
            self.entries.clear();
            self.entries.shrink_to(64);
        }
    }

    /// The kernels, in order of arrival.
    pub(super) fn to_vec(&self) -> Vec<KernelId> {
        let mut kernels = Vec::with_capacity(self.length);
        let mut position = self.first;
        while position != NONE {
            let entry = &self.entries[position as usize];
            kernels.push(entry.kernel);
            position = entry.next;
        }
        kernels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_arrival_survives_removals() {
        let ids: Vec<_> = (0..6).map(|number| KernelId::new(format!("k{number}"))).collect();
        let mut list = KernelList::new();
        let mut positions: Vec<_> = ids[..5].iter().map(|&id| list.push(id)).collect();
        for gone in [2, 0, 4] {
            list.remove(positions[gone], &ids[gone]);
        }
        assert_eq!(list.to_vec(), [ids[1], ids[3]]);
        positions[0] = list.push(ids[0]);
        positions.push(list.push(ids[5]));
        assert_eq!(list.to_vec(), [ids[1], ids[3], ids[0], ids[5]]);
        for left in [3, 1, 5, 0] {
            list.remove(positions[left], &ids[left]);
        }
        assert!(list.is_empty());
        assert_eq!(list.to_vec(), []);
        let again = list.push(ids[2]);
        assert_eq!((again, list.len()), (0, 1));
    }
}
