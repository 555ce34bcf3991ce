//! What a device shares with its programs and instances.

use std::sync::Arc;
use std::time::Duration;

use crate::digester::Digester;
use crate::driver::Driver;
use crate::limits::Limits;
use crate::quota::Quota;
use crate::staging::Staging;

/// One logical device: a driver's device, and what is kept for use again.
#[derive(Debug)]
pub(crate) struct DeviceCore {
    pub(crate) driver: Driver,
    pub(crate) limits: Limits,
    pub(crate) quota: Arc<Quota>,
    pub(crate) staging: Staging,
    pub(crate) digester: Digester,
    pub(crate) transfer_wait: Duration,
}
