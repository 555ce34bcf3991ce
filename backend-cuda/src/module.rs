//! Functions on a device, and launching them.

use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys;
use hopwise_core::error::DeviceError;

use crate::compiler::Image;
use crate::context::Entered;
use crate::owned::{Address, Module, make};
use crate::stream::Stream;

/// Most blocks of a launch in its first dimension (CUDA C++ Programming Guide, "Compute
/// Capabilities").
pub(crate) const MAX_BLOCKS: u64 = (1 << 31) - 1;

/// A function of a module that stays loaded as long.
#[derive(Debug)]
pub(crate) struct Function {
    raw: sys::CUfunction,
    /// Most threads of a block that the function can be launched with.
    pub(crate) block_threads: u32,
    _module: Arc<Module>,
}

// SAFETY: a function's handle may be used from any thread; it is only passed to the driver.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// Loads an image.
pub(crate) fn load(entered: &Entered<'_>, image: &Image) -> Result<Arc<Module>, DeviceError> {
    let from = image.as_ptr().cast::<c_void>();
    // SAFETY: the image is machine code, which knows its length, or text that ends with a zero.
    make(entered, "cuModuleLoadData", ptr::null_mut(), |driver, module| unsafe {
        (driver.cuModuleLoadData)(module, from)
    })
    .map(Arc::new)
}

impl Function {
    /// Looks up a function in a module.
    pub(crate) fn of(
        entered: &Entered<'_>,
        module: &Arc<Module>,
        name: &str,
    ) -> Result<Self, DeviceError> {
        let text = CString::new(name).map_err(|_| DeviceError::Driver {
            message: format!("the entry point `{name}` has a zero byte in its name"),
        })?;
        let mut raw = ptr::null_mut();
        entered.call("cuModuleGetFunction", |driver| {
            // SAFETY: the module is loaded, the name ends with a zero, `raw` lives long enough.
            unsafe { (driver.cuModuleGetFunction)(&raw mut raw, module.raw(), text.as_ptr()) }
        })?;
        let mut threads = 0;
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
        entered.call("cuFuncGetAttribute", |driver| {
            // SAFETY: `threads` lives until the call returns.
            unsafe { (driver.cuFuncGetAttribute)(&raw mut threads, attribute, raw) }
        })?;
        let block_threads = u32::try_from(threads).unwrap_or(0).max(1);
        Ok(Self { raw, block_threads, _module: Arc::clone(module) })
    }

    pub(crate) fn raw(&self) -> sys::CUfunction {
        self.raw
    }

    /// What tells the function from others.
    pub(crate) fn key(&self) -> usize {
        self.raw.addr()
    }

    /// Puts a launch into a stream. The function takes one pointer.
    ///
    /// # Safety
    ///
    /// `argument` is the address of what the function expects, and stays valid until the stream has
    /// passed the launch.
    pub(crate) unsafe fn launch(
        &self,
        entered: &Entered<'_>,
        stream: &Stream,
        blocks: [u32; 2],
        threads: u32,
        argument: Address,
    ) -> Result<(), DeviceError> {
        let mut argument = argument;
        let mut arguments = [(&raw mut argument).cast::<c_void>()];
        let [x, y] = blocks;
        entered.call("cuLaunchKernel", |driver| {
            // SAFETY: the function is loaded; the driver copies the argument before it returns; the
            // caller vouches for what it points to.
            unsafe {
                (driver.cuLaunchKernel)(
                    self.raw,
                    x,
                    y,
                    1,
                    threads,
                    1,
                    1,
                    0,
                    stream.raw(),
                    arguments.as_mut_ptr(),
                    ptr::null_mut(),
                )
            }
        })
    }
}
