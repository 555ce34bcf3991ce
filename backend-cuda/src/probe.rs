//! What this machine has of CUDA, and what is missing.

use std::fmt;

use crate::driver::{self, DriverOutcome};
use crate::library::{Libraries, LibraryOutcome, open, search_path};
use crate::{nvml, nvrtc};

#[cfg(test)]
mod tests;

/// Looks for the CUDA driver, NVRTC and NVML, and asks the driver for its devices.
///
/// Never panics and needs no GPU, driver or toolkit. Shorthand for [`Probe::with_libraries`] with
/// [`Libraries::system`].
///
/// # Cost
///
/// Opening the libraries and `cuInit`: some milliseconds without a driver, up to seconds on a
/// machine with many GPUs. The driver stays loaded afterwards.
#[must_use]
pub fn probe() -> Probe {
    Probe::with_libraries(&Libraries::system())
}

/// The answer of [`probe()`]. Printed with `{}` it is a few lines for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Probe {
    /// The CUDA driver and its devices.
    pub driver: DriverOutcome,
    /// The compiler for CUDA C.
    pub nvrtc: LibraryOutcome,
    /// The management library, which knows links and health.
    pub nvml: LibraryOutcome,
}

impl Probe {
    /// Probes the given libraries instead of the machine's usual ones.
    #[must_use]
    pub fn with_libraries(libraries: &Libraries) -> Self {
        Self {
            driver: driver::ask(&libraries.driver),
            nvrtc: open(&libraries.nvrtc, nvrtc::SYMBOLS).into(),
            nvml: open(&libraries.nvml, nvml::SYMBOLS).into(),
        }
    }

    /// How many devices the driver offers; 0 when it is missing or failed.
    #[must_use]
    pub fn device_count(&self) -> u32 {
        match self.driver {
            DriverOutcome::Ready { device_count, .. } => device_count,
            _ => 0,
        }
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "CUDA driver: {}", self.driver)?;
        write!(f, "NVRTC: {}", self.nvrtc)?;
        if self.nvrtc.is_missing() {
            let remedy = "install the CUDA toolkit's NVRTC, or use programs that carry PTX";
            write!(f, "\n  remedy: {remedy}")?;
        }
        write!(f, "\nNVML: {}", self.nvml)?;
        if self.nvml.is_missing() {
            write!(f, "\n  remedy: NVML comes with the NVIDIA driver: install or repair it")?;
        }
        let is_missing = matches!(self.driver, DriverOutcome::Missing { .. })
            || self.nvrtc.is_missing()
            || self.nvml.is_missing();
        match search_path() {
            Some(path) if is_missing => write!(f, "\n{path}"),
            _ => Ok(()),
        }
    }
}
