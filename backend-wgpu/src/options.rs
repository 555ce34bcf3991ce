//! Which adapters are used, and as how many devices.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::adapter::{Adapter, Api};

/// How long a read or write waits for a running step unless asked otherwise.
pub const DEFAULT_TRANSFER_WAIT: Duration = Duration::from_secs(2);

/// How long any call waits for the device unless asked otherwise. A fleet's step limit is shorter.
pub const DEFAULT_WAIT_LIMIT: Duration = Duration::from_secs(60);

/// Which adapters a [`WgpuBackend`](crate::WgpuBackend) lists, and as how many logical devices.
///
/// ```
/// use hopwise_backend_wgpu::{AdapterFilter, WgpuOptions};
///
/// let options = WgpuOptions::new()
///     .with_adapter(AdapterFilter::parse("llvmpipe"))
///     .with_logical_devices(2)
///     .with_memory_bytes(256 << 20);
/// # let _ = options;
/// ```
#[derive(Clone, Debug)]
pub struct WgpuOptions {
    pub(crate) apis: Vec<Api>,
    pub(crate) filters: Vec<AdapterFilter>,
    pub(crate) logical_devices: usize,
    pub(crate) memory_bytes: Option<u64>,
    /// By the number of the logical device.
    pub(crate) own_memory_bytes: BTreeMap<usize, u64>,
    pub(crate) transfer_wait: Duration,
    pub(crate) wait_limit: Duration,
    pub(crate) staged_transfers: bool,
}

/// Every adapter, through the API that is preferred, as one device.
impl Default for WgpuOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl WgpuOptions {
    /// Every adapter, through the API that is preferred, as one device.
    #[must_use]
    pub fn new() -> Self {
        Self {
            apis: Api::ALL.to_vec(),
            filters: Vec::new(),
            logical_devices: 1,
            memory_bytes: None,
            own_memory_bytes: BTreeMap::new(),
            transfer_wait: DEFAULT_TRANSFER_WAIT,
            wait_limit: DEFAULT_WAIT_LIMIT,
            staged_transfers: false,
        }
    }

    /// Looks through these APIs only, as far as this system has them.
    #[must_use]
    pub fn with_apis(mut self, apis: &[Api]) -> Self {
        self.apis = apis.to_vec();
        self
    }

    /// Lists adapters that this filter fits. With several filters, those that any of them fits;
    /// with none, all.
    #[must_use]
    pub fn with_adapter(mut self, filter: AdapterFilter) -> Self {
        self.filters.push(filter);
        self
    }

    /// Lists each adapter as so many devices, at least one: each with a queue and a memory quota of
    /// its own. They fail together.
    #[must_use]
    pub fn with_logical_devices(mut self, count: usize) -> Self {
        self.logical_devices = count.max(1);
        self
    }

    /// Sets the memory quota of each device in bytes. Without it the memory of the adapter is
    /// shared out evenly.
    #[must_use]
    pub fn with_memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = Some(bytes);
        self
    }

    /// Sets the memory quota of one of an adapter's logical devices, from 0, in bytes. The others
    /// keep theirs.
    #[must_use]
    pub fn with_memory_bytes_of(mut self, logical_device: usize, bytes: u64) -> Self {
        self.own_memory_bytes.insert(logical_device, bytes);
        self
    }

    /// Sets how long a read or write waits for a running step before it answers that the instance
    /// is busy. [`DEFAULT_TRANSFER_WAIT`] if not called.
    #[must_use]
    pub fn with_transfer_wait(mut self, wait: Duration) -> Self {
        self.transfer_wait = wait;
        self
    }

    /// Sets how long any call waits for the device; then the device counts as unresponsive.
    /// [`DEFAULT_WAIT_LIMIT`] if not called.
    #[must_use]
    pub fn with_wait_limit(mut self, limit: Duration) -> Self {
        self.wait_limit = limit;
        self
    }

    /// Moves state through staging buffers on software adapters too, whose state could be mapped:
    /// to try on any machine what GPUs with memory of their own do.
    #[must_use]
    pub fn with_staged_transfers(mut self) -> Self {
        self.staged_transfers = true;
        self
    }

    pub(crate) fn fits(&self, index: usize, adapter: &Adapter) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| filter.fits(index, adapter))
    }
}

/// Says which adapters are meant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AdapterFilter {
    /// The one at this place in the list of [`probe()`](crate::probe()). Places can change when the
    /// machine starts anew.
    Index(usize),
    /// Those whose name contains this text, in whatever case.
    Name(String),
    /// The one at this PCI address, such as `0000:01:00.0`; the domain `0000:` may be left out.
    PciAddress(String),
}

impl fmt::Display for AdapterFilter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(formatter, "at place {index}"),
            Self::Name(name) => write!(formatter, "called `{name}`"),
            Self::PciAddress(address) => write!(formatter, "at PCI address {address}"),
        }
    }
}

impl AdapterFilter {
    /// Understands a number as an index, `01:00.0` as a PCI address, all else as a name.
    ///
    /// ```
    /// use hopwise_backend_wgpu::AdapterFilter;
    ///
    /// assert_eq!(AdapterFilter::parse("1"), AdapterFilter::Index(1));
    /// assert_eq!(
    ///     AdapterFilter::parse("0000:01:00.0"),
    ///     AdapterFilter::PciAddress("0000:01:00.0".into())
    /// );
    /// assert_eq!(AdapterFilter::parse("H200"), AdapterFilter::Name("H200".into()));
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Self {
        if let Ok(index) = text.parse() {
            return Self::Index(index);
        }
        if is_pci_address(text) {
            return Self::PciAddress(with_domain(text));
        }
        Self::Name(text.to_owned())
    }

    fn fits(&self, index: usize, adapter: &Adapter) -> bool {
        match self {
            Self::Index(wanted) => *wanted == index,
            Self::Name(part) => adapter.name.to_lowercase().contains(&part.to_lowercase()),
            Self::PciAddress(wanted) => adapter
                .pci_address
                .as_ref()
                .is_some_and(|address| with_domain(address) == with_domain(wanted)),
        }
    }
}

/// `01:00.0` or `0000:01:00.0`, in hexadecimal.
fn is_pci_address(text: &str) -> bool {
    let mut parts = text.rsplitn(2, '.');
    let (function, rest) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    let is_hex = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_hexdigit());
    is_hex(function) && (1..=2).contains(&rest.matches(':').count()) && rest.split(':').all(is_hex)
}

fn with_domain(address: &str) -> String {
    let address = address.to_lowercase();
    if address.matches(':').count() == 1 { format!("0000:{address}") } else { address }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::AdapterKind;

    #[test]
    fn adapters_are_chosen_by_index_name_or_address() {
        let card = Adapter {
            name: "NVIDIA H200".to_owned(),
            kind: AdapterKind::Discrete,
            pci_address: Some("0000:0A:00.0".to_owned()),
            vendor_id: 0x10de,
            device_id: 1,
            accesses: Vec::new(),
        };
        let fits = |text: &str| AdapterFilter::parse(text).fits(2, &card);
        for text in ["2", "h200", "0000:0a:00.0", "0a:00.0", "0A:00.0"] {
            assert!(fits(text), "{text}");
        }
        for text in ["1", "H100", "0001:0a:00.0", "0b:00.0"] {
            assert!(!fits(text), "{text}");
        }
        assert!(WgpuOptions::new().fits(7, &card), "without a filter every adapter is listed");
        assert_eq!(AdapterFilter::parse("1.0"), AdapterFilter::Name("1.0".to_owned()));
    }
}
