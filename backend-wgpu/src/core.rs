//! What a device shares with its programs and instances.

use std::sync::Arc;
use std::time::Duration;

use hopwise_core::error::DeviceError;
use hopwise_core::implementing::{Number, Quota};

use crate::digester::Digester;
use crate::driver::Driver;
use crate::limits::Limits;
use crate::mapped;
use crate::segmented::Segmented;
use crate::staging::Staging;

/// One logical device: a driver's device, and what is kept for use again.
#[derive(Debug)]
pub(crate) struct DeviceCore {
    pub(crate) driver: Driver,
    pub(crate) limits: Limits,
    pub(crate) quota: Arc<Quota>,
    pub(crate) transfers: Transfers,
    pub(crate) digester: Digester,
    pub(crate) transfer_wait: Duration,
    /// Free again when nothing of the device is left.
    pub(crate) _number: Number,
}

/// How state is read and written.
#[derive(Debug)]
pub(crate) enum Transfers {
    /// Through staging buffers.
    Staged(Staging),
    /// By mapping it: the adapter's memory is the host's.
    Mapped,
}

impl Transfers {
    /// How the buffers of a state are used beyond what kernels need.
    pub(crate) fn usage(&self) -> wgpu::BufferUsages {
        match self {
            Self::Staged(_) => wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
            Self::Mapped => wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::MAP_WRITE,
        }
    }

    /// Reads from the offset; the range has been checked, and nothing else uses the state.
    pub(crate) fn read(
        &self,
        driver: &Driver,
        state: Segmented<'_>,
        offset_bytes: u64,
        into: &mut [u8],
    ) -> Result<(), DeviceError> {
        match self {
            Self::Staged(staging) => staging.read(driver, state, offset_bytes, into),
            Self::Mapped => mapped::read(driver, state, offset_bytes, into),
        }
    }

    /// Writes at the offset; the range has been checked, and nothing else uses the state.
    pub(crate) fn write(
        &self,
        driver: &Driver,
        state: Segmented<'_>,
        offset_bytes: u64,
        from: &[u8],
    ) -> Result<(), DeviceError> {
        match self {
            Self::Staged(staging) => staging.write(driver, state, offset_bytes, from),
            Self::Mapped => mapped::write(driver, state, offset_bytes, from),
        }
    }
}
