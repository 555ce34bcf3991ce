//! Streams: what is put into one runs in order; different ones run beside each other.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cudarc::driver::sys;
use hopwise_core::error::DeviceError;

use crate::context::Entered;
use crate::driver::{DriverStatus, Functions};
use crate::owned::{Address, Graph, Owned, make, size};

/// How long a wait asks without a pause: a batch of one small kernel is done by then.
const BRISK: Duration = Duration::from_micros(150);

/// Pauses between questions after that.
const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// A stream, with an event for waiting.
#[derive(Debug)]
pub(crate) struct Stream {
    stream: Owned<sys::CUstream>,
    done: Event,
    /// Whether a recording was begun and not ended: what is put into the stream does not run then.
    is_recording: AtomicBool,
}

/// A place in a stream that can be waited for.
#[derive(Debug)]
pub(crate) struct Event(Owned<sys::CUevent>);

impl Event {
    pub(crate) fn new(entered: &Entered<'_>) -> Result<Self, DeviceError> {
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: `event` lives until the call returns.
        make(entered, "cuEventCreate", ptr::null_mut(), |driver, event| unsafe {
            (driver.cuEventCreate)(event, flags)
        })
        .map(Self)
    }

    /// Waits until the device has passed the event. One that makes no end within the wait limit is
    /// taken for unresponsive; a loss that others hear of ends the wait.
    pub(crate) fn wait(&self, entered: &Entered<'_>) -> Result<(), DeviceError> {
        // SAFETY: the event is valid.
        ask_until_ready(entered, "cuEventQuery", |driver| unsafe {
            (driver.cuEventQuery)(self.0.raw())
        })
    }
}

/// Asks again and again whether something is done, with pauses that grow.
fn ask_until_ready(
    entered: &Entered<'_>,
    call: &str,
    ask: impl Fn(&Functions) -> c_int,
) -> Result<(), DeviceError> {
    let started = Instant::now();
    loop {
        match entered.status(&ask)? {
            DriverStatus::SUCCESS => return Ok(()),
            DriverStatus::NOT_READY => {}
            failed => return entered.fail(failed, call),
        }
        let waited = started.elapsed();
        if waited > entered.context.wait_limit() {
            let seconds = entered.context.wait_limit().as_secs_f64();
            let cause = format!("it made no end of its work within {seconds} seconds");
            let unresponsive = DeviceError::Unresponsive { cause };
            return entered.context.health().watch(Err(unresponsive));
        }
        if waited > BRISK {
            std::thread::sleep((waited / 10).clamp(SHORTEST_PAUSE, LONGEST_PAUSE));
        } else {
            std::thread::yield_now();
        }
    }
}

impl Stream {
    pub(crate) fn new(entered: &Entered<'_>) -> Result<Self, DeviceError> {
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: `stream` lives until the call returns.
        let stream = make(entered, "cuStreamCreate", ptr::null_mut(), |driver, stream| unsafe {
            (driver.cuStreamCreate)(stream, flags)
        })?;
        Ok(Self { stream, done: Event::new(entered)?, is_recording: AtomicBool::new(false) })
    }

    pub(crate) fn raw(&self) -> sys::CUstream {
        self.stream.raw()
    }

    /// Notes the place that the stream has come to.
    pub(crate) fn record(&self, entered: &Entered<'_>, event: &Event) -> Result<(), DeviceError> {
        entered.call("cuEventRecord", |driver| {
            // SAFETY: both belong to the context.
            unsafe { (driver.cuEventRecord)(event.0.raw(), self.raw()) }
        })
    }

    /// Waits for all that was put into the stream.
    pub(crate) fn wait(&self, entered: &Entered<'_>) -> Result<(), DeviceError> {
        self.record(entered, &self.done)?;
        self.done.wait(entered)
    }

    /// Waits for all that was put into the stream, after something failed: in another way than
    /// [`wait`](Self::wait), which may be what failed.
    pub(crate) fn drain(&self, entered: &Entered<'_>) -> Result<(), DeviceError> {
        // SAFETY: the stream is valid.
        ask_until_ready(entered, "cuStreamQuery", |driver| unsafe {
            (driver.cuStreamQuery)(self.raw())
        })
    }

    /// Whether the stream was left in the middle of a recording.
    pub(crate) fn is_recording(&self) -> bool {
        self.is_recording.load(Ordering::Relaxed)
    }

    /// Copies from the host to the device.
    ///
    /// # Safety
    ///
    /// Both ranges are valid, and nobody touches them until the stream has passed the copy.
    pub(crate) unsafe fn upload(
        &self,
        entered: &Entered<'_>,
        to: Address,
        from: *const c_void,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        entered.call("cuMemcpyHtoDAsync_v2", |driver| {
            // SAFETY: the caller's promises.
            unsafe { (driver.cuMemcpyHtoDAsync_v2)(to, from, bytes, self.raw()) }
        })
    }

    /// Copies from the device to the host.
    ///
    /// # Safety
    ///
    /// Both ranges are valid, and nobody touches them until the stream has passed the copy.
    pub(crate) unsafe fn download(
        &self,
        entered: &Entered<'_>,
        to: *mut c_void,
        from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        entered.call("cuMemcpyDtoHAsync_v2", |driver| {
            // SAFETY: the caller's promises.
            unsafe { (driver.cuMemcpyDtoHAsync_v2)(to, from, bytes, self.raw()) }
        })
    }

    /// Zeroes memory of the device.
    ///
    /// # Safety
    ///
    /// The range is valid, and nobody touches it until the stream has passed this.
    pub(crate) unsafe fn zero(
        &self,
        entered: &Entered<'_>,
        address: Address,
        bytes: u64,
    ) -> Result<(), DeviceError> {
        let length = size(bytes)?;
        entered.call("cuMemsetD8Async", |driver| {
            // SAFETY: the caller's promises.
            unsafe { (driver.cuMemsetD8Async)(address, 0, length, self.raw()) }
        })
    }

    /// Records what `work` puts into the stream instead of running it.
    pub(crate) fn capture(
        &self,
        entered: &Entered<'_>,
        work: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<Graph, DeviceError> {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        entered.call("cuStreamBeginCapture_v2", |driver| {
            // SAFETY: the stream is valid and not the default one.
            unsafe { (driver.cuStreamBeginCapture_v2)(self.raw(), mode) }
        })?;
        self.is_recording.store(true, Ordering::Relaxed);
        let worked = work();
        // A capture that was begun must be ended, whatever came of it.
        // SAFETY: `graph` lives until the call returns.
        let ended = make(entered, "cuStreamEndCapture", ptr::null_mut(), |driver, graph| unsafe {
            (driver.cuStreamEndCapture)(self.raw(), graph)
        });
        if ended.is_err() && !entered.context.health().is_working() {
            // As long as it is open, this thread may allocate and free on no GPU at all.
            let mut graph = ptr::null_mut();
            // SAFETY: `graph` lives until the call returns; the stream was left behind, not destroyed.
            entered.whatever_happened(|driver| unsafe {
                (driver.cuStreamEndCapture)(self.raw(), &raw mut graph)
            });
        }
        let ended = ended?;
        self.is_recording.store(false, Ordering::Relaxed);
        worked.map(|()| ended)
    }
}
