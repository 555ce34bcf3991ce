//! What is known about an adapter before it is opened.

use std::path::Path;

use hopwise_core::device_info::{BackendKind, DeviceIdentity, DeviceInfo, PcieLink};

use crate::adapter::Adapter;
use crate::limits::Limits;
use crate::memory::{self, AdapterMemory};
use crate::options::WgpuOptions;
use crate::sysfs;

/// Memory that an adapter is taken to have whose driver does not tell: 2 GiB.
pub const ESTIMATED_MEMORY_BYTES: u64 = 2 << 30;

/// An adapter with all that is known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AdapterFacts {
    /// Its place in the list of [`probe()`](crate::probe()), by which a filter can name it.
    pub index: usize,
    /// Name, kind, PCI address and APIs.
    pub adapter: Adapter,
    /// Its memory, where the driver tells; else [`ESTIMATED_MEMORY_BYTES`] are assumed.
    pub memory: Option<AdapterMemory>,
    /// NUMA node of the host that it hangs on, where Linux knows.
    pub numa_node: Option<u32>,
    /// Its PCI Express link at its best, where Linux knows.
    pub pcie: Option<PcieLink>,
    /// Smallest and largest number of invocations of a subgroup.
    pub subgroup_sizes: (u32, u32),
    /// Largest binding in bytes: a larger state is bound in segments.
    pub max_binding_bytes: u64,
    /// Largest state of one kernel in bytes: as many segments as a stage has bindings for.
    pub max_state_bytes: u64,
    /// Most invocations of a workgroup.
    pub max_workgroup_invocations: u32,
}

impl AdapterFacts {
    pub(crate) fn new(index: usize, adapter: Adapter, handle: &wgpu::Adapter) -> Self {
        let limits = Limits::new(&handle.limits());
        let info = handle.get_info();
        let devices = Path::new(sysfs::PCI_DEVICES);
        let address = adapter.pci_address.as_deref();
        Self {
            index,
            memory: memory::ask(handle),
            numa_node: address.and_then(|address| sysfs::numa_node(devices, address)),
            pcie: address.and_then(|address| sysfs::pcie_link(devices, address)),
            subgroup_sizes: (info.subgroup_min_size, info.subgroup_max_size),
            max_binding_bytes: limits.max_binding_bytes,
            max_state_bytes: limits.max_state_bytes(),
            max_workgroup_invocations: limits.workgroups.max_invocations,
            adapter,
        }
    }

    /// The quota of a logical device. One that is opened again has the quota that it had.
    pub(crate) fn quota_bytes(&self, logical: usize, options: &WgpuOptions) -> u64 {
        let total = self.memory.map_or(ESTIMATED_MEMORY_BYTES, |memory| memory.total_bytes);
        let own = options.own_memory_bytes.get(&(logical % options.logical_devices)).copied();
        own.or(options.memory_bytes).unwrap_or(total / options.logical_devices as u64)
    }

    /// The facts about one of the logical devices that are opened here.
    pub(crate) fn device_info(
        &self,
        ordinal: usize,
        logical: usize,
        options: &WgpuOptions,
    ) -> DeviceInfo {
        let (quota, name) = (self.quota_bytes(logical, options), &self.adapter.name);
        let free = self.memory.and_then(|memory| memory.available_bytes).unwrap_or(quota);
        let mut info = DeviceInfo::new(ordinal, name.as_str(), BackendKind::Wgpu)
            .with_identity(self.identity(logical))
            .with_failure_domain(self.failure_domain())
            .with_memory(quota)
            .with_available_memory(quota.min(free));
        info.numa_node = self.numa_node;
        info.pcie = self.pcie;
        info
    }

    /// The PCI address says which card it is. The first logical device is the card itself.
    fn identity(&self, logical: usize) -> DeviceIdentity {
        match &self.adapter.pci_address {
            Some(address) if logical == 0 => DeviceIdentity::PciAddress(address.to_lowercase()),
            Some(address) => {
                DeviceIdentity::PciAddress(format!("{}/{logical}", address.to_lowercase()))
            }
            None => DeviceIdentity::Unstable {
                backend: BackendKind::Wgpu,
                adapter: self.index,
                logical,
            },
        }
    }

    /// What all logical devices of the card have in common.
    fn failure_domain(&self) -> String {
        match &self.adapter.pci_address {
            Some(address) => format!("PCI {}", address.to_lowercase()),
            None => format!("wgpu adapter {}", self.index),
        }
    }
}
