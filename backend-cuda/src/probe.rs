//! What this machine has of CUDA, and what is missing.

use std::fmt;

use crate::driver::{self, DriverOutcome};
use crate::library::{Libraries, LibraryOutcome, open, search_path};
use crate::nvml::{self, ManagedGpu, Nvml};
use crate::nvrtc;

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
    /// UUIDs of GPUs that are to be divided (MIG) and have no instance: the driver lists nothing of
    /// them. Asked for only where the driver lists no device.
    pub without_instances: Vec<String>,
}

impl Probe {
    /// Probes the given libraries instead of the machine's usual ones.
    #[must_use]
    pub fn with_libraries(libraries: &Libraries) -> Self {
        let driver = driver::ask(&libraries.driver);
        let without_instances = match driver {
            DriverOutcome::NoDevice { .. } => without_instances(libraries),
            _ => Vec::new(),
        };
        Self {
            driver,
            nvrtc: open(&libraries.nvrtc, nvrtc::SYMBOLS).into(),
            nvml: open(&libraries.nvml, nvml::SYMBOLS).into(),
            without_instances,
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

fn without_instances(libraries: &Libraries) -> Vec<String> {
    let Ok(nvml) = Nvml::open(libraries) else { return Vec::new() };
    let is_without = |gpu: &ManagedGpu| gpu.is_divided == Some(true) && gpu.instances.is_empty();
    nvml.facts().0.into_iter().filter(is_without).filter_map(|gpu| gpu.uuid).collect()
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "CUDA driver: {}", self.driver)?;
        for uuid in &self.without_instances {
            writeln!(
                f,
                "  {uuid} is in MIG mode and has no instance\n  remedy: make one (nvidia-smi mig \
                 -cgi 0 -C), or leave MIG mode (nvidia-smi -mig 0)"
            )?;
        }
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
