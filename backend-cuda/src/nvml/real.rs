//! The questions, asked of the NVML that was loaded.

use hopwise_topology::{PciAddress, PeerCapability, PeerStatus};
use nvml_wrapper::enum_wrappers::device::{
    Clock, EccCounter, MemoryError, P2pCapabilitiesIndex, P2pStatus, PerformanceState,
    TopologyLevel,
};
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::error::{NvmlError, nvml_try};
use nvml_wrapper::struct_wrappers::device::PciInfo;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::sys_exports::field_id::NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON;
use nvml_wrapper::{Device, Nvml};

use super::management::{
    Ancestor, Answer, ClockDomain, Clocks, Fault, Instance, Load, Management, Memory, Pcie, Remote,
    Rows, Status,
};

/// Words of a mask of NUMA nodes: room for 1024 of them.
const NUMA_MASK_WORDS: usize = 16;

/// Scope of an affinity: the NUMA node, not the socket (`NVML_AFFINITY_SCOPE_NODE`).
#[cfg(target_os = "linux")]
const NODE_SCOPE: std::ffi::c_uint = 0;

/// Remote ends of NVLinks (`nvmlIntNvLinkDeviceType_t`).
const REMOTE_GPU: u32 = 0;
const REMOTE_IBM_NPU: u32 = 1;
const REMOTE_SWITCH: u32 = 2;

/// NVML, loaded once and never unloaded.
pub(super) struct Real(pub(super) &'static Nvml);

/// What a failed call of the wrapper means.
pub(super) fn fault(call: &'static str) -> impl Fn(NvmlError) -> Fault {
    move |error| {
        let status = match error {
            NvmlError::NotSupported => Status::NotSupported,
            // NVML says so of a lane, instance or device past the last one.
            NvmlError::NotFound | NvmlError::InvalidArg => Status::NotFound,
            NvmlError::Timeout => Status::Timeout,
            NvmlError::GpuLost => Status::Lost,
            NvmlError::ResetRequired => Status::ResetRequired,
            NvmlError::NoPermission => Status::NoPermission,
            NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound => Status::NoFunction,
            other => Status::Other(other.to_string()),
        };
        Fault { call, status }
    }
}

impl Real {
    pub(super) fn device(&self, gpu: u32) -> Answer<Device<'static>> {
        self.0.device_by_index(gpu).map_err(fault("nvmlDeviceGetHandleByIndex"))
    }

    fn ask<T>(
        &self,
        gpu: u32,
        call: &'static str,
        question: impl FnOnce(&Device<'static>) -> Result<T, NvmlError>,
    ) -> Answer<T> {
        question(&self.device(gpu)?).map_err(fault(call))
    }
}

impl Management for Real {
    fn gpu_count(&self) -> Answer<u32> {
        self.0.device_count().map_err(fault("nvmlDeviceGetCount"))
    }

    fn uuid(&self, gpu: u32) -> Answer<String> {
        self.ask(gpu, "nvmlDeviceGetUUID", Device::uuid)
    }

    fn pci(&self, gpu: u32) -> Answer<PciAddress> {
        const CALL: &str = "nvmlDeviceGetPciInfo";
        let info = self.ask(gpu, CALL, Device::pci_info)?;
        let text = || Status::Other(format!("`{}` is no PCI address", info.bus_id));
        address(&info).ok_or_else(|| Fault { call: CALL, status: text() })
    }

    fn name(&self, gpu: u32) -> Answer<String> {
        self.ask(gpu, "nvmlDeviceGetName", Device::name)
    }

    fn serial(&self, gpu: u32) -> Answer<String> {
        self.ask(gpu, "nvmlDeviceGetSerial", Device::serial)
    }

    fn compute_capability(&self, gpu: u32) -> Answer<(u32, u32)> {
        const CALL: &str = "nvmlDeviceGetCudaComputeCapability";
        let found = self.ask(gpu, CALL, Device::cuda_compute_capability)?;
        let parts = u32::try_from(found.major).ok().zip(u32::try_from(found.minor).ok());
        let status = || Status::Other("a negative number".to_owned());
        parts.ok_or_else(|| Fault { call: CALL, status: status() })
    }

    fn memory(&self, gpu: u32) -> Answer<Memory> {
        let memory = self.ask(gpu, "nvmlDeviceGetMemoryInfo", Device::memory_info)?;
        Ok(Memory { total_bytes: memory.total, free_bytes: memory.free })
    }

    fn clocks(&self, gpu: u32, domain: ClockDomain) -> Answer<Clocks> {
        let clock = || match domain {
            ClockDomain::Multiprocessor => Clock::SM,
            ClockDomain::Memory => Clock::Memory,
        };
        let now_mhz =
            self.ask(gpu, "nvmlDeviceGetClockInfo", |device| device.clock_info(clock()))?;
        let max_mhz =
            self.ask(gpu, "nvmlDeviceGetMaxClockInfo", |device| device.max_clock_info(clock()))?;
        Ok(Clocks { now_mhz, max_mhz })
    }

    fn numa_nodes(&self, gpu: u32) -> Answer<Vec<u32>> {
        let mask = numa_mask(&self.device(gpu)?)?;
        Ok((0..).zip(mask).filter(|&(_, is_set)| is_set).map(|(node, _)| node).collect())
    }

    fn is_divided(&self, gpu: u32) -> Answer<bool> {
        Ok(self.ask(gpu, "nvmlDeviceGetMigMode", Device::mig_mode)?.current != 0)
    }

    fn most_instances(&self, gpu: u32) -> Answer<u32> {
        self.ask(gpu, "nvmlDeviceGetMaxMigDeviceCount", Device::mig_device_count)
    }

    fn instance(&self, gpu: u32, number: u32) -> Answer<Instance> {
        let instance = self.ask(gpu, "nvmlDeviceGetMigDeviceHandleByIndex", |device| {
            device.mig_device_by_index(number)
        })?;
        let uuid = instance.uuid().map_err(fault("nvmlDeviceGetUUID"))?;
        Ok(Instance { uuid, memory_bytes: instance.memory_info().ok().map(|memory| memory.total) })
    }

    fn pcie(&self, gpu: u32) -> Answer<Pcie> {
        let device = self.device(gpu)?;
        let lanes_now =
            device.current_pcie_link_width().map_err(fault("nvmlDeviceGetCurrPcieLinkWidth"))?;
        let known = |number: Result<u32, NvmlError>| {
            number.ok().and_then(|number| u8::try_from(number).ok()).filter(|&number| number > 0)
        };
        Ok(Pcie {
            generation_now: known(device.current_pcie_link_gen()),
            lanes_now: known(Ok(lanes_now)),
            generation_max: known(device.max_pcie_link_gen()),
            lanes_max: known(device.max_pcie_link_width()),
        })
    }

    fn ancestor(&self, gpu: u32, other: u32) -> Answer<Ancestor> {
        let (gpu, other) = (self.device(gpu)?, self.device(other)?);
        Ok(match common_ancestor(self.0, &gpu, &other)? {
            TopologyLevel::Internal => Ancestor::Internal,
            TopologyLevel::Single => Ancestor::Single,
            TopologyLevel::Multiple => Ancestor::Multiple,
            TopologyLevel::HostBridge => Ancestor::HostBridge,
            TopologyLevel::Node => Ancestor::Node,
            TopologyLevel::System => Ancestor::System,
        })
    }

    fn peer(&self, gpu: u32, other: u32, capability: PeerCapability) -> Answer<PeerStatus> {
        let index = match capability {
            PeerCapability::Read => P2pCapabilitiesIndex::Read,
            PeerCapability::Write => P2pCapabilitiesIndex::Write,
            PeerCapability::NvLink => P2pCapabilitiesIndex::NvLink,
            PeerCapability::Atomics => P2pCapabilitiesIndex::Atomics,
            PeerCapability::Pcie => P2pCapabilitiesIndex::Prop,
        };
        let other = self.device(other)?;
        let status =
            self.ask(gpu, "nvmlDeviceGetP2PStatus", |device| device.p2p_status(&other, index))?;
        Ok(match status {
            P2pStatus::Ok => PeerStatus::Supported,
            P2pStatus::ChipsetNotSupported => PeerStatus::ChipsetNotSupported,
            P2pStatus::GpuNotSupported => PeerStatus::GpuNotSupported,
            P2pStatus::IohTopologyNotSupported => PeerStatus::TopologyNotSupported,
            P2pStatus::DisabledByRegkey => PeerStatus::DisabledByRegistryKey,
            P2pStatus::NotSupported => PeerStatus::NotSupported,
            P2pStatus::Unknown => PeerStatus::Unknown,
        })
    }

    fn lane_is_up(&self, gpu: u32, lane: u32) -> Answer<bool> {
        self.ask(gpu, "nvmlDeviceGetNvLinkState", |device| {
            device.link_wrapper_for(lane).is_active()
        })
    }

    fn lane_version(&self, gpu: u32, lane: u32) -> Answer<u32> {
        self.ask(gpu, "nvmlDeviceGetNvLinkVersion", |device| {
            device.link_wrapper_for(lane).version()
        })
    }

    /// Asked without the wrapper, which writes NVML's answer into a temporary and then returns
    /// `Unknown` for every link (nvml-wrapper 0.13, `NvLink::remote_device_type`).
    fn lane_remote(&self, gpu: u32, lane: u32) -> Answer<Remote> {
        let kind = self.ask(gpu, "nvmlDeviceGetNvLinkRemoteDeviceType", |device| {
            let function = self.0.lib().nvmlDeviceGetNvLinkRemoteDeviceType.as_ref();
            let function =
                function.map_err(|error| NvmlError::FailedToLoadSymbol(error.to_string()))?;
            let mut kind = u32::MAX;
            // SAFETY: the handle is of this NVML, which stays loaded; `kind` is an enumeration of
            // C's size and lives until the call returns.
            nvml_try(unsafe { function(device.handle(), lane, &raw mut kind) })?;
            Ok(kind)
        })?;
        Ok(match kind {
            REMOTE_GPU => Remote::Gpu,
            REMOTE_IBM_NPU => Remote::Processor,
            REMOTE_SWITCH => Remote::Switch,
            _ => Remote::Unknown,
        })
    }

    fn lane_remote_pci(&self, gpu: u32, lane: u32) -> Answer<Option<PciAddress>> {
        let info = self.ask(gpu, "nvmlDeviceGetNvLinkRemotePciInfo", |device| {
            device.link_wrapper_for(lane).remote_pci_info()
        })?;
        Ok(address(&info))
    }

    fn lane_megabytes_per_s(&self, gpu: u32) -> Answer<u32> {
        const CALL: &str = "nvmlDeviceGetFieldValues";
        let sample = self.ask(gpu, CALL, |device| {
            let fields = [FieldId(NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON)];
            device.field_values_for(&fields)?.into_iter().next().unwrap_or(Err(NvmlError::NoData))
        })?;
        let value = sample.value.map_err(fault(CALL))?;
        let number = match value {
            SampleValue::U32(value) => Some(value),
            SampleValue::U64(value) => u32::try_from(value).ok(),
            _ => None,
        };
        let none = || Fault { call: CALL, status: Status::NotSupported };
        number.filter(|&number| number > 0).ok_or_else(none)
    }

    fn load(&self, gpu: u32) -> Answer<Load> {
        let device = self.device(gpu)?;
        let busy = device.utilization_rates().map_err(fault("nvmlDeviceGetUtilizationRates"))?;
        let state = device.performance_state().ok().filter(|s| *s != PerformanceState::Unknown);
        let performance_state = state.map(|state| state.as_c());
        Ok(Load { busy_percent: busy.gpu, performance_state })
    }

    fn throttle_reasons(&self, gpu: u32) -> Answer<u64> {
        let reasons = self.ask(gpu, "nvmlDeviceGetCurrentClocksThrottleReasons", |device| {
            device.current_throttle_reasons()
        })?;
        Ok(reasons.bits())
    }

    fn uncorrected_errors(&self, gpu: u32) -> Answer<u64> {
        self.ask(gpu, "nvmlDeviceGetTotalEccErrors", |device| {
            device.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile)
        })
    }

    fn pages_wait_for_retirement(&self, gpu: u32) -> Answer<bool> {
        const CALL: &str = "nvmlDeviceGetRetiredPagesPendingStatus";
        self.ask(gpu, CALL, Device::are_pages_pending_retired)
    }

    /// The wrapper does not have this call.
    fn rows(&self, gpu: u32) -> Answer<Rows> {
        self.ask(gpu, "nvmlDeviceGetRemappedRows", |device| {
            let function = self.0.lib().nvmlDeviceGetRemappedRows.as_ref();
            let function =
                function.map_err(|error| NvmlError::FailedToLoadSymbol(error.to_string()))?;
            let [mut corrected, mut uncorrected, mut pending, mut failed] = [0; 4];
            // SAFETY: the handle is of this NVML, which stays loaded; the four numbers live until
            // the call returns.
            let code = unsafe {
                let handle = device.handle();
                function(
                    handle,
                    &raw mut corrected,
                    &raw mut uncorrected,
                    &raw mut pending,
                    &raw mut failed,
                )
            };
            nvml_try(code)?;
            let (is_pending, has_failed) = (pending != 0, failed != 0);
            Ok(Rows { after_uncorrected: uncorrected, is_pending, has_failed })
        })
    }
}

/// The address; `None` where NVML fills in all ones or zeros for one that it does not know.
fn address(info: &PciInfo) -> Option<PciAddress> {
    let found: PciAddress = info.bus_id.parse().ok()?;
    let is_zero = found.domain == 0 && found.bus == 0 && found.device == 0;
    let is_all_ones = found.domain == u32::MAX || info.domain == u32::MAX || found.bus == u8::MAX;
    (!is_zero && !is_all_ones).then_some(found)
}

#[cfg(target_os = "linux")]
fn numa_mask(device: &Device<'_>) -> Answer<impl Iterator<Item = bool> + use<>> {
    let words = device
        .memory_affinity(NUMA_MASK_WORDS, NODE_SCOPE)
        .map_err(fault("nvmlDeviceGetMemoryAffinity"))?;
    Ok(words
        .into_iter()
        .flat_map(|word| (0..std::ffi::c_ulong::BITS).map(move |bit| word >> bit & 1 != 0)))
}

#[cfg(not(target_os = "linux"))]
fn numa_mask(_device: &Device<'_>) -> Answer<[bool; NUMA_MASK_WORDS]> {
    Err(Fault { call: "nvmlDeviceGetMemoryAffinity", status: Status::NotSupported })
}

#[cfg(target_os = "linux")]
fn common_ancestor(nvml: &Nvml, one: &Device<'_>, other: &Device<'_>) -> Answer<TopologyLevel> {
    nvml.topology_common_ancestor(one, other).map_err(fault("nvmlDeviceGetTopologyCommonAncestor"))
}

#[cfg(not(target_os = "linux"))]
fn common_ancestor(_nvml: &Nvml, _one: &Device<'_>, _other: &Device<'_>) -> Answer<TopologyLevel> {
    Err(Fault { call: "nvmlDeviceGetTopologyCommonAncestor", status: Status::NotSupported })
}
