//! Devices as they are written: `cuda:2,wgpu:1,host:1`, `wgpu[llvmpipe]:1`, `cuda[GPU-5a4f]:1`.

use std::fmt;
use std::str::FromStr;

use hopwise_backend_cuda::{CudaBackend, CudaOptions, GpuFilter};
use hopwise_backend_wgpu::{AdapterFilter, AdapterKind};
use hopwise_core::host::DEFAULT_MEMORY_BYTES;

pub(crate) mod open;
mod places;

#[cfg(test)]
mod tests;

/// Most devices of one run. Each host device has a thread or more.
pub(crate) const MOST_DEVICES: usize = 256;

/// The kinds of device that a run can be made of.
pub(crate) const KINDS: &str = "host, wgpu, wgpu[NAME, INDEX or PCI ADDRESS], cuda, \
                                cuda[UUID, PCI ADDRESS, ORDINAL or NAME]";

/// What a device is driven through.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Threads of this process.
    Host,
    /// An adapter: one that the filter names, else a GPU, else whatever adapter there is.
    Wgpu(Option<AdapterFilter>),
    /// A GPU of the CUDA driver: one that the filter names, or any.
    Cuda(Option<GpuFilter>),
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, filter) = match text.split_once('[') {
            Some((kind, rest)) => (kind, rest.strip_suffix(']').map(str::trim)),
            None => (text, None),
        };
        let is_named = filter.is_some_and(|filter| !filter.is_empty());
        let is_plain = text == kind;
        match (kind, filter) {
            ("host", None) if is_plain => Ok(Self::Host),
            ("wgpu", None) if is_plain => Ok(Self::Wgpu(None)),
            ("wgpu", Some(name)) if is_named => Ok(Self::Wgpu(Some(AdapterFilter::parse(name)))),
            ("cuda", None) if is_plain => Ok(Self::Cuda(None)),
            ("cuda", Some(name)) if is_named => Ok(Self::Cuda(Some(GpuFilter::parse(name)))),
            _ => Err(format!("no devices of kind `{text}` can be run on; allowed: {KINDS}")),
        }
    }
}

/// A device that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) kind: Kind,
    /// Threads of a host device; without a number it has its share of the processors.
    pub(crate) workers: Option<usize>,
    /// Quota; without one the backend decides.
    pub(crate) memory_bytes: Option<u64>,
}

impl Wanted {
    /// Memory that the device has at most, as far as that is known before it is opened.
    pub(crate) fn largest_memory_bytes(&self) -> u64 {
        self.memory_bytes.unwrap_or(match self.kind {
            Kind::Host => DEFAULT_MEMORY_BYTES,
            Kind::Wgpu(_) | Kind::Cuda(_) => u64::MAX,
        })
    }
}

impl From<Kind> for Wanted {
    fn from(kind: Kind) -> Self {
        Self { kind, workers: None, memory_bytes: None }
    }
}

/// The devices of a run, in the order of their indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceList(pub(crate) Vec<Wanted>);

impl DeviceList {
    /// Number of devices.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// What a run uses that names no devices: the GPUs of this machine and a host device, or three
    /// host devices where there is no GPU. Two devices at least are on GPUs, so that kernels can
    /// move from one to the other. A GPU that CUDA can drive is not opened through wgpu too.
    pub(crate) fn of_this_machine() -> Self {
        let cuda = CudaBackend::new(CudaOptions::new());
        let cuda: Vec<_> = cuda.gpus().map(|gpu| gpu.pci_address.clone()).collect();
        let is_new = |address: &Option<String>| {
            let address = address.as_ref().map(|address| address.to_lowercase());
            address.is_none() || !cuda.contains(&address)
        };
        let probe = hopwise_backend_wgpu::probe();
        let gpus = probe.adapters().iter().enumerate().filter(|(_, adapter)| is_gpu(adapter.kind));
        let wgpu = gpus.filter(|(_, adapter)| is_new(&adapter.pci_address));
        let on_cuda = cuda.iter().map(|_| Kind::Cuda(None));
        let on_wgpu = wgpu.map(|(index, _)| Kind::Wgpu(Some(AdapterFilter::Index(index))));
        let mut kinds: Vec<_> = on_cuda.chain(on_wgpu).collect();
        match &kinds[..] {
            [] => kinds = vec![Kind::Host; 3],
            [only] => kinds = vec![only.clone(), only.clone(), Kind::Host],
            _ => kinds.push(Kind::Host),
        }
        Self(kinds.into_iter().map(Wanted::from).collect())
    }
}

/// Whether an adapter is real hardware, not a driver that computes on the processor.
pub(crate) fn is_gpu(kind: AdapterKind) -> bool {
    matches!(kind, AdapterKind::Discrete | AdapterKind::Integrated | AdapterKind::Virtual)
}

impl FromStr for DeviceList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut devices = Vec::new();
        for group in groups(text) {
            let group = group.trim();
            // A name in brackets may have colons of its own, the count has none.
            let Some((kind, count)) =
                group.rsplit_once(':').filter(|(_, count)| !count.contains(']'))
            else {
                return Err(format!("`{group}` is not KIND:COUNT, as in host:3"));
            };
            let kind = kind.parse::<Kind>()?;
            let count = count.parse().ok().filter(|count| (1..=MOST_DEVICES).contains(count));
            let count = count.ok_or_else(|| {
                format!("the count in `{group}` must be a whole number from 1 to {MOST_DEVICES}")
            })?;
            devices.extend(std::iter::repeat_n(Wanted::from(kind), count));
        }
        if devices.len() > MOST_DEVICES {
            let count = devices.len();
            return Err(format!("{count} devices; at most {MOST_DEVICES} are allowed"));
        }
        Ok(Self(devices))
    }
}

/// Splits at the commas that are not in brackets: names of adapters have commas, too.
fn groups(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0usize;
    text.split(move |character| {
        match character {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    })
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => formatter.write_str("host"),
            Self::Wgpu(None) => formatter.write_str("wgpu"),
            Self::Wgpu(Some(AdapterFilter::Index(index))) => write!(formatter, "wgpu[{index}]"),
            Self::Wgpu(Some(AdapterFilter::Name(text) | AdapterFilter::PciAddress(text))) => {
                write!(formatter, "wgpu[{text}]")
            }
            Self::Cuda(None) => formatter.write_str("cuda"),
            Self::Cuda(Some(GpuFilter::Ordinal(ordinal))) => write!(formatter, "cuda[{ordinal}]"),
            Self::Cuda(Some(
                GpuFilter::Uuid(text) | GpuFilter::PciAddress(text) | GpuFilter::Name(text),
            )) => {
                write!(formatter, "cuda[{text}]")
            }
        }
    }
}
