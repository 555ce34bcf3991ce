//! A backend that fails on demand: any backend, wrapped, with faults at chosen calls.
//!
//! A test counts the calls of an undisturbed run, then repeats the run once for each of them with a
//! fault at the n-th call.
//!
//! ```
//! use std::sync::Arc;
//! use hopwise_core::backend::Backend;
//! use hopwise_core::error::DeviceError;
//! use hopwise_core::fault::{FaultAction, FaultPlan, FaultRule, FaultyBackend, Operation};
//! use hopwise_core::host::{HostBackend, HostOptions};
//!
//! let plan = FaultPlan::new();
//! let host = Arc::new(HostBackend::new(HostOptions::new(1)));
//! let backend = FaultyBackend::new(host, Arc::clone(&plan));
//! let device = backend.open(0)?;
//!
//! let lose = FaultAction::Lose { cause: "pulled out".to_owned() };
//! plan.arm(FaultRule::new(lose).on(Operation::Memory).at_call(2));
//! assert!(device.memory().is_ok());
//! assert!(device.memory().is_err());
//! assert!(!device.health().is_working());
//! assert_eq!((plan.fired(), plan.calls(Some(Operation::Memory), Some(0))), (1, 2));
//! # Ok::<(), DeviceError>(())
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use hopwise_topology::GpuConnection;
use parking_lot::Mutex;

use crate::backend::Backend;
use crate::device::Device;
use crate::device_info::{BackendKind, DeviceInfo};
use crate::error::DeviceError;
use crate::health::DeviceHealth;

mod device;
mod plan;
mod site;

pub use plan::{FaultAction, FaultPlan, FaultRule, Operation};

use device::FaultyDevice;
use site::Site;

/// Any backend, disturbed by a [`FaultPlan`]. With no rule armed it behaves as the one it wraps.
///
/// Each device gets a latch of its own, which also closes when the wrapped device is lost.
/// A device lost by a rule goes on working underneath, so that its memory can be freed.
pub struct FaultyBackend {
    inner: Arc<dyn Backend>,
    plan: Arc<FaultPlan>,
    /// The latch of each ordinal opened: logical devices of one card fall together.
    latches: Mutex<BTreeMap<usize, DeviceHealth>>,
}

impl FaultyBackend {
    /// Wraps a backend. The plan stays shared: rules can be armed while the devices work.
    #[must_use]
    pub fn new(inner: Arc<dyn Backend>, plan: Arc<FaultPlan>) -> Self {
        Self { inner, plan, latches: Mutex::default() }
    }

    /// The latch for a device opened now: a closed one is replaced.
    fn latch(&self, ordinal: usize) -> DeviceHealth {
        let mut latches = self.latches.lock();
        let latch = latches.entry(ordinal).or_default();
        if !latch.is_working() {
            *latch = DeviceHealth::new();
        }
        latch.clone()
    }

    /// A call to the driver as a whole: no device is lost by it.
    fn driver(&self) -> Site {
        Site::new(Arc::clone(&self.plan), None, DeviceHealth::new())
    }
}

impl Backend for FaultyBackend {
    fn kind(&self) -> BackendKind {
        self.inner.kind()
    }

    fn enumerate(&self) -> Result<Vec<DeviceInfo>, DeviceError> {
        self.driver().call(Operation::Enumerate, |_| self.inner.enumerate())
    }

    fn open(&self, ordinal: usize) -> Result<Arc<dyn Device>, DeviceError> {
        let site = Site::new(Arc::clone(&self.plan), Some(ordinal), self.latch(ordinal));
        let device = site.call(Operation::Open, |_| self.inner.open(ordinal))?;
        Ok(Arc::new(FaultyDevice::new(device, Arc::new(site))))
    }

    fn links(&self) -> Result<Vec<GpuConnection>, DeviceError> {
        self.driver().call(Operation::Links, |_| self.inner.links())
    }
}

impl fmt::Debug for FaultyBackend {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("FaultyBackend").field(&self.inner).finish()
    }
}
