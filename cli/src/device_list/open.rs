//! Opening the devices of a list.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;

use hopwise_backend_wgpu::{AdapterFilter, WgpuBackend, WgpuDevice, WgpuOptions};
use hopwise_core::device::Device;
use hopwise_core::error::DeviceError;
use hopwise_core::host::{DEFAULT_MEMORY_BYTES, HostBackend, HostDevice, HostOptions};

use super::{Kind, Wanted, is_gpu};

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
    let mut counts = HashMap::new();
    for group in devices.iter().filter_map(wgpu_group) {
        *counts.entry(group).or_insert(0) += 1;
    }
    let mut adapters = HashMap::new();
    for (group, count) in counts {
        let opened = open_adapters(group.0.as_ref(), group.1, count)?;
        adapters.insert(group, opened.into_iter());
    }
    let next = devices.iter().map(|wanted| match wgpu_group(wanted) {
        None => hosts.next().map(OpenDevice::Host),
        Some(group) => adapters.get_mut(&group).and_then(Iterator::next).map(OpenDevice::Wgpu),
    });
    Ok(next.map(|device| device.expect("as many were opened as are wanted")).collect())
}

/// Devices that are opened together: those with one filter and one quota.
fn wgpu_group(wanted: &Wanted) -> Option<(Option<AdapterFilter>, Option<u64>)> {
    match &wanted.kind {
        Kind::Host => None,
        Kind::Wgpu(filter) => Some((filter.clone(), wanted.memory_bytes)),
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

/// Opens so many devices on the adapters that fit, one after the other and around again.
fn open_adapters(
    filter: Option<&AdapterFilter>,
    memory_bytes: Option<u64>,
    count: usize,
) -> Result<Vec<Arc<WgpuDevice>>, DeviceError> {
    let found = WgpuBackend::new(with_filters(WgpuOptions::new(), filter.cloned()));
    // Who names no adapter means a GPU where there is one.
    let gpus = found.adapters().filter(|facts| is_gpu(facts.adapter.kind));
    let gpus: Vec<_> = gpus.map(|facts| AdapterFilter::Index(facts.index)).collect();
    let (filters, fitting) = match filter {
        Some(filter) => (vec![filter.clone()], found.adapters().count()),
        None if gpus.is_empty() => (gpus, found.adapters().count()),
        None => (gpus.clone(), gpus.len()),
    };
    let per_adapter = count.div_ceil(fitting.max(1));
    let options = with_filters(WgpuOptions::new(), filters).with_logical_devices(per_adapter);
    let options = match memory_bytes {
        Some(bytes) => options.with_memory_bytes(bytes),
        None => options,
    };
    let backend = WgpuBackend::new(options);
    let place = |index: usize| (index % fitting.max(1)) * per_adapter + index / fitting.max(1);
    (0..count).map(|index| backend.open_wgpu(place(index))).collect()
}

fn with_filters(
    options: WgpuOptions,
    filters: impl IntoIterator<Item = AdapterFilter>,
) -> WgpuOptions {
    filters.into_iter().fold(options, WgpuOptions::with_adapter)
}
