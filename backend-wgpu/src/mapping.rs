//! The mapping of a buffer into the host's memory, which arrives when the device is done with it.

use std::sync::Arc;
use std::time::Duration;

use hopwise_core::error::DeviceError;
use parking_lot::{Condvar, Mutex};

/// The arrival of a buffer's mapping.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mapping {
    shared: Arc<(Mutex<Option<bool>>, Condvar)>,
}

impl Mapping {
    /// Asks for a part of a buffer.
    pub(crate) fn of(part: wgpu::BufferSlice<'_>, mode: wgpu::MapMode) -> Self {
        let mapping = Self::default();
        let arrived = mapping.clone();
        part.map_async(mode, move |result| {
            let (state, changed) = &*arrived.shared;
            *state.lock() = Some(result.is_ok());
            changed.notify_all();
        });
        mapping
    }

    pub(crate) fn is_mapped(&self) -> bool {
        *self.shared.0.lock() == Some(true)
    }

    /// Whether the answer, good or bad, came within the time.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        let (state, changed) = &*self.shared;
        let mut state = state.lock();
        if state.is_none() {
            changed.wait_for(&mut state, limit);
        }
        state.is_some()
    }
}

/// What went wrong with the view of a mapped buffer.
pub(crate) fn map_error(error: impl std::fmt::Display) -> DeviceError {
    DeviceError::Driver { message: format!("a mapped buffer cannot be read or written: {error}") }
}

pub(crate) fn not_mapped() -> DeviceError {
    DeviceError::Driver { message: "a buffer could not be mapped".to_owned() }
}
