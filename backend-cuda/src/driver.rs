//! Asking the CUDA driver whether it works and how many devices it has.

use std::ffi::{c_int, c_uint};
use std::fmt;

use libloading::Library;

use crate::library::{Attempt, Opened, open, write_attempts};

#[cfg(test)]
mod tests;

/// What the CUDA driver answered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DriverOutcome {
    /// There is no driver library, or none that exports the driver's functions.
    Missing {
        /// What was tried, in order, and why each failed.
        attempts: Vec<Attempt>,
    },
    /// The library is there, but a call failed.
    Failed {
        /// The name or path of the library.
        library: String,
        /// The newest CUDA version that the driver supports, when it could be asked.
        version: Option<CudaVersion>,
        /// The function that failed.
        call: &'static str,
        /// What it returned.
        status: DriverStatus,
    },
    /// The driver works and sees no device.
    NoDevice {
        /// The name or path of the library.
        library: String,
        /// The newest CUDA version that the driver supports.
        version: CudaVersion,
    },
    /// The driver works and has devices.
    Ready {
        /// The name or path of the library.
        library: String,
        /// The newest CUDA version that the driver supports.
        version: CudaVersion,
        /// How many devices it offers to this process (`CUDA_VISIBLE_DEVICES` may hide some).
        device_count: u32,
    },
}

impl DriverOutcome {
    /// What to do about it; `None` when the driver is ready.
    #[must_use]
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Missing { .. } => Some(
                "install the NVIDIA driver; in a container, start it with the GPUs \
                 (docker run --gpus all)",
            ),
            Self::Failed { status, .. } => Some(status.remedy()),
            Self::NoDevice { .. } => Some(DriverStatus::NO_DEVICE.remedy()),
            Self::Ready { .. } => None,
        }
    }
}

impl fmt::Display for DriverOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { attempts } => write_attempts(f, attempts)?,
            Self::Failed { library, version, call, status } => {
                write!(f, "{call} of {library} failed: {status}")?;
                if let Some(version) = version {
                    write!(f, " (driver for CUDA {version})")?;
                }
            }
            Self::NoDevice { library, version } => {
                write!(f, "{library} for CUDA {version} sees no device")?;
            }
            Self::Ready { library, version, device_count } => {
                let plural = if *device_count == 1 { "" } else { "s" };
                write!(f, "{library} for CUDA {version}, {device_count} device{plural}")?;
            }
        }
        self.remedy().map_or(Ok(()), |remedy| write!(f, "\n  remedy: {remedy}"))
    }
}

/// A CUDA version, as in "CUDA 12.4".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CudaVersion {
    /// The number before the point.
    pub major: u32,
    /// The number behind the point.
    pub minor: u32,
}

impl CudaVersion {
    /// From the driver's form: 1000 x major + 10 x minor.
    fn from_driver(number: c_int) -> Self {
        let number = u32::try_from(number).unwrap_or(0);
        Self { major: number / 1000, minor: number % 1000 / 10 }
    }
}

impl fmt::Display for CudaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A result code of the CUDA driver API (`CUresult`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DriverStatus(c_int);

impl DriverStatus {
    const SUCCESS: Self = Self(0);
    const NO_DEVICE: Self = Self(100);

    /// The number, as in `cuda.h`.
    #[must_use]
    pub fn code(self) -> i32 {
        self.0
    }

    /// The name in `cuda.h`, for the codes that opening a driver is known to return.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0 => "CUDA_SUCCESS",
            1 => "CUDA_ERROR_INVALID_VALUE",
            2 => "CUDA_ERROR_OUT_OF_MEMORY",
            3 => "CUDA_ERROR_NOT_INITIALIZED",
            34 => "CUDA_ERROR_STUB_LIBRARY",
            46 => "CUDA_ERROR_DEVICE_UNAVAILABLE",
            100 => "CUDA_ERROR_NO_DEVICE",
            101 => "CUDA_ERROR_INVALID_DEVICE",
            304 => "CUDA_ERROR_OPERATING_SYSTEM",
            802 => "CUDA_ERROR_SYSTEM_NOT_READY",
            803 => "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
            804 => "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
            999 => "CUDA_ERROR_UNKNOWN",
            _ => return None,
        })
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
            802 => "NVSwitch is not set up: start the nvidia-fabricmanager service",
            803 => {
                "the kernel module and the driver library differ in version: restart the machine \
                 or reload the module"
            }
            804 => "remove the cuda-compat package, or use a GPU that it supports",
            999 => "load the module for unified memory (nvidia-modprobe -u -c=0), or restart",
            _ => "run nvidia-smi, and look the code up under CUresult in the CUDA driver API",
        }
    }

    fn ok(self) -> Result<(), Self> {
        if self == Self::SUCCESS { Ok(()) } else { Err(self) }
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

const INIT: &str = "cuInit";
const GET_VERSION: &str = "cuDriverGetVersion";
const GET_COUNT: &str = "cuDeviceGetCount";
const SYMBOLS_WERE_CHECKED: &str = "opening the driver checked its symbols";

/// Opens the driver under one of `names` and asks it.
pub(crate) fn ask(names: &[String]) -> DriverOutcome {
    match open(names, &[INIT, GET_VERSION, GET_COUNT]) {
        Ok(Opened { name, library }) => {
            let outcome = ask_opened(name, &library);
            // The driver starts threads and exit handlers of its own, so its code must stay.
            std::mem::forget(library);
            outcome
        }
        Err(attempts) => DriverOutcome::Missing { attempts },
    }
}

fn ask_opened(library_name: String, library: &Library) -> DriverOutcome {
    let mut version = None;
    match version_and_count(library, &mut version) {
        Ok((version, 0)) => DriverOutcome::NoDevice { library: library_name, version },
        Ok((version, device_count)) => {
            DriverOutcome::Ready { library: library_name, version, device_count }
        }
        Err((call, status)) => match version {
            Some(version) if call == INIT && status == DriverStatus::NO_DEVICE => {
                DriverOutcome::NoDevice { library: library_name, version }
            }
            _ => DriverOutcome::Failed { library: library_name, version, call, status },
        },
    }
}

/// Leaves the version in `known` as soon as it is known, also when a later call fails.
fn version_and_count(
    library: &Library,
    known: &mut Option<CudaVersion>,
) -> Result<(CudaVersion, u32), (&'static str, DriverStatus)> {
    // The version may be asked before the driver is initialised.
    let version = CudaVersion::from_driver(ask_number(library, GET_VERSION)?);
    *known = Some(version);
    init(library).ok().map_err(|status| (INIT, status))?;
    let count = ask_number(library, GET_COUNT)?;
    Ok((version, u32::try_from(count).unwrap_or(0)))
}

fn init(library: &Library) -> DriverStatus {
    type Init = unsafe extern "system" fn(flags: c_uint) -> c_int;
    // SAFETY: the type is that of `CUresult cuInit(unsigned int)` in cuda.h.
    let function = unsafe { library.get::<Init>(INIT) }.expect(SYMBOLS_WERE_CHECKED);
    // SAFETY: it may be called from any thread, any number of times; its flags must be 0.
    DriverStatus(unsafe { function(0) })
}

/// Calls one of the functions that fill in a number.
fn ask_number(
    library: &Library,
    call: &'static str,
) -> Result<c_int, (&'static str, DriverStatus)> {
    type Ask = unsafe extern "system" fn(number: *mut c_int) -> c_int;
    let mut number = 0;
    // SAFETY: the type is that of `CUresult cuDriverGetVersion(int *)` and
    // `CUresult cuDeviceGetCount(int *)` in cuda.h, the two that are asked.
    let function = unsafe { library.get::<Ask>(call) }.expect(SYMBOLS_WERE_CHECKED);
    // SAFETY: `number` lives until the call returns, and the driver keeps no pointer to it.
    let status = DriverStatus(unsafe { function(&raw mut number) });
    status.ok().map(|()| number).map_err(|status| (call, status))
}
