//! Opening the devices of a list.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;

use hopwise_backend_cuda::{CudaBackend, CudaDevice, CudaOptions, GpuFilter};
use hopwise_backend_wgpu::{AdapterFilter, WgpuBackend, WgpuDevice, WgpuOptions};
use hopwise_core::backend::Backend;
use hopwise_core::device::Device;
use hopwise_core::error::DeviceError;
use hopwise_core::host::{DEFAULT_MEMORY_BYTES, HostBackend, HostDevice, HostOptions};

use super::places::{Card, Place, places};
use super::{Kind, Wanted, is_gpu};

#[cfg(test)]
mod tests;

/// An open device, as what it is.
#[derive(Clone, Debug)]
pub(crate) enum OpenDevice {
    Host(Arc<HostDevice>),
    Wgpu(Arc<WgpuDevice>),
    Cuda(Arc<CudaDevice>),
}

impl OpenDevice {
    /// The device, for a fleet.
    pub(crate) fn device(&self) -> Arc<dyn Device> {
        match self {
            Self::Host(device) => Arc::clone(device) as Arc<dyn Device>,
            Self::Wgpu(device) => Arc::clone(device) as Arc<dyn Device>,
            Self::Cuda(device) => Arc::clone(device) as Arc<dyn Device>,
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
            Self::Cuda(device) => {
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
    let places = places(devices, fitting)?;
    let backends = backends(devices, &places);
    let opened = places.into_iter().map(|place| match place {
        None => Ok(OpenDevice::Host(hosts.next().expect("as many were opened as are wanted"))),
        Some(Place { card, logical }) => match &backends[&card] {
            GpuBackend::Wgpu(backend) => backend.open_wgpu(logical).map(OpenDevice::Wgpu),
            GpuBackend::Cuda(backend) => backend.open_cuda(logical).map(OpenDevice::Cuda),
        },
    });
    opened.collect()
}

/// The cards that a kind of device fits, at least one.
fn fitting(kind: &Kind) -> Result<Vec<Card>, DeviceError> {
    match kind {
        Kind::Host => Ok(Vec::new()),
        Kind::Wgpu(filter) => fitting_adapters(filter.as_ref()),
        Kind::Cuda(filter) => {
            let options = filter.iter().cloned().fold(CudaOptions::new(), CudaOptions::with_gpu);
            let found = CudaBackend::new(options);
            found.enumerate()?; // where there is none, the error names what is missing
            Ok(found.gpus().map(|gpu| Card::Cuda(gpu.ordinal)).collect())
        }
    }
}

/// The adapters that a filter fits. Without a filter a GPU is meant, where there is one.
fn fitting_adapters(filter: Option<&AdapterFilter>) -> Result<Vec<Card>, DeviceError> {
    let options = filter.cloned().into_iter().fold(WgpuOptions::new(), WgpuOptions::with_adapter);
    let found = WgpuBackend::new(options);
    found.enumerate()?; // where there is none, the error names those that were looked at
    let all = || found.adapters().map(|facts| Card::Wgpu(facts.index));
    let gpus = found.adapters().filter(|facts| is_gpu(facts.adapter.kind));
    let gpus: Vec<_> = gpus.map(|facts| Card::Wgpu(facts.index)).collect();
    Ok(if filter.is_some() || gpus.is_empty() { all().collect() } else { gpus })
}

/// A backend that lists one card.
enum GpuBackend {
    Wgpu(WgpuBackend),
    Cuda(CudaBackend),
}

/// What is wanted of a card: its number of logical devices, and the quotas of some of them.
#[derive(Default)]
struct Share {
    logical_devices: usize,
    quotas: Vec<(usize, u64)>,
}

/// A backend for each card, with all devices that are on it: they share one driver's device and one
/// memory, so they fall together and divide it, whatever filters named the card.
fn backends(devices: &[Wanted], places: &[Option<Place>]) -> HashMap<Card, GpuBackend> {
    let mut shares: HashMap<Card, Share> = HashMap::new();
    for (wanted, place) in devices.iter().zip(places) {
        let Some(Place { card, logical }) = *place else { continue };
        let share = shares.entry(card).or_default();
        share.logical_devices = share.logical_devices.max(logical + 1);
        share.quotas.extend(wanted.memory_bytes.map(|bytes| (logical, bytes)));
    }
    shares.into_iter().map(|(card, share)| (card, backend(card, share))).collect()
}

fn backend(card: Card, share: Share) -> GpuBackend {
    let quotas = share.quotas.into_iter();
    match card {
        Card::Wgpu(index) => {
            let options = WgpuOptions::new().with_adapter(AdapterFilter::Index(index));
            let options = options.with_logical_devices(share.logical_devices);
            GpuBackend::Wgpu(WgpuBackend::new(quotas.fold(options, |options, (logical, bytes)| {
                options.with_memory_bytes_of(logical, bytes)
            })))
        }
        Card::Cuda(ordinal) => {
            let options = CudaOptions::new().with_gpu(GpuFilter::Ordinal(ordinal));
            let options = options.with_logical_devices(share.logical_devices);
            GpuBackend::Cuda(CudaBackend::new(quotas.fold(options, |options, (logical, bytes)| {
                options.with_memory_bytes_of(logical, bytes)
            })))
        }
    }
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
