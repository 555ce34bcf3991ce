//! Facts about GPUs that NVML knows and the CUDA driver does not.

use hopwise_topology::PciAddress;

use super::complaints::Complaints;
use super::management::{ClockDomain, Management};

/// One GPU of the machine. What NVML does not say is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ManagedGpu {
    /// The index of NVML and nvidia-smi. It is a label: CUDA numbers GPUs in another order, and
    /// `CUDA_VISIBLE_DEVICES` changes CUDA's numbers only.
    pub nvml_index: u32,
    /// As the driver writes it: `GPU-...`.
    pub uuid: Option<String>,
    /// Where it sits on the PCI bus.
    pub pci: Option<PciAddress>,
    /// The product's name.
    pub name: Option<String>,
    /// The number printed on the board.
    pub serial: Option<String>,
    /// Major and minor number of the compute capability.
    pub compute_capability: Option<(u32, u32)>,
    /// All memory, in bytes.
    pub memory_total_bytes: Option<u64>,
    /// Memory that is free now, in bytes.
    pub memory_free_bytes: Option<u64>,
    /// Clock of the multiprocessors.
    pub multiprocessor_clock: Option<ClockFacts>,
    /// Clock of the memory.
    pub memory_clock: Option<ClockFacts>,
    /// Generation and lanes of the PCIe link now. An idle GPU shows generation 1 to save power.
    pub pcie_now: Option<(u8, u8)>,
    /// Generation and lanes of the PCIe link at best.
    pub pcie_max: Option<(u8, u8)>,
    /// NUMA nodes of the host that are near.
    pub numa_nodes: Vec<u32>,
    /// Whether it is divided into instances (MIG); `None` where it cannot be.
    pub is_divided: Option<bool>,
    /// Its instances, if it is divided.
    pub instances: Vec<InstanceFacts>,
}

/// A clock in MHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockFacts {
    /// Now; an idle GPU slows down.
    pub now_mhz: u32,
    /// At most.
    pub max_mhz: u32,
}

/// An instance of a divided GPU (MIG), which programs see as a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstanceFacts {
    /// As the driver writes it: `MIG-...`.
    pub uuid: String,
    /// UUID of the GPU that it is a part of; the two fall together.
    pub parent_uuid: Option<String>,
    /// Its memory, in bytes.
    pub memory_total_bytes: Option<u64>,
}

/// The facts about each GPU that answers, and what could not be asked.
pub(super) fn facts(nvml: &dyn Management) -> (Vec<ManagedGpu>, Vec<String>) {
    let count = match nvml.gpu_count() {
        Ok(count) => count,
        Err(fault) => {
            return (Vec::new(), vec![format!("{fault}; {}", fault.status.remedy())]);
        }
    };
    let mut complaints = Complaints::default();
    let gpus = (0..count).filter_map(|index| of_gpu(nvml, index, &mut complaints)).collect();
    (gpus, complaints.into_texts().collect())
}

/// Of one GPU; nothing if it is lost before it has said who it is.
fn of_gpu(nvml: &dyn Management, index: u32, complaints: &mut Complaints) -> Option<ManagedGpu> {
    let name = format!("GPU{index}");
    let uuid = complaints.take(index, &name, nvml.uuid(index));
    let pci = complaints.take(index, &name, nvml.pci(index));
    if uuid.is_none() && pci.is_none() {
        return None;
    }
    let mut clock = |domain| {
        let clocks = complaints.take_if_any(index, &name, nvml.clocks(index, domain))?;
        Some(ClockFacts { now_mhz: clocks.now_mhz, max_mhz: clocks.max_mhz })
    };
    let multiprocessor_clock = clock(ClockDomain::Multiprocessor);
    let memory_clock = clock(ClockDomain::Memory);
    let memory = complaints.take_if_any(index, &name, nvml.memory(index));
    let pcie = complaints.take_if_any(index, &name, nvml.pcie(index)).unwrap_or_default();
    let is_divided = complaints.take_if_any(index, &name, nvml.is_divided(index));
    let mut instances = Vec::new();
    if is_divided == Some(true) {
        let most = complaints.take(index, &name, nvml.most_instances(index)).unwrap_or(0);
        for number in 0..most {
            let subject = format!("instance {number} of {name}");
            let found = complaints.take_if_any(index, &subject, nvml.instance(index, number));
            instances.extend(found.map(|instance| InstanceFacts {
                uuid: instance.uuid,
                parent_uuid: uuid.clone(),
                memory_total_bytes: instance.memory_bytes,
            }));
        }
    }
    Some(ManagedGpu {
        nvml_index: index,
        uuid,
        pci,
        name: complaints.take(index, &name, nvml.name(index)),
        serial: complaints.take_if_any(index, &name, nvml.serial(index)),
        compute_capability: complaints.take_if_any(index, &name, nvml.compute_capability(index)),
        memory_total_bytes: memory.map(|memory| memory.total_bytes),
        memory_free_bytes: memory.map(|memory| memory.free_bytes),
        multiprocessor_clock,
        memory_clock,
        pcie_now: pcie.generation_now.zip(pcie.lanes_now),
        pcie_max: pcie.generation_max.zip(pcie.lanes_max),
        numa_nodes: complaints
            .take_if_any(index, &name, nvml.numa_nodes(index))
            .unwrap_or_default(),
        is_divided,
        instances,
    })
}
