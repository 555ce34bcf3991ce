//! The primary context of a GPU: the only place from which the driver is called for a device.
//!
//! # Whose context is current
//!
//! [`Context::enter`] makes it current on the calling thread and gives a value through which calls
//! are made; when that is dropped the thread has the context again that it had before. So a call
//! without its context cannot be written, and programs that use CUDA themselves are not disturbed.
//!
//! # Losses
//!
//! Every result goes through here. An error after which the context is useless closes the latch that
//! all logical devices of the GPU share; from then on no call is made, and what they own is left
//! behind: freeing it can wait for a step that never ends. An error of a release has nobody to
//! report to; the next call reports it.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use cudarc::driver::sys;
use hopwise_core::error::DeviceError;
use hopwise_core::health::DeviceHealth;
use parking_lot::Mutex;

use crate::driver::{Driver, DriverStatus, Functions};

/// A GPU's primary context, which all of its logical devices share.
#[derive(Debug)]
pub(crate) struct Context {
    driver: Arc<Driver>,
    device: sys::CUdevice,
    names: GpuNames,
    raw: sys::CUcontext,
    health: DeviceHealth,
    wait_limit: Duration,
    /// How much of the GPU resident kernels hold, in thousandths.
    resident_permille: AtomicU32,
    /// The first error of a release that nobody has heard of.
    unheard: Mutex<Option<DeviceError>>,
}

// SAFETY: a context may be used from any thread (CUDA Driver API, "Context management"); the handle
// is only passed to the driver.
unsafe impl Send for Context {}
// SAFETY: as above; the driver's functions are thread-safe.
unsafe impl Sync for Context {}

/// What a GPU is called.
#[derive(Clone, Debug)]
pub(crate) struct GpuNames {
    pub(crate) uuid: String,
    /// What names it in a fleet.
    pub(crate) failure_domain: String,
}

/// A context that is current on this thread.
pub(crate) struct Entered<'a> {
    pub(crate) context: &'a Arc<Context>,
    /// The current context belongs to a thread.
    _thread: PhantomData<*const ()>,
}

impl Context {
    /// Retains the primary context of a device. One that an earlier loss left useless is reset
    /// first, which is the driver's way to begin anew.
    pub(crate) fn retain(
        driver: &Arc<Driver>,
        device: sys::CUdevice,
        names: GpuNames,
        health: DeviceHealth,
        wait_limit: Duration,
    ) -> Result<Arc<Self>, DeviceError> {
        let functions = &driver.functions;
        let mut raw = ptr::null_mut();
        let mut retain = || {
            // SAFETY: `raw` lives until the call returns; the device is one that the driver lists.
            DriverStatus(unsafe { (functions.cuDevicePrimaryCtxRetain)(&raw mut raw, device) })
        };
        let mut status = retain();
        if status.is_fatal() {
            // SAFETY: the device is one that the driver lists. Who else uses the context has lost it.
            let reset = DriverStatus(unsafe { (functions.cuDevicePrimaryCtxReset_v2)(device) });
            reset.ok().map_err(|failed| unopened(failed, "cuDevicePrimaryCtxReset_v2"))?;
            status = retain();
        }
        status.ok().map_err(|failed| unopened(failed, "cuDevicePrimaryCtxRetain"))?;
        let (driver, unheard) = (Arc::clone(driver), Mutex::default());
        let resident_permille = AtomicU32::new(0);
        let context = Arc::new(Self {
            driver,
            device,
            names,
            raw,
            health,
            wait_limit,
            resident_permille,
            unheard,
        });
        context.begin_anew()?;
        Ok(context)
    }

    /// A primary context that others retain can carry an error of theirs that stays.
    fn begin_anew(self: &Arc<Self>) -> Result<(), DeviceError> {
        let Err(failed) = self.synchronize() else { return Ok(()) };
        if !failed.is_fatal() {
            return Err(failed.error("cuCtxSynchronize"));
        }
        let functions = &self.driver.functions;
        // SAFETY: the device is one that the driver lists. Who else uses the context has lost it.
        let reset =
            DriverStatus(unsafe { (functions.cuDevicePrimaryCtxReset_v2)(self.device) }).ok();
        reset.map_err(|failed| unopened(failed, "cuDevicePrimaryCtxReset_v2"))?;
        self.synchronize().map_err(|failed| unopened(failed, "cuCtxSynchronize"))
    }

    fn synchronize(&self) -> Result<(), DriverStatus> {
        self.push()?;
        // SAFETY: a context is current.
        let status = DriverStatus(unsafe { (self.driver.functions.cuCtxSynchronize)() });
        self.pop();
        status.ok()
    }

    pub(crate) fn health(&self) -> &DeviceHealth {
        &self.health
    }

    /// How long any call waits for the device before it is taken for unresponsive.
    pub(crate) fn wait_limit(&self) -> Duration {
        self.wait_limit
    }

    /// The handle, for the calls that name two contexts.
    pub(crate) fn raw(&self) -> sys::CUcontext {
        self.raw
    }

    /// How much of the GPU resident kernels hold, in thousandths.
    pub(crate) fn resident_permille(&self) -> &AtomicU32 {
        &self.resident_permille
    }

    /// What the GPU is called.
    pub(crate) fn names(&self) -> &GpuNames {
        &self.names
    }

    /// The device's handle.
    pub(crate) fn device(&self) -> sys::CUdevice {
        self.device
    }

    /// Makes the context current until the returned value is dropped.
    pub(crate) fn enter(self: &Arc<Self>) -> Result<Entered<'_>, DeviceError> {
        self.health.check()?;
        if let Some(error) = self.unheard.lock().take() {
            return Err(error);
        }
        self.health.watch(self.push().map_err(|failed| failed.error("cuCtxPushCurrent_v2")))?;
        Ok(Entered { context: self, _thread: PhantomData })
    }

    /// Gives back something that the driver owns, unless the device is lost.
    pub(crate) fn release(&self, call: &str, work: impl FnOnce(&Functions) -> c_int) {
        if !self.health.is_working() {
            return;
        }
        let status = self.push().and_then(|()| {
            let status = DriverStatus(work(&self.driver.functions));
            self.pop();
            status.ok()
        });
        if let Err(failed) = status {
            self.keep(failed.error(call));
        }
    }

    /// Keeps an error that has nobody to report to for the next call.
    fn keep(&self, error: DeviceError) {
        if !self.health.latch(error.clone()) && self.health.is_working() {
            self.unheard.lock().get_or_insert(error);
        }
    }

    fn push(&self) -> Result<(), DriverStatus> {
        // SAFETY: the context is retained until `self` is dropped.
        DriverStatus(unsafe { (self.driver.functions.cuCtxPushCurrent_v2)(self.raw) }).ok()
    }

    fn pop(&self) {
        let mut popped = ptr::null_mut();
        // SAFETY: `popped` lives until the call returns; the context was pushed on this thread.
        let status = unsafe { (self.driver.functions.cuCtxPopCurrent_v2)(&raw mut popped) };
        if let Err(failed) = DriverStatus(status).ok() {
            self.keep(failed.error("cuCtxPopCurrent_v2"));
        }
    }
}

fn unopened(failed: DriverStatus, call: &str) -> DeviceError {
    let reason = format!("the driver does not open the GPU: {call}: {failed}; {}", failed.remedy());
    DeviceError::Unavailable { reason }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.health.is_working() {
            // SAFETY: the context was retained once, and nothing of it is left.
            unsafe { (self.driver.functions.cuDevicePrimaryCtxRelease_v2)(self.device) };
        }
    }
}

impl Entered<'_> {
    /// Calls the driver. `call` is the function's name, for errors.
    pub(crate) fn call(
        &self,
        call: &str,
        work: impl FnOnce(&Functions) -> c_int,
    ) -> Result<(), DeviceError> {
        self.status(work)?.ok().or_else(|failed| self.fail(failed, call))
    }

    /// Calls the driver and gives back what it returned: for calls of which a failure is an answer.
    pub(crate) fn status(
        &self,
        work: impl FnOnce(&Functions) -> c_int,
    ) -> Result<DriverStatus, DeviceError> {
        self.context.health.check()?;
        let status = DriverStatus(work(&self.context.driver.functions));
        self.context.health.check()?; // a success after a loss proves nothing
        Ok(status)
    }

    /// The error of a call, latched if it is fatal.
    pub(crate) fn fail(&self, failed: DriverStatus, call: &str) -> Result<(), DeviceError> {
        self.context.health.watch(Err(failed.error(call)))
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.context.pop();
    }
}
