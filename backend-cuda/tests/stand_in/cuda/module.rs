//! Modules: shared libraries that the stand-in NVRTC made of CUDA C.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Arc;

use crate::queue::Op;
use crate::{
    Code, ILLEGAL_ADDRESS, INVALID_HANDLE, INVALID_IMAGE, INVALID_VALUE, NOT_FOUND, UNSUPPORTED_PTX, context, driver,
    state, stream,
};

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// A cooperative launch that does not fit the device at once.
const TOO_LARGE: Code = 720;

/// How the images of the stand-in NVRTC begin; the path of a library follows.
const MAGIC: &[u8] = b"HOPWISE-STAND-IN\n";

const RTLD_NOW: c_int = 2;

type LaunchGrid = unsafe extern "C" fn(*mut c_void, *const c_void, *const u32, *const u32);

pub struct Module {
    pub device: usize,
    library: *mut c_void,
}

unsafe impl Send for Module {}
unsafe impl Sync for Module {}

pub struct Function {
    pub module: Arc<Module>,
    kernel: *mut c_void,
    launch: LaunchGrid,
    /// Runs all threads at the same time.
    together: LaunchGrid,
    /// A kernel that waits on the device: few threads, since each is one of the system's.
    is_resident: bool,
}

unsafe impl Send for Function {}
unsafe impl Sync for Function {}

impl Function {
    pub fn run(&self, argument: u64, grid: [u32; 3], block: [u32; 3], together: bool) {
        let argument = argument as *const c_void;
        let launch = if together { self.together } else { self.launch };
        unsafe { launch(self.kernel, argument, grid.as_ptr(), block.as_ptr()) };
    }
}

fn open(image: *const c_void) -> Result<*mut c_void, Code> {
    // Only as much is read as an image of ours has at least.
    let first = unsafe { image.cast::<u8>().read() };
    if first == b'/' || first == b'.' || first == b'\n' {
        return Err(UNSUPPORTED_PTX); // PTX begins with a comment or a directive
    }
    let text = unsafe { CStr::from_ptr(image.cast()) };
    let path = text.to_bytes().strip_prefix(MAGIC).ok_or(INVALID_IMAGE)?;
    let path = CString::new(path).map_err(|_| INVALID_IMAGE)?;
    let library = unsafe { dlopen(path.as_ptr(), RTLD_NOW) };
    if library.is_null() { Err(INVALID_IMAGE) } else { Ok(library) }
}

driver! {
    fn cuModuleLoadData(module: *mut u64, image: *const c_void) {
        let device = context::current()?;
        let library = open(image)?;
        let mut state = state::lock();
        let handle = state.handle();
        state.modules.insert(handle, Arc::new(Module { device, library }));
        unsafe { module.write(handle) };
        Ok(())
    }

    fn cuModuleUnload(module: u64) {
        context::current()?;
        let mut state = state::lock();
        let module = state.modules.remove(&module).ok_or(INVALID_HANDLE)?;
        state.functions.retain(|_, function| !Arc::ptr_eq(&function.module, &module));
        Ok(())
    }

    fn cuModuleGetFunction(function: *mut u64, module: u64, name: *const c_char) {
        context::current()?;
        let module = {
            let state = state::lock();
            Arc::clone(state.modules.get(&module).ok_or(INVALID_HANDLE)?)
        };
        let find = |name: *const c_char| unsafe { dlsym(module.library, name) };
        let (kernel, launch) = (find(name), find(c"hw_shim_launch".as_ptr()));
        let together = find(c"hw_shim_launch_together".as_ptr());
        if kernel.is_null() || launch.is_null() || together.is_null() { return Err(NOT_FOUND); }
        let launch = unsafe { std::mem::transmute::<*mut c_void, LaunchGrid>(launch) };
        let together = unsafe { std::mem::transmute::<*mut c_void, LaunchGrid>(together) };
        let is_resident = unsafe { CStr::from_ptr(name) } == c"hw_resident";
        let mut state = state::lock();
        let handle = state.handle();
        state.functions.insert(handle, Arc::new(Function { module, kernel, launch, together, is_resident }));
        unsafe { function.write(handle) };
        Ok(())
    }

    fn cuFuncGetAttribute(value: *mut i32, attribute: u32, function: u64) {
        let is_resident = {
            let state = state::lock();
            state.functions.get(&function).ok_or(INVALID_HANDLE)?.is_resident
        };
        let found = match attribute {
            0 if is_resident => 2,
            0 => 256,
            1..=4 => 0,
            _ => return Err(INVALID_VALUE),
        };
        unsafe { value.write(found) };
        Ok(())
    }

    fn cuLaunchKernel(
        function: u64, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32,
        block_z: u32, _shared: u32, stream: u64, arguments: *mut *mut c_void,
        _extra: *mut *mut c_void,
    ) {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        launch(function, grid, block, stream, arguments, false)
    }

    fn cuLaunchCooperativeKernel(
        function: u64, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32,
        block_z: u32, _shared: u32, stream: u64, arguments: *mut *mut c_void,
    ) {
        if grid_y != 1 || grid_z != 1 || grid_x > 16 || block_x > 8 { return Err(TOO_LARGE); }
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        launch(function, grid, block, stream, arguments, true)?;
        // The thread that launches may be held up while the kernel runs already.
        let device = context::current()?;
        let is_late = state::lock().devices[device].launches_late;
        if is_late { std::thread::sleep(std::time::Duration::from_millis(30)); }
        Ok(())
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut i32, function: u64, threads: i32, _shared: usize,
    ) {
        let state = state::lock();
        let is_resident = state.functions.get(&function).ok_or(INVALID_HANDLE)?.is_resident;
        unsafe { blocks.write(if is_resident { 1 } else { 1024 / threads.max(1) }) };
        Ok(())
    }
}

fn launch(
    function: u64,
    grid: [u32; 3],
    block: [u32; 3],
    stream: u64,
    arguments: *mut *mut c_void,
    together: bool,
) -> Result<(), Code> {
    let device = context::current()?;
    let threads: u64 = block.iter().map(|n| u64::from(*n)).product();
    let is_empty = grid.contains(&0) || threads == 0;
    if is_empty || threads > 256 || grid[1] > 65_535 || grid[2] > 65_535 {
        return Err(INVALID_VALUE);
    }
    let argument = unsafe { arguments.read().cast::<u64>().read() };
    let function = {
        let mut state = state::lock();
        let function = state.functions.get(&function).ok_or(INVALID_HANDLE)?;
        if function.module.device != device {
            return Err(INVALID_HANDLE);
        }
        let function = Arc::clone(function);
        // A driver does not look at addresses: the kernel fails when it uses one that is not there.
        let owner = state.owner(argument, 8);
        if owner.is_err() || owner.is_ok_and(|owner| owner.is_some_and(|owner| owner != device)) {
            state.devices[device].sticky = Some(ILLEGAL_ADDRESS);
            return Ok(());
        }
        function
    };
    stream::put(stream, Op::Launch { function, grid, block, argument, together })
}
