//! Asking the CUDA driver whether it works and how many devices it has.

use std::ffi::c_int;
use std::fmt;

use crate::library::{Attempt, Opened, open, write_attempts};

pub(crate) use functions::Functions;
pub use functions::SYMBOLS;
pub use status::DriverStatus;

mod functions;
mod status;

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
    /// The driver lacks what is used here.
    TooOld {
        /// The name or path of the library.
        library: String,
        /// The newest CUDA version that the driver supports: below 12.0.
        version: CudaVersion,
    },
    /// The driver works and sees no device.
    NoDevice {
        /// The name or path of the library.
        library: String,
        /// The newest CUDA version that the driver supports.
        version: CudaVersion,
        /// The value of `CUDA_VISIBLE_DEVICES`, where it is set: it can hide every device.
        hidden_by: Option<String>,
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
            Self::TooOld { .. } => Some("install a driver for CUDA 12.0 or newer (525 or newer)"),
            Self::NoDevice { hidden_by: Some(_), .. } => {
                Some("unset CUDA_VISIBLE_DEVICES, or name devices in it that nvidia-smi -L lists")
            }
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
            Self::TooOld { library, version } => {
                write!(f, "{library} is for CUDA {version}, {OLDEST} is needed")?;
            }
            Self::NoDevice { library, version, hidden_by } => {
                write!(f, "{library} for CUDA {version} sees no device")?;
                if let Some(value) = hidden_by {
                    write!(f, ": CUDA_VISIBLE_DEVICES is `{value}`")?;
                }
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

/// The oldest driver that has all that is used, by the CUDA version that it supports.
pub(crate) const OLDEST: CudaVersion = CudaVersion { major: 12, minor: 0 };

/// A driver that is loaded and initialised.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) functions: Functions,
    pub(crate) library_name: String,
    pub(crate) version: CudaVersion,
    pub(crate) device_count: u32,
}

impl Driver {
    /// Opens the driver under one of `names`, or says why that cannot be.
    pub(crate) fn open(names: &[String]) -> Result<Self, DriverOutcome> {
        let Opened { name, library } = match open(names, SYMBOLS) {
            Ok(opened) => opened,
            Err(attempts) => return Err(too_old(names, attempts)),
        };
        let functions = Functions::of(&library).expect("opening the driver checked its symbols");
        // The driver starts threads and exit handlers of its own, so its code must stay.
        std::mem::forget(library);
        Self::ask(name, functions)
    }

    fn ask(library: String, functions: Functions) -> Result<Self, DriverOutcome> {
        let failed = |call, status: DriverStatus, version| DriverOutcome::Failed {
            library: library.clone(),
            version,
            call,
            status,
        };
        // The version may be asked before the driver is initialised.
        let version = number(functions.cuDriverGetVersion)
            .map_err(|status| failed("cuDriverGetVersion", status, None))?;
        let version = CudaVersion::from_driver(version);
        if version < OLDEST {
            return Err(DriverOutcome::TooOld { library, version });
        }
        // SAFETY: it may be called from any thread, any number of times; its flags must be 0.
        let begun = DriverStatus(unsafe { (functions.cuInit)(0) });
        let count = match begun {
            DriverStatus::NO_DEVICE => 0,
            _ => begun
                .ok()
                .map_err(|status| ("cuInit", status))
                .and_then(|()| {
                    number(functions.cuDeviceGetCount)
                        .map_err(|status| ("cuDeviceGetCount", status))
                })
                .map_err(|(call, status)| failed(call, status, Some(version)))?,
        };
        match u32::try_from(count).unwrap_or(0) {
            0 => Err(DriverOutcome::NoDevice { library, version, hidden_by: hidden_by() }),
            device_count => Ok(Self { functions, library_name: library, version, device_count }),
        }
    }
}

/// A driver that lacks functions because it is old says so; what else is there is no driver.
fn too_old(names: &[String], attempts: Vec<Attempt>) -> DriverOutcome {
    let Ok(Opened { name, library }) = open(names, &["cuInit", "cuDriverGetVersion"]) else {
        return DriverOutcome::Missing { attempts };
    };
    type Ask = unsafe extern "C" fn(*mut c_int) -> c_int;
    // SAFETY: the type is that of `CUresult cuDriverGetVersion(int *)` in cuda.h.
    let version = unsafe { library.get::<Ask>("cuDriverGetVersion") };
    let version = version.ok().and_then(|function| number(*function).ok());
    std::mem::forget(library);
    match version.map(CudaVersion::from_driver) {
        Some(version) if version < OLDEST => DriverOutcome::TooOld { library: name, version },
        _ => DriverOutcome::Missing { attempts },
    }
}

/// Calls one of the functions that fill in a number.
fn number(function: unsafe extern "C" fn(*mut c_int) -> c_int) -> Result<c_int, DriverStatus> {
    let mut number = 0;
    // SAFETY: `number` lives until the call returns, and the driver keeps no pointer to it.
    let status = DriverStatus(unsafe { function(&raw mut number) });
    status.ok().map(|()| number)
}

/// The value of `CUDA_VISIBLE_DEVICES`, which can hide every device.
fn hidden_by() -> Option<String> {
    std::env::var("CUDA_VISIBLE_DEVICES").ok()
}

/// Opens the driver under one of `names` and asks it.
pub(crate) fn ask(names: &[String]) -> DriverOutcome {
    match Driver::open(names) {
        Ok(Driver { library_name: library, version, device_count, .. }) => {
            DriverOutcome::Ready { library, version, device_count }
        }
        Err(outcome) => outcome,
    }
}
