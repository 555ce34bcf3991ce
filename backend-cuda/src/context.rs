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
use crate::gpu::Gpu;

/// A GPU's primary context, which all of its logical devices share.
#[derive(Debug)]
pub(crate) struct Context {
    driver: Arc<Driver>,
    device: sys::CUdevice,
    gpu: Arc<Gpu>,
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
    /// Given up after the context is not current any more.
    _inside: Inside<'a>,
    /// The current context belongs to a thread.
    _thread: PhantomData<*const ()>,
}

impl Context {
    /// Retains the primary context of a device, on whose [`Gpu`] the caller holds the opening. What
    /// an earlier loss left useless or left behind is reset first, which is the driver's way to begin
    /// anew.
    pub(crate) fn retain(
        driver: &Arc<Driver>,
        device: sys::CUdevice,
        names: GpuNames,
        health: DeviceHealth,
        wait_limit: Duration,
    ) -> Result<Arc<Self>, DeviceError> {
        let gpu = Gpu::of(device);
        if gpu.is_left_behind() {
            reset(driver, device, &gpu, wait_limit)?;
        }
        let raw = match retained(driver, device) {
            Ok(raw) => raw,
            Err(failed) if failed.is_fatal() => {
                reset(driver, device, &gpu, wait_limit)?;
                retained(driver, device)
                    .map_err(|failed| unopened(failed, "cuDevicePrimaryCtxRetain"))?
            }
            Err(failed) => return Err(unopened(failed, "cuDevicePrimaryCtxRetain")),
        };
        gpu.add(&health);
        let (driver, unheard) = (Arc::clone(driver), Mutex::default());
        let resident_permille = AtomicU32::new(0);
        Ok(Arc::new(Self {
            driver,
            device,
            gpu,
            names,
            raw,
            health,
            wait_limit,
            resident_permille,
            unheard,
        }))
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

    /// Whether what was put into its streams may still go on: a GPU that is lost does nothing any
    /// more, one that does not respond may.
    pub(crate) fn may_go_on(&self) -> bool {
        matches!(self.health.cause(), Some(DeviceError::Unresponsive { .. }))
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
        self.enter_quietly()
    }

    /// The same for who cannot tell anybody of a release that failed: that stays for the next call.
    pub(crate) fn enter_quietly(self: &Arc<Self>) -> Result<Entered<'_>, DeviceError> {
        let inside = Inside::new(self)?;
        self.health.watch(self.push().map_err(|failed| failed.error("cuCtxPushCurrent_v2")))?;
        Ok(Entered { context: self, _inside: inside, _thread: PhantomData })
    }

    /// Gives back something that the driver owns, unless the device is lost.
    pub(crate) fn release(&self, call: &str, work: impl FnOnce(&Functions) -> c_int) {
        let Ok(_inside) = Inside::new(self) else { return };
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

/// A thread that may be in calls for a GPU: none such is there when the GPU is reset.
struct Inside<'a> {
    gpu: &'a Gpu,
}

impl<'a> Inside<'a> {
    /// The latch is read after the thread was counted: who resets the GPU closes it before counting.
    fn new(context: &'a Context) -> Result<Self, DeviceError> {
        context.gpu.come_in();
        let inside = Self { gpu: &context.gpu };
        context.health.check()?;
        Ok(inside)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.gpu.go_out();
    }
}

/// Retains the primary context and sees whether it can be used.
fn retained(driver: &Driver, device: sys::CUdevice) -> Result<sys::CUcontext, DriverStatus> {
    let functions = &driver.functions;
    let mut raw = ptr::null_mut();
    // SAFETY: `raw` lives until the call returns; the device is one that the driver lists.
    let retained =
        DriverStatus(unsafe { (functions.cuDevicePrimaryCtxRetain)(&raw mut raw, device) });
    retained.ok()?;
    // An error that stays is told by any call; this one waits for nothing.
    let (mut free, mut total, mut popped) = (0, 0, ptr::null_mut());
    // SAFETY: the context was retained; what is filled in lives until the calls return.
    let asked = unsafe {
        DriverStatus((functions.cuCtxPushCurrent_v2)(raw)).ok().and_then(|()| {
            let asked = DriverStatus((functions.cuMemGetInfo_v2)(&raw mut free, &raw mut total));
            (functions.cuCtxPopCurrent_v2)(&raw mut popped);
            asked.ok()
        })
    };
    asked.map(|()| raw).inspect_err(|failed| {
        if !failed.is_fatal() {
            // SAFETY: it was retained above, and is used by nobody.
            unsafe { (functions.cuDevicePrimaryCtxRelease_v2)(device) };
        }
    })
}

/// Resets a GPU after everybody has left it. Whether that helped is seen when it is retained: the
/// call itself may tell of the error that it removes.
fn reset(
    driver: &Driver,
    device: sys::CUdevice,
    gpu: &Gpu,
    limit: Duration,
) -> Result<(), DeviceError> {
    gpu.clear(limit)?;
    // SAFETY: the device is one that the driver lists; no thread of ours is in a call for it, and
    // none will be: all latches are closed.
    let status =
        DriverStatus(unsafe { (driver.functions.cuDevicePrimaryCtxReset_v2)(device) }).ok();
    match status {
        Err(failed) if !failed.is_fatal() => Err(unopened(failed, "cuDevicePrimaryCtxReset_v2")),
        _ => Ok(()),
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

    /// Calls the driver even if the device is lost: for what must end so that this thread can go on
    /// with other devices.
    pub(crate) fn whatever_happened(&self, work: impl FnOnce(&Functions) -> c_int) {
        work(&self.context.driver.functions);
    }

    /// Whether the context itself answers: for a call that names two, and failed.
    pub(crate) fn is_sound(&self) -> bool {
        let (mut free, mut total) = (0, 0);
        let asked = self.status(|driver| {
            // SAFETY: both numbers live until the call returns.
            unsafe { (driver.cuMemGetInfo_v2)(&raw mut free, &raw mut total) }
        });
        asked.is_ok_and(|status| !status.is_fatal())
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
