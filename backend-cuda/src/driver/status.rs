//! What the driver's functions return.

use std::ffi::c_int;
use std::fmt;

use hopwise_core::error::DeviceError;

/// A result code of the CUDA driver API (`CUresult`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DriverStatus(pub(crate) c_int);

/// Codes, names and whether the context is gone after one: `CUresult` in `cuda.h` of CUDA 12.9, whose
/// comments say after which errors "the process must be terminated and relaunched" or the context
/// cannot be used any more.
const CODES: &[(c_int, &str, Fatal)] = &[
    (0, "CUDA_SUCCESS", Fatal::No),
    (1, "CUDA_ERROR_INVALID_VALUE", Fatal::No),
    (2, "CUDA_ERROR_OUT_OF_MEMORY", Fatal::No),
    (3, "CUDA_ERROR_NOT_INITIALIZED", Fatal::No),
    (4, "CUDA_ERROR_DEINITIALIZED", Fatal::Yes),
    (34, "CUDA_ERROR_STUB_LIBRARY", Fatal::No),
    (46, "CUDA_ERROR_DEVICE_UNAVAILABLE", Fatal::Yes),
    (100, "CUDA_ERROR_NO_DEVICE", Fatal::No),
    (101, "CUDA_ERROR_INVALID_DEVICE", Fatal::No),
    (200, "CUDA_ERROR_INVALID_IMAGE", Fatal::No),
    (201, "CUDA_ERROR_INVALID_CONTEXT", Fatal::Yes),
    (209, "CUDA_ERROR_NO_BINARY_FOR_GPU", Fatal::No),
    (214, "CUDA_ERROR_ECC_UNCORRECTABLE", Fatal::Yes),
    (217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", Fatal::No),
    (218, "CUDA_ERROR_INVALID_PTX", Fatal::No),
    (220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", Fatal::Yes),
    (221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", Fatal::No),
    (222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", Fatal::No),
    (226, "CUDA_ERROR_CONTAINED", Fatal::Yes),
    (304, "CUDA_ERROR_OPERATING_SYSTEM", Fatal::No),
    (400, "CUDA_ERROR_INVALID_HANDLE", Fatal::No),
    (500, "CUDA_ERROR_NOT_FOUND", Fatal::No),
    (600, "CUDA_ERROR_NOT_READY", Fatal::No),
    (700, "CUDA_ERROR_ILLEGAL_ADDRESS", Fatal::Yes),
    (701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", Fatal::No),
    (702, "CUDA_ERROR_LAUNCH_TIMEOUT", Fatal::Yes),
    (704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", Fatal::No),
    (705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", Fatal::No),
    (709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", Fatal::Yes),
    (710, "CUDA_ERROR_ASSERT", Fatal::Yes),
    (711, "CUDA_ERROR_TOO_MANY_PEERS", Fatal::No),
    (714, "CUDA_ERROR_HARDWARE_STACK_ERROR", Fatal::Yes),
    (715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", Fatal::Yes),
    (716, "CUDA_ERROR_MISALIGNED_ADDRESS", Fatal::Yes),
    (717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", Fatal::Yes),
    (718, "CUDA_ERROR_INVALID_PC", Fatal::Yes),
    (719, "CUDA_ERROR_LAUNCH_FAILED", Fatal::Yes),
    (720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", Fatal::No),
    (721, "CUDA_ERROR_TENSOR_MEMORY_LEAK", Fatal::Yes),
    (800, "CUDA_ERROR_NOT_PERMITTED", Fatal::No),
    (801, "CUDA_ERROR_NOT_SUPPORTED", Fatal::No),
    (802, "CUDA_ERROR_SYSTEM_NOT_READY", Fatal::No),
    (803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", Fatal::No),
    (804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", Fatal::No),
    (805, "CUDA_ERROR_MPS_CONNECTION_FAILED", Fatal::No),
    (806, "CUDA_ERROR_MPS_RPC_FAILURE", Fatal::Yes),
    (807, "CUDA_ERROR_MPS_SERVER_NOT_READY", Fatal::No),
    (810, "CUDA_ERROR_MPS_CLIENT_TERMINATED", Fatal::Yes),
    (907, "CUDA_ERROR_CAPTURED_EVENT", Fatal::No),
    (908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", Fatal::No),
    (910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", Fatal::No),
    (911, "CUDA_ERROR_EXTERNAL_DEVICE", Fatal::Yes),
    // What a GPU that fell off the bus answers; nothing better is known about it.
    (999, "CUDA_ERROR_UNKNOWN", Fatal::Yes),
];

/// Whether a device can be used after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fatal {
    No,
    Yes,
}

impl DriverStatus {
    pub(crate) const SUCCESS: Self = Self(0);
    pub(crate) const OUT_OF_MEMORY: Self = Self(2);
    pub(crate) const NO_DEVICE: Self = Self(100);
    pub(crate) const NOT_READY: Self = Self(600);
    pub(crate) const PEER_ACCESS_ALREADY_ENABLED: Self = Self(704);

    /// The number, as in `cuda.h`.
    #[must_use]
    pub fn code(self) -> i32 {
        self.0
    }

    /// The name in `cuda.h`, for the codes that are known here.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        CODES.iter().find(|(code, ..)| *code == self.0).map(|(_, name, _)| *name)
    }

    /// Whether a device that returned it is lost: the error is sticky, or the GPU is gone.
    #[must_use]
    pub fn is_fatal(self) -> bool {
        CODES.iter().any(|(code, _, fatal)| *code == self.0 && *fatal == Fatal::Yes)
    }

    /// What usually helps.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self.0 {
            34 => {
                "a stub for linking was loaded: take the toolkit's `stubs` folder out of the path"
            }
            46 => "another process holds the GPU exclusively: end it, or change the compute mode",
            100 => {
                "check CUDA_VISIBLE_DEVICES and that nvidia-smi lists a GPU; in a container, start \
                 it with the GPUs (docker run --gpus all)"
            }
            214 | 220 | 226 => {
                "look up the Xid in the kernel's log (dmesg); reset or replace the GPU"
            }
            222 => "update the driver, or install an NVRTC that is not newer than the driver",
            700 | 715..=719 => {
                "a kernel did what it must not: run it under compute-sanitizer; the GPU can be \
                 opened again"
            }
            702 => "the display's watchdog ended a step: make steps shorter",
            802 => "NVSwitch is not set up: start the nvidia-fabricmanager service",
            803 => {
                "the kernel module and the driver library differ in version: restart the machine \
                 or reload the module"
            }
            804 => "remove the cuda-compat package, or use a GPU that it supports",
            999 => {
                "look for an Xid in the kernel's log (dmesg); load the module for unified memory \
                 (nvidia-modprobe -u -c=0), or restart"
            }
            _ => "run nvidia-smi, and look the code up under CUresult in the CUDA driver API",
        }
    }

    pub(crate) fn ok(self) -> Result<(), Self> {
        if self == Self::SUCCESS { Ok(()) } else { Err(self) }
    }

    /// The error of a call that returned this.
    pub(crate) fn error(self, call: &str) -> DeviceError {
        let message = format!("{call}: {self}; {}", self.remedy());
        match self {
            Self::OUT_OF_MEMORY => {
                DeviceError::OutOfMemory { requested_bytes: 0, available_bytes: None }
            }
            _ if self.is_fatal() => DeviceError::Lost { cause: message },
            _ => DeviceError::Driver { message },
        }
    }
}

impl fmt::Display for DriverStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "error {} ({name})", self.0),
            None => write!(f, "error {}", self.0),
        }
    }
}
