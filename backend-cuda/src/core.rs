//! What a device shares with its programs and instances.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use hopwise_core::device::DeviceMemory;
use hopwise_core::device_info::ComputeCapability;
use hopwise_core::error::DeviceError;
use hopwise_core::implementing::{Number, Quota};

use crate::compiler::Compiler;
use crate::context::Context;
use crate::digester::Digester;
use crate::payload::PayloadMemory;
use crate::peer::Paths;
use crate::transfer::Lanes;

/// One logical device.
#[derive(Debug)]
pub(crate) struct DeviceCore {
    pub(crate) context: Arc<Context>,
    pub(crate) capability: ComputeCapability,
    pub(crate) compiler: Arc<Compiler>,
    pub(crate) quota: Arc<Quota>,
    pub(crate) lanes: Lanes,
    pub(crate) digester: Digester,
    pub(crate) payloads: PayloadMemory,
    pub(crate) paths: Paths,
    /// Multiprocessors for kernels that stay; `None` where none may.
    pub(crate) resident_on: Option<u32>,
    /// Kernels that stay.
    pub(crate) residents: AtomicUsize,
    pub(crate) transfer_wait: Duration,
    /// Free again when nothing of the device is left.
    pub(crate) _number: Number,
}

impl DeviceCore {
    /// What is left of the quota, or what the driver says is free on the GPU if that is less.
    pub(crate) fn memory(&self) -> Result<DeviceMemory, DeviceError> {
        let entered = self.context.enter()?;
        let (mut free, mut total) = (0, 0);
        entered.call("cuMemGetInfo_v2", |driver| {
            // SAFETY: both numbers live until the call returns.
            unsafe { (driver.cuMemGetInfo_v2)(&raw mut free, &raw mut total) }
        })?;
        let quota = self.quota.memory();
        let available_bytes = quota.available_bytes.min(free as u64);
        Ok(DeviceMemory { available_bytes, ..quota })
    }

    /// The quota's refusal, with what could really have been had.
    pub(crate) fn with_free_bytes(&self, error: DeviceError) -> DeviceError {
        match (error, self.memory()) {
            (DeviceError::OutOfMemory { requested_bytes, .. }, Ok(memory)) => {
                let available_bytes = Some(memory.available_bytes);
                DeviceError::OutOfMemory { requested_bytes, available_bytes }
            }
            (error, _) => error,
        }
    }
}
