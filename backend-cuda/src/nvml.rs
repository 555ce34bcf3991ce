//! The NVIDIA management library: links, facts and health of GPUs.
//!
//! NVML sees every GPU of the machine, whatever `CUDA_VISIBLE_DEVICES` says, and counts them in
//! its own order. So GPUs are known here by UUID and PCI address, never by an index. Each question
//! can fail for each GPU by itself: what fails is told with the remedy, and the rest goes on.
//!
//! ```
//! use hopwise_backend_cuda::Libraries;
//! use hopwise_backend_cuda::nvml::{Condition, Nvml};
//!
//! match Nvml::open(&Libraries::system()) {
//!     Ok(nvml) => {
//!         for gpu in nvml.facts().0 {
//!             let uuid = gpu.uuid.as_deref().unwrap_or_default();
//!             println!("{uuid}: {:?}", nvml.condition(uuid));
//!         }
//!     }
//!     // Without NVML nothing is known: GPUs are neither sound nor sick.
//!     Err(error) => println!("{error}"),
//! }
//! ```

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;

use hopwise_topology::Observations;
use parking_lot::Mutex;

use crate::library::{Attempt, Libraries, open, write_attempts};
use management::{Fault, Management};
use real::Real;

pub use condition::Condition;
pub use events::{Effect, EventWatcher, GpuEvent, Happening};
pub use facts::{ClockFacts, InstanceFacts, ManagedGpu};
pub use xid::{Xid, XidEffect};

mod complaints;
mod condition;
mod events;
mod facts;
mod lanes;
mod links;
mod listen;
mod management;
mod real;
#[cfg(test)]
mod tests;
mod xid;

/// What the library must export to be what its name says.
pub(crate) const SYMBOLS: &[&str] = &["nvmlInit_v2", "nvmlShutdown"];

/// Why there is no NVML. Printed with `{}` it says what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NvmlError {
    /// There is no library, or none that is NVML.
    Missing {
        /// What was tried, in order, and why each failed.
        attempts: Vec<Attempt>,
    },
    /// The library is there and does not start.
    Failed {
        /// The name or path of the library.
        library: String,
        /// What it said.
        reason: String,
        /// What usually helps.
        remedy: &'static str,
    },
}

impl fmt::Display for NvmlError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { attempts } => {
                formatter.write_str("NVML: ")?;
                write_attempts(formatter, attempts)?;
                formatter.write_str(
                    "\n  remedy: NVML comes with the NVIDIA driver: install or repair it",
                )
            }
            Self::Failed { library, reason, remedy } => {
                write!(formatter, "nvmlInit of {library} failed: {reason}\n  remedy: {remedy}")
            }
        }
    }
}

impl std::error::Error for NvmlError {}

/// NVML, opened.
///
/// # Cost
///
/// The library is loaded and started when it is opened first under a name, and stays: up to
/// seconds on a machine with many GPUs. A question takes microseconds to milliseconds.
pub struct Nvml {
    management: Box<dyn Management>,
    /// For listening; none where the questions are answered by a test.
    library: Option<&'static nvml_wrapper::Nvml>,
    /// Who the GPUs were when it was opened: one that is lost may not say it any more.
    known: Vec<Known>,
}

/// Which GPU has which UUIDs.
#[derive(Debug)]
struct Known {
    index: u32,
    /// Its own first, then those of its instances.
    uuids: Vec<String>,
}

impl fmt::Debug for Nvml {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Nvml").field("known", &self.known).finish_non_exhaustive()
    }
}

/// What was loaded, by name. Never unloaded: the library has threads of its own, and events refer
/// to it.
static LOADED: Mutex<Option<HashMap<String, &'static nvml_wrapper::Nvml>>> = Mutex::new(None);

impl Nvml {
    /// Opens the first library under the names that works.
    ///
    /// # Errors
    ///
    /// [`NvmlError`] names what was tried and the remedy.
    pub fn open(libraries: &Libraries) -> Result<Self, NvmlError> {
        let opened =
            open(&libraries.nvml, SYMBOLS).map_err(|attempts| NvmlError::Missing { attempts })?;
        let library = load(&opened.name)?;
        Ok(Self { library: Some(library), ..Self::on(Box::new(Real(library))) })
    }

    fn on(management: Box<dyn Management>) -> Self {
        let known = known(&*management);
        Self { management, library: None, known }
    }

    /// GPUs, their NVLinks and NVSwitches, access and nearness of each pair, as a source for
    /// [`Machine::merge`](hopwise_topology::Machine::merge). What could not be asked is a warning.
    #[must_use]
    pub fn links(&self) -> Observations {
        links::observe(&*self.management)
    }

    /// Facts about each GPU that answers, and a line for each thing that could not be asked.
    #[must_use]
    pub fn facts(&self) -> (Vec<ManagedGpu>, Vec<String>) {
        facts::facts(&*self.management)
    }

    /// How well a GPU is now, by its UUID or that of one of its instances.
    #[must_use]
    pub fn condition(&self, uuid: &str) -> Condition {
        match self.find(uuid) {
            Some(index) => condition::condition(&*self.management, index),
            None => Condition::Unknown {
                why: format!(
                    "NVML knows no GPU {uuid}; open it again if the GPU was added or divided since, \
                     and look at nvidia-smi -L"
                ),
            },
        }
    }

    /// Listens to events of all GPUs from now on. A GPU that cannot be listened to is told at the
    /// first poll.
    #[must_use]
    pub fn watch(&self) -> EventWatcher {
        let gpus =
            self.known.iter().filter_map(|known| Some((known.index, known.uuids.first()?.clone())));
        listen::listen(self.library, gpus.collect())
    }

    fn find(&self, uuid: &str) -> Option<u32> {
        let has = |known: &&Known| known.uuids.iter().any(|one| one.eq_ignore_ascii_case(uuid));
        self.known.iter().find(has).map(|known| known.index)
    }
}

/// Starts the library of this name, once in a process.
fn load(name: &str) -> Result<&'static nvml_wrapper::Nvml, NvmlError> {
    if let Some(&known) = LOADED.lock().get_or_insert_default().get(name) {
        return Ok(known);
    }
    // The driver is called with no lock held; two threads at once start it twice, which NVML counts.
    let started = nvml_wrapper::Nvml::builder().lib_path(OsStr::new(name)).init();
    let library = started.map_err(|error| {
        let reason = error.to_string();
        let remedy = start_remedy(&error);
        NvmlError::Failed { library: name.to_owned(), reason, remedy }
    })?;
    let mut loaded = LOADED.lock();
    let by_name = loaded.get_or_insert_default();
    Ok(by_name.entry(name.to_owned()).or_insert_with(|| Box::leak(Box::new(library))))
}

fn start_remedy(error: &nvml_wrapper::error::NvmlError) -> &'static str {
    use nvml_wrapper::error::NvmlError as Wrapped;
    match error {
        Wrapped::DriverNotLoaded => "load the NVIDIA driver (modprobe nvidia)",
        Wrapped::LibRmVersionMismatch => {
            "the kernel module and the library differ in version: restart the machine or reload \
             the module"
        }
        Wrapped::NoPermission => {
            "let this user, or the container, have /dev/nvidiactl and the GPUs' device files"
        }
        _ => "run nvidia-smi, and look at the kernel's log for lines with NVRM",
    }
}

fn known(management: &dyn Management) -> Vec<Known> {
    let count = management.gpu_count().unwrap_or(0);
    let of = |index: u32| -> Result<Known, Fault> {
        let mut uuids = vec![management.uuid(index)?];
        if management.is_divided(index) == Ok(true) {
            let most = management.most_instances(index).unwrap_or(0);
            let instances = (0..most).filter_map(|number| management.instance(index, number).ok());
            uuids.extend(instances.map(|instance| instance.uuid));
        }
        Ok(Known { index, uuids })
    };
    (0..count).filter_map(|index| of(index).ok()).collect()
}
