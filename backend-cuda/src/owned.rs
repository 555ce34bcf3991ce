//! What the driver made for a context, given back when dropped: memory, streams, events, modules,
//! graphs. Each keeps its context alive.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys;
use hopwise_core::error::DeviceError;

use crate::context::{Context, Entered};
use crate::driver::Functions;

/// A handle of the driver's, and how it is given back.
pub(crate) trait Handle: Copy {
    /// The function that takes it back.
    const RELEASE: &'static str;

    /// Gives it back.
    ///
    /// # Safety
    ///
    /// The handle is valid, its context is current, and nobody uses it afterwards.
    unsafe fn release(self, functions: &Functions) -> c_int;
}

/// Owns a handle of a context.
#[derive(Debug)]
pub(crate) struct Owned<H: Handle> {
    handle: H,
    context: Arc<Context>,
}

// SAFETY: handles may be used from any thread; they are only passed to the driver, whose functions
// are thread-safe.
unsafe impl<H: Handle> Send for Owned<H> {}
// SAFETY: as above.
unsafe impl<H: Handle> Sync for Owned<H> {}

impl<H: Handle> Owned<H> {
    /// Takes over a handle that the driver has just made in this context.
    fn new(entered: &Entered<'_>, handle: H) -> Self {
        Self { handle, context: Arc::clone(entered.context) }
    }

    pub(crate) fn raw(&self) -> H {
        self.handle
    }
}

impl<H: Handle> Drop for Owned<H> {
    fn drop(&mut self) {
        // SAFETY: the handle was made in this context and is owned alone.
        self.context.release(H::RELEASE, |functions| unsafe { self.handle.release(functions) });
    }
}

/// Writes down how each kind of handle is given back.
macro_rules! handles {
    ($($type:ty: $release:ident;)*) => {
        $(impl Handle for $type {
            const RELEASE: &'static str = stringify!($release);

            unsafe fn release(self, functions: &Functions) -> c_int {
                // SAFETY: the caller's promises are those that the function asks for.
                unsafe { (functions.$release)(self) }
            }
        })*
    };
}

handles! {
    sys::CUstream: cuStreamDestroy_v2;
    sys::CUevent: cuEventDestroy_v2;
    sys::CUmodule: cuModuleUnload;
    sys::CUgraph: cuGraphDestroy;
    sys::CUgraphExec: cuGraphExecDestroy;
    Address: cuMemFree_v2;
    HostPointer: cuMemFreeHost;
}

/// The beginning of an allocation on a device.
pub(crate) type Address = sys::CUdeviceptr;

/// The beginning of an allocation of page-locked memory.
pub(crate) type HostPointer = *mut c_void;

/// Memory of a device.
#[derive(Debug)]
pub(crate) struct DeviceBuffer {
    memory: Owned<Address>,
    bytes: u64,
}

impl DeviceBuffer {
    /// Allocates memory, whose content is undefined.
    pub(crate) fn new(entered: &Entered<'_>, bytes: u64) -> Result<Self, DeviceError> {
        let length = size(bytes)?;
        let mut address = 0;
        // SAFETY: `address` lives until the call returns.
        let allocated = entered.call("cuMemAlloc_v2", |driver| unsafe {
            (driver.cuMemAlloc_v2)(&raw mut address, length)
        });
        allocated.map_err(|error| with_size(error, bytes))?;
        Ok(Self { memory: Owned::new(entered, address), bytes })
    }

    pub(crate) fn address(&self) -> Address {
        self.memory.raw()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Page-locked memory of the host, which a device copies from and to while the host goes on.
#[derive(Debug)]
pub(crate) struct PinnedBuffer {
    memory: Owned<HostPointer>,
    bytes: usize,
}

impl PinnedBuffer {
    /// Allocates memory and zeroes it.
    pub(crate) fn new(entered: &Entered<'_>, bytes: usize) -> Result<Self, DeviceError> {
        Self::with_flags(entered, bytes, 0)
    }

    /// Allocates memory that the device can read and write where it stands.
    pub(crate) fn mapped(entered: &Entered<'_>, bytes: usize) -> Result<Self, DeviceError> {
        Self::with_flags(entered, bytes, sys::CU_MEMHOSTALLOC_DEVICEMAP)
    }

    fn with_flags(entered: &Entered<'_>, bytes: usize, flags: u32) -> Result<Self, DeviceError> {
        let mut pointer = ptr::null_mut();
        let allocated = entered.call("cuMemHostAlloc", |driver| {
            // SAFETY: `pointer` lives until the call returns.
            unsafe { (driver.cuMemHostAlloc)(&raw mut pointer, bytes, flags) }
        });
        allocated.map_err(|error| with_size(error, bytes as u64))?;
        // SAFETY: the driver has just allocated so many bytes, which nobody else knows.
        unsafe { ptr::write_bytes(pointer.cast::<u8>(), 0, bytes) };
        Ok(Self { memory: Owned::new(entered, pointer), bytes })
    }

    pub(crate) fn pointer(&self) -> HostPointer {
        self.memory.raw()
    }

    /// The bytes, to read.
    ///
    /// # Safety
    ///
    /// No copy that writes them is under way.
    pub(crate) unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: the allocation is so long and initialised; the caller excludes writers.
        unsafe { std::slice::from_raw_parts(self.pointer().cast(), self.bytes) }
    }

    /// The bytes, to write.
    ///
    /// # Safety
    ///
    /// No copy that reads or writes them is under way.
    pub(crate) unsafe fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the allocation is so long and initialised; the caller excludes the device.
        unsafe { std::slice::from_raw_parts_mut(self.pointer().cast(), self.bytes) }
    }

    pub(crate) fn length(&self) -> usize {
        self.bytes
    }

    /// Where the device sees the memory.
    pub(crate) fn device_address(&self, entered: &Entered<'_>) -> Result<Address, DeviceError> {
        let mut address = 0;
        entered.call("cuMemHostGetDevicePointer_v2", |driver| {
            // SAFETY: the memory was allocated as mapped; `address` lives until the call returns.
            unsafe { (driver.cuMemHostGetDevicePointer_v2)(&raw mut address, self.pointer(), 0) }
        })?;
        Ok(address)
    }
}

/// An executable graph.
pub(crate) type GraphExec = Owned<sys::CUgraphExec>;

/// A graph as it was recorded.
pub(crate) type Graph = Owned<sys::CUgraph>;

/// A module with its functions.
pub(crate) type Module = Owned<sys::CUmodule>;

/// Makes a handle by a call that fills it in.
pub(crate) fn make<H: Handle>(
    entered: &Entered<'_>,
    call: &str,
    empty: H,
    work: impl FnOnce(&Functions, *mut H) -> c_int,
) -> Result<Owned<H>, DeviceError> {
    let mut handle = empty;
    entered.call(call, |driver| work(driver, &raw mut handle))?;
    Ok(Owned::new(entered, handle))
}

/// Bytes as the driver counts them.
pub(crate) fn size(bytes: u64) -> Result<usize, DeviceError> {
    usize::try_from(bytes)
        .map_err(|_| DeviceError::OutOfMemory { requested_bytes: bytes, available_bytes: None })
}

fn with_size(error: DeviceError, bytes: u64) -> DeviceError {
    match error {
        DeviceError::OutOfMemory { requested_bytes: 0, available_bytes } => {
            DeviceError::OutOfMemory { requested_bytes: bytes, available_bytes }
        }
        other => other,
    }
}
