//! The numbers that tell the open logical devices of one adapter apart.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::health::DeviceHealth;

/// Which numbers are in use, since the adapter was opened first or anew after a loss.
#[derive(Debug, Default)]
pub struct Numbers {
    taken: Mutex<BTreeSet<usize>>,
}

/// A number in use. Dropped it is free again, unless its device is lost: what a lost device owns is
/// left behind and stays what it was.
#[derive(Debug)]
pub struct Number {
    numbers: Arc<Numbers>,
    health: DeviceHealth,
    value: usize,
}

impl Numbers {
    /// Takes the listed number, or the first free one that is a multiple of `count` above it.
    ///
    /// # Panics
    ///
    /// When more devices are open than numbers exist.
    #[must_use]
    pub fn take(self: &Arc<Self>, listed: usize, count: usize, health: &DeviceHealth) -> Number {
        let mut taken = self.taken.lock();
        let mut candidates = (listed..).step_by(count);
        let value = candidates.find(|number| taken.insert(*number)).expect("devices are few");
        Number { numbers: Arc::clone(self), health: health.clone(), value }
    }
}

impl Number {
    /// The number.
    #[must_use]
    pub fn value(&self) -> usize {
        self.value
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        if self.health.is_working() {
            self.numbers.taken.lock().remove(&self.value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::DeviceError;

    #[test]
    fn a_number_is_free_again_after_a_drop_but_not_after_a_loss() {
        let (numbers, health) = (Arc::new(Numbers::default()), DeviceHealth::new());
        let take = |listed| numbers.take(listed, 2, &health);
        let [first, second, again] = [take(0), take(1), take(1)];
        assert_eq!([&first, &second, &again].map(Number::value), [0, 1, 3]);
        drop(second);
        assert_eq!(take(1).value(), 1);
        assert_eq!(take(1).value(), 1);
        drop(again);
        health.latch(DeviceError::Lost { cause: "a test".to_owned() });
        drop(first);
        assert_eq!(take(0).value(), 2);
    }
}
