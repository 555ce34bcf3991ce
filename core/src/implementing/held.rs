//! Driver objects that are dropped only while their device works.

use std::fmt;
use std::mem;
use std::ops::Deref;

use crate::health::DeviceHealth;

/// Owns something of a driver. Once the device is lost or does not respond it is left behind
/// instead of dropped: dropping can wait for as long as a step runs that never ends.
pub struct Held<T> {
    value: Option<T>,
    health: DeviceHealth,
}

impl<T> Held<T> {
    /// Owns a value of a device with this latch.
    #[must_use]
    pub fn new(value: T, health: &DeviceHealth) -> Self {
        Self { value: Some(value), health: health.clone() }
    }
}

impl<T> Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("the value is taken by drop only")
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        if !self.health.is_working() {
            mem::forget(self.value.take());
        }
    }
}

impl<T> fmt::Debug for Held<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Held").field("health", &self.health).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::error::DeviceError;

    #[test]
    fn what_a_dead_device_owns_is_left_behind() {
        let health = DeviceHealth::new();
        let shared = Arc::new(());
        drop(Held::new(Arc::clone(&shared), &health));
        assert_eq!(Arc::strong_count(&shared), 1);
        let held = Held::new(Arc::clone(&shared), &health);
        health.latch(DeviceError::Unresponsive { cause: "a test".to_owned() });
        drop(held);
        assert_eq!(Arc::strong_count(&shared), 2);
    }
}
