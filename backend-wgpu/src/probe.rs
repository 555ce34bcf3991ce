//! Which adapters this machine has, and what is missing where it has none.

use std::fmt;
use std::path::PathBuf;

use crate::adapter::{Adapter, Api, merge};
use crate::ready::block_on;
use crate::vulkan_loader;

#[cfg(test)]
mod tests;

/// How much of the memory that a driver offers may be used.
const MEMORY_BUDGET_PERCENT: u8 = 98;

/// Lists the adapters of this machine through every API that the system can have.
///
/// Never panics and needs no GPU and no driver.
///
/// # Cost
///
/// Loads every graphics driver of the machine once per API: from a millisecond without any to some
/// tenths of a second.
#[must_use]
pub fn probe() -> Probe {
    list(&Api::ALL).0
}

/// Probes these APIs, as far as they are built in; with each adapter goes its handle in the API that
/// is preferred.
pub(crate) fn list(apis: &[Api]) -> (Probe, Vec<wgpu::Adapter>) {
    let built_in = wgpu::Instance::enabled_backend_features();
    let mut probe = Probe { adapters: Vec::new(), apis: Vec::new() };
    let mut handles = Vec::new();
    for api in Api::ALL.into_iter().filter(|api| apis.contains(api)) {
        if !built_in.contains(api.to_wgpu()) {
            continue;
        }
        let (listed, outcome) = probe_api(api);
        let (adapters, listed): (Vec<_>, Vec<_>) = listed.into_iter().unzip();
        let is_new = merge(&mut probe.adapters, adapters);
        let new = listed.into_iter().zip(is_new).filter(|(_, is_new)| *is_new);
        handles.extend(new.map(|(handle, _)| handle));
        probe.apis.push((api, outcome));
    }
    (probe, handles)
}

/// The answer of [`probe()`]. Printed with `{}` it is a few lines for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    adapters: Vec<Adapter>,
    apis: Vec<(Api, ApiOutcome)>,
}

impl Probe {
    /// The adapters, each once, in the order in which the drivers list them.
    ///
    /// Software adapters are among them, with the kind [`AdapterKind::Cpu`](crate::AdapterKind).
    #[must_use]
    pub fn adapters(&self) -> &[Adapter] {
        &self.adapters
    }

    /// What came of every API that this system can have.
    #[must_use]
    pub fn apis(&self) -> &[(Api, ApiOutcome)] {
        &self.apis
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for adapter in &self.adapters {
            write!(f, "{separator}{adapter}")?;
            separator = "\n";
        }
        for (api, outcome) in &self.apis {
            if let ApiOutcome::NoAdapter(missing) = outcome {
                write!(f, "{separator}{api}: {missing}")?;
                separator = "\n";
            }
        }
        if self.apis.is_empty() {
            f.write_str("wgpu supports no API on this system")?;
        }
        Ok(())
    }
}

/// What came of one API.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApiOutcome {
    /// It lists this many adapters (before cards that two APIs list are joined).
    Adapters(usize),
    /// It lists none.
    NoAdapter(Missing),
}

/// Why an API lists no adapter, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing {
    /// What is missing, with wgpu's own words.
    pub reason: String,
    /// The folders that were searched, when a library was not found.
    pub searched: Vec<PathBuf>,
    /// What usually helps.
    pub remedy: &'static str,
}

impl Missing {
    fn new(api: Api, wgpu_says: &str) -> Self {
        match api {
            Api::Vulkan => Self::of_vulkan(wgpu_says, vulkan_loader::folders()),
            Api::Metal => Self {
                reason: format!("no Metal device ({wgpu_says})"),
                searched: Vec::new(),
                remedy: "a virtual machine needs paravirtualised graphics for Metal",
            },
            Api::Dx12 => Self {
                reason: format!("no Direct3D 12 adapter ({wgpu_says})"),
                searched: Vec::new(),
                remedy: "install the graphics driver of the GPU's vendor",
            },
        }
    }

    fn of_vulkan(wgpu_says: &str, folders: Vec<PathBuf>) -> Self {
        match vulkan_loader::find(&folders) {
            None => Self {
                reason: format!("no Vulkan loader ({}); {wgpu_says}", vulkan_loader::FILE_NAME),
                searched: folders,
                remedy: if cfg!(windows) {
                    "install the graphics driver of the GPU's vendor"
                } else {
                    "install a driver and the loader: mesa-vulkan-drivers on Debian, Ubuntu and \
                     Fedora (software Vulkan included), or the NVIDIA driver and libvulkan1"
                },
            },
            Some(loader) => Self {
                reason: format!("no adapter behind the loader {}; {wgpu_says}", loader.display()),
                searched: Vec::new(),
                remedy: if cfg!(windows) {
                    "install the graphics driver of the GPU's vendor"
                } else {
                    "install a driver (mesa-vulkan-drivers, or NVIDIA's); in a container with \
                     NVIDIA GPUs set NVIDIA_DRIVER_CAPABILITIES=all; `vulkaninfo --summary` shows \
                     what the loader sees"
                },
            },
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        for (index, folder) in self.searched.iter().enumerate() {
            f.write_str(if index == 0 { "\n  searched " } else { ", " })?;
            write!(f, "{}", folder.display())?;
        }
        write!(f, "\n  remedy: {}", self.remedy)
    }
}

/// Lists the adapters of one API, in an instance of its own so that its failure is its own.
fn probe_api(api: Api) -> (Vec<(Adapter, wgpu::Adapter)>, ApiOutcome) {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: api.to_wgpu(),
        // The driver's validation layers cost time and print; wgpu validates every call itself.
        flags: wgpu::InstanceFlags::empty(),
        // Refuses a buffer for which the driver sees no memory, before the system runs out of it.
        memory_budget_thresholds: wgpu::MemoryBudgetThresholds {
            for_resource_creation: Some(MEMORY_BUDGET_PERCENT),
            for_device_loss: None,
        },
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let adapters: Vec<_> = block_on(instance.enumerate_adapters(api.to_wgpu()))
        .into_iter()
        .map(|handle| (Adapter::new(api, handle.get_info()), handle))
        .collect();
    let outcome = if adapters.is_empty() {
        ApiOutcome::NoAdapter(Missing::new(api, &reason_of_wgpu(&instance, api)))
    } else {
        ApiOutcome::Adapters(adapters.len())
    };
    (adapters, outcome)
}

/// wgpu tells why an API has no adapter only in the error of a request for one.
fn reason_of_wgpu(instance: &wgpu::Instance, api: Api) -> String {
    match block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default())) {
        Ok(_) => String::from("an adapter appeared just now"),
        Err(error) => about_api(&error.to_string(), api),
    }
}

/// The part of wgpu's error that is about one API: "..., vulkan found no adapters, metal not ...".
fn about_api(error: &str, api: Api) -> String {
    let name = api.to_string().to_lowercase();
    let parts = error.split([';', ',']).map(str::trim);
    let about = parts.filter_map(|part| part.strip_prefix(&name)).next();
    format!("wgpu says: {}", about.map_or(error, str::trim))
}
