//! Opening the devices of a list.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;

use hopwise_backend_wgpu::{AdapterFilter, WgpuBackend, WgpuDevice, WgpuOptions};
use hopwise_core::backend::Backend;
use hopwise_core::device::Device;
use hopwise_core::error::DeviceError;
use hopwise_core::host::{DEFAULT_MEMORY_BYTES, HostBackend, HostDevice, HostOptions};

use super::places::{Place, places};
use super::{Kind, Wanted, is_gpu};

#[cfg(test)]
mod tests;

/// An open device, as what it is.
#[derive(Clone, Debug)]
pub(crate) enum OpenDevice {
    Host(Arc<HostDevice>),
    Wgpu(Arc<WgpuDevice>),
}

impl OpenDevice {
    /// The device, for a fleet.
    pub(crate) fn device(&self) -> Arc<dyn Device> {
        match self {
            Self::Host(device) => Arc::clone(device) as Arc<dyn Device>,
            Self::Wgpu(device) => Arc::clone(device) as Arc<dyn Device>,
        }
    }

    /// Loses the device on purpose. On an adapter this destroys the driver's device.
    pub(crate) fn lose(&self, cause: &str) {
        match self {
            Self::Host(device) => {
                device.lose(cause);
            }
            Self::Wgpu(device) => {
                device.lose(cause);
            }
        }
    }
}

/// Opens devices, in their order.
///
/// # Errors
///
/// The backend's, which names what there is.
pub(crate) fn open(devices: &[Wanted]) -> Result<Vec<OpenDevice>, DeviceError> {
    let mut hosts = open_hosts(devices)?.into_iter();
    let places = places(devices, fitting_adapters)?;
    let backends = backends(devices, &places);
    let opened = places.into_iter().map(|place| match place {
        None => Ok(OpenDevice::Host(hosts.next().expect("as many were opened as are wanted"))),
        Some(Place { adapter, logical }) => {
            backends[&adapter].open_wgpu(logical).map(OpenDevice::Wgpu)
        }
    });
    opened.collect()
}

/// The adapters that a filter fits, by their index, at least one. Without a filter a GPU is meant,
/// where there is one.
fn fitting_adapters(filter: Option<&AdapterFilter>) -> Result<Vec<usize>, DeviceError> {
    let options = filter.cloned().into_iter().fold(WgpuOptions::new(), WgpuOptions::with_adapter);
    let found = WgpuBackend::new(options);
    found.enumerate()?; // where there is none, the error names those that were looked at
    let all = || found.adapters().map(|facts| facts.index);
    let gpus = found.adapters().filter(|facts| is_gpu(facts.adapter.kind)).map(|facts| facts.index);
    let gpus: Vec<_> = gpus.collect();
    Ok(if filter.is_some() || gpus.is_empty() { all().collect() } else { gpus })
}

/// A backend for each adapter, with all devices that are on it: they share one driver's device and
/// one memory, so they fall together and divide it, whatever filters named the adapter.
fn backends(devices: &[Wanted], places: &[Option<Place>]) -> HashMap<usize, WgpuBackend> {
    let mut options = HashMap::new();
    for (wanted, place) in devices.iter().zip(places) {
        let Some(Place { adapter, logical }) = *place else { continue };
        let filter = AdapterFilter::Index(adapter);
        let known = options.remove(&adapter);
        let known = known.unwrap_or_else(|| WgpuOptions::new().with_adapter(filter));
        let counted = known.with_logical_devices(logical + 1);
        let with_quota = match wanted.memory_bytes {
            Some(bytes) => counted.with_memory_bytes_of(logical, bytes),
            None => counted,
        };
        options.insert(adapter, with_quota);
    }
    options.into_iter().map(|(adapter, options)| (adapter, WgpuBackend::new(options))).collect()
}

fn open_hosts(devices: &[Wanted]) -> Result<Vec<Arc<HostDevice>>, DeviceError> {
    let hosts: Vec<_> = devices.iter().filter(|wanted| wanted.kind == Kind::Host).collect();
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let share = (processors / hosts.len().max(1)).max(1);
    let mut options = HostOptions::new(0);
    for wanted in &hosts {
        let memory_bytes = wanted.memory_bytes.unwrap_or(DEFAULT_MEMORY_BYTES);
        options = options.with_device(wanted.workers.unwrap_or(share), memory_bytes);
    }
    let backend = HostBackend::new(options);
    (0..hosts.len()).map(|ordinal| backend.open_host(ordinal)).collect()
}
