//! Short lists, stored end to end, of which equal ones are stored once.

/// How many lists are remembered while others are added, so that an equal one can share their
/// place. More would share more, and be slower.
const REMEMBERED: usize = 1 << 12;

/// Instead of a number, where there is nothing.
pub(super) const NONE: u32 = u32::MAX;

/// Places, labels and items are numbered in 32 bits to keep tables small.
pub(super) fn number(at: usize) -> u32 {
    u32::try_from(at).expect("a table of 2^32 entries does not fit into memory")
}

/// What a list holds.
pub(super) trait Item: Copy {
    /// Two items are equal if their bits are.
    fn bits(&self) -> [u64; 3];
}

impl Item for u32 {
    fn bits(&self) -> [u64; 3] {
        [u64::from(*self), 0, 0]
    }
}

/// Adds lists.
pub(super) struct Lists<T> {
    items: Vec<T>,
    /// By hash: where a list starts that was added lately.
    remembered: Vec<u32>,
}

impl<T: Item> Lists<T> {
    pub(super) fn new() -> Self {
        Self { items: Vec::new(), remembered: vec![NONE; REMEMBERED] }
    }

    /// Where the items of this list stand in a row; `NONE` if it is empty.
    pub(super) fn add(&mut self, list: &[T]) -> u32 {
        if list.is_empty() {
            return NONE;
        }
        let remembered = &mut self.remembered[slot_of(list)];
        let stored = self.items.get(*remembered as usize..).unwrap_or_default();
        let is_stored = stored.len() >= list.len()
            && stored.iter().zip(list).all(|(stored, item)| stored.bits() == item.bits());
        if !is_stored {
            *remembered = number(self.items.len());
            self.items.extend_from_slice(list);
        }
        *remembered
    }

    /// All items that were stored.
    pub(super) fn into_items(mut self) -> Vec<T> {
        self.items.shrink_to_fit();
        self.items
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the remainder is small")]
fn slot_of<T: Item>(list: &[T]) -> usize {
    // Multiplication by an odd number loses no bits; the rotation brings the high ones, which depend
    // on all below, to where the next multiplication spreads them.
    let mix =
        |hash: u64, bits: u64| (hash ^ bits).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    let hash = list.iter().flat_map(Item::bits).fold(0, mix);
    (hash % REMEMBERED as u64) as usize
}
