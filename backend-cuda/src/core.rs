//! What a device shares with its programs and instances.

use std::sync::Arc;
use std::time::Duration;

use hopwise_core::device_info::ComputeCapability;
use hopwise_core::implementing::{Number, Quota};

use crate::compiler::Compiler;
use crate::context::Context;
use crate::digester::Digester;
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
    pub(crate) transfer_wait: Duration,
    /// Free again when nothing of the device is left.
    pub(crate) _number: Number,
}
