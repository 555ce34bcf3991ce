//! A stand-in for the CUDA driver: a test fixture of hopwise, and no driver. It keeps devices in host
//! memory and runs kernels that a C++ compiler has made of their CUDA C. What passes against it has
//! made the right calls and heard the errors; nothing is proved about a real GPU.
//!
//! The machine is described by the text in `HOPWISE_STAND_IN`, one word for a line's kind and then
//! `key=value`: `driver version=12080`, `gpu uuid=.. pci=.. memory_mib=.. capability=9.0 name=..
//! slow_us=..` (of which each thing in a stream takes so much longer, as on a busy GPU),
//! `peer 0 1` for an ordered pair, `peers all`. Tests change it while it runs through
//! [`hw_stand_in_control`] and ask [`hw_stand_in_count`].

#![allow(non_snake_case, clippy::missing_safety_doc, reason = "the names are the driver's")]

mod context;
mod device;
mod faults;
mod graph;
mod machine;
mod memory;
mod module;
mod queue;
mod state;
mod stream;

pub type Code = i32;

pub const SUCCESS: Code = 0;
pub const INVALID_VALUE: Code = 1;
pub const OUT_OF_MEMORY: Code = 2;
pub const NOT_INITIALIZED: Code = 3;
pub const DEVICE_UNAVAILABLE: Code = 46;
pub const NO_DEVICE: Code = 100;
pub const INVALID_DEVICE: Code = 101;
pub const INVALID_IMAGE: Code = 200;
pub const INVALID_CONTEXT: Code = 201;
pub const PEER_ACCESS_UNSUPPORTED: Code = 217;
pub const UNSUPPORTED_PTX: Code = 222;
pub const INVALID_HANDLE: Code = 400;
pub const NOT_FOUND: Code = 500;
pub const NOT_READY: Code = 600;
pub const PEER_ALREADY_ENABLED: Code = 704;
pub const PEER_NOT_ENABLED: Code = 705;
pub const UPDATE_FAILURE: Code = 910;
pub const ILLEGAL_ADDRESS: Code = 700;
pub const CAPTURE_UNSUPPORTED: Code = 900;
pub const CAPTURE_INVALIDATED: Code = 901;
pub const CAPTURED_EVENT: Code = 907;
pub const UNKNOWN: Code = 999;

/// Writes down driver functions: each counts its call, gives an injected failure, and else does its
/// work, which returns `Result<(), Code>`.
#[macro_export]
macro_rules! driver {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {
        $(#[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $crate::Code {
            if let Some(code) = $crate::faults::called(stringify!($name)) {
                return code;
            }
            let work = move || -> Result<(), $crate::Code> { $body };
            match work() {
                Ok(()) => $crate::SUCCESS,
                Err(code) => code,
            }
        })*
    };
}

driver! {
    fn cuInit(flags: u32) {
        if flags != 0 { return Err(INVALID_VALUE); }
        let mut state = state::lock();
        if state.visible.is_empty() { return Err(NO_DEVICE); }
        state.is_initialised = true;
        Ok(())
    }

    fn cuDriverGetVersion(version: *mut i32) {
        unsafe { version.write(state::lock().machine.driver_version) };
        Ok(())
    }
}

/// Changes the machine: the commands are listed in `faults.rs`. Returns 0, or 1 for nonsense.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_stand_in_control(command: *const std::ffi::c_char) -> i32 {
    let command = unsafe { std::ffi::CStr::from_ptr(command) }.to_string_lossy();
    i32::from(faults::control(&command).is_none())
}

/// How often a function was called, or how many objects of a kind are alive (`live memory`,
/// `live host-memory`, `live streams`, `live events`, `live modules`, `live graphs`,
/// `live contexts`, `live peers`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hw_stand_in_count(name: *const std::ffi::c_char) -> u64 {
    let name = unsafe { std::ffi::CStr::from_ptr(name) }.to_string_lossy();
    faults::count(&name)
}
