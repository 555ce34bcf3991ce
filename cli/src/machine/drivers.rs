//! What the drivers of this machine say about its GPUs.

use hopwise_backend_cuda::Libraries;
use hopwise_backend_cuda::nvml::{Nvml, NvmlError};
use hopwise_backend_wgpu::{WgpuBackend, WgpuOptions};
use hopwise_topology::{Format, Node, NodeKind, Observations, PcieWidth, Reading, Uplink};

/// A GPU for each adapter that has a PCI address. Software drivers have none, and are no GPUs.
pub(super) fn reading() -> Option<Reading> {
    let backend = WgpuBackend::new(WgpuOptions::new());
    let mut observations = Observations::default();
    for facts in backend.adapters() {
        let address = facts.adapter.pci_address.as_ref().and_then(|text| text.parse().ok());
        let Some(address) = address else { continue };
        let mut node = Node::new(NodeKind::Gpu);
        node.pci = Some(address);
        node.model = Some(facts.adapter.name.clone());
        node.numa_nodes.extend(facts.numa_node);
        node.uplink = facts.pcie.map(|link| {
            let current = PcieWidth { generation: Some(link.generation), lanes: Some(link.lanes) };
            Uplink { current, maximum: PcieWidth::default() }
        });
        observations.add_node(node);
    }
    let is_empty = observations.nodes.is_empty();
    (!is_empty).then_some(Reading { format: Format::Driver, observations })
}

/// What NVIDIA's management library says, where there is one. A machine without it has no NVIDIA
/// driver, which is no problem; one that does not start is.
pub(super) fn management_reading() -> Result<Option<Reading>, String> {
    match Nvml::open(&Libraries::system()) {
        Ok(nvml) => Ok(Some(Reading { format: Format::Nvml, observations: nvml.links() })),
        Err(NvmlError::Missing { .. }) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}
