//! What the driver says about a GPU before it is opened.

use std::ffi::{CStr, c_char, c_int};
use std::fmt::Write;

use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use hopwise_core::device_info::{
    BackendKind, ComputeCapability, DeviceIdentity, DeviceInfo, PcieLink,
};

use crate::context::GpuNames;
use crate::driver::{Driver, DriverStatus};
use crate::nvml::ManagedGpu;
use crate::options::{CudaOptions, pci_address};

#[cfg(test)]
mod tests;

/// Facts about a GPU, or an instance of one that is partitioned (MIG).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GpuFacts {
    /// Its place in the driver's list: a label that depends on the environment, and is not NVML's
    /// index.
    pub ordinal: usize,
    /// What the driver calls it.
    pub name: String,
    /// `GPU-...`, or `MIG-...` for an instance of a partitioned GPU.
    pub uuid: String,
    /// The UUID of the whole GPU, for an instance of a partitioned one.
    pub parent_uuid: Option<String>,
    /// `domain:bus:device.function`, lower case. Instances of a GPU share it.
    pub pci_address: Option<String>,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Which code it runs.
    pub compute_capability: ComputeCapability,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Highest clock of the multiprocessors, in kHz; `None` where the driver does not tell.
    pub clock_khz: Option<u32>,
    /// Highest clock of the memory, in kHz; `None` where the driver does not tell.
    pub memory_clock_khz: Option<u32>,
    /// Whether kernels whose blocks wait for each other can be launched.
    pub cooperative_launch: bool,
    /// Whether its memory is the host's.
    pub is_integrated: bool,
    /// Whether its memory corrects errors.
    pub has_ecc: bool,
    /// Whether a watchdog of the display ends long steps.
    pub has_display_watchdog: bool,
    pub(crate) device: sys::CUdevice,
}

/// Why facts about a GPU are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub(crate) ordinal: usize,
    pub(crate) call: &'static str,
    pub(crate) status: DriverStatus,
}

impl GpuFacts {
    /// Asks the driver about one of its devices.
    pub(crate) fn read(driver: &Driver, ordinal: usize) -> Result<Self, Unreadable> {
        let asked = Asked { driver, ordinal, device: 0 };
        let number = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
        let mut device = 0;
        // SAFETY: `device` lives until the call returns.
        asked.check("cuDeviceGet", unsafe {
            (driver.functions.cuDeviceGet)(&raw mut device, number)
        })?;
        let asked = Asked { device, ..asked };
        let uuid = asked.uuid("cuDeviceGetUuid_v2", driver.functions.cuDeviceGetUuid_v2)?;
        // The older function tells the whole GPU's also for an instance of it.
        let whole = asked.uuid("cuDeviceGetUuid", driver.functions.cuDeviceGetUuid)?;
        let is_instance = whole != uuid;
        let attribute = |attribute| asked.attribute(attribute);
        let is = |wanted| attribute(wanted).map(|value| value != 0);
        let clock = |wanted| attribute(wanted).map(|khz| (khz > 0).then_some(khz));
        Ok(Self {
            ordinal,
            name: asked.name()?,
            uuid: uuid_text(if is_instance { "MIG" } else { "GPU" }, uuid),
            parent_uuid: is_instance.then(|| uuid_text("GPU", whole)),
            pci_address: asked.pci_address()?,
            memory_bytes: asked.memory_bytes()?,
            compute_capability: ComputeCapability {
                major: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                minor: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            },
            multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            clock_khz: clock(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
            memory_clock_khz: clock(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?,
            cooperative_launch: is(Attribute::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)?,
            is_integrated: is(Attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED)?,
            has_ecc: is(Attribute::CU_DEVICE_ATTRIBUTE_ECC_ENABLED)?,
            has_display_watchdog: is(Attribute::CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT)?,
            device,
        })
    }

    /// The quota of a logical device. One that is opened again has the quota that it had.
    pub(crate) fn quota_bytes(&self, logical: usize, options: &CudaOptions) -> u64 {
        let own = options.own_memory_bytes.get(&(logical % options.logical_devices)).copied();
        own.or(options.memory_bytes).unwrap_or(self.memory_bytes / options.logical_devices as u64)
    }

    /// The facts about one of the logical devices that are opened here.
    pub(crate) fn device_info(
        &self,
        ordinal: usize,
        logical: usize,
        options: &CudaOptions,
        managed: Option<&ManagedGpu>,
    ) -> DeviceInfo {
        let identity = match logical {
            0 => self.uuid.clone(),
            _ => format!("{}/{logical}", self.uuid),
        };
        let capability = self.compute_capability;
        let info = DeviceInfo::new(ordinal, self.name.as_str(), BackendKind::Cuda)
            .with_identity(DeviceIdentity::Uuid(identity))
            .with_failure_domain(self.failure_domain())
            .with_memory(self.quota_bytes(logical, options))
            .with_compute_capability(capability.major, capability.minor);
        let Some(managed) = managed else { return info };
        let numa_node = managed.numa_nodes.first().copied();
        let pcie = managed.pcie_max.map(|(generation, lanes)| PcieLink { generation, lanes });
        DeviceInfo { numa_node, pcie, ..info }
    }

    /// The UUID of the whole GPU, by which NVML knows it.
    pub(crate) fn whole_uuid(&self) -> &str {
        self.parent_uuid.as_ref().unwrap_or(&self.uuid)
    }

    pub(crate) fn names(&self) -> GpuNames {
        GpuNames { uuid: self.uuid.clone(), failure_domain: self.failure_domain() }
    }

    /// What instances of a partitioned GPU, and logical devices of any, have in common.
    fn failure_domain(&self) -> String {
        match &self.pci_address {
            Some(address) => format!("PCI {address}"),
            None => self.whole_uuid().to_owned(),
        }
    }
}

/// The UUID as `nvidia-smi -L` prints it.
fn uuid_text(prefix: &str, bytes: [u8; 16]) -> String {
    let mut text = prefix.to_owned();
    for (at, byte) in bytes.into_iter().enumerate() {
        if matches!(at, 0 | 4 | 6 | 8 | 10) {
            text.push('-');
        }
        write!(text, "{byte:02x}").expect("a string takes every text");
    }
    text
}

type GetUuid = unsafe extern "C" fn(*mut sys::CUuuid, sys::CUdevice) -> c_int;

/// One of the driver's devices that is asked.
#[derive(Clone, Copy)]
struct Asked<'a> {
    driver: &'a Driver,
    ordinal: usize,
    device: sys::CUdevice,
}

impl Asked<'_> {
    fn check(&self, call: &'static str, code: c_int) -> Result<(), Unreadable> {
        let ordinal = self.ordinal;
        DriverStatus(code).ok().map_err(|status| Unreadable { ordinal, call, status })
    }

    fn attribute(&self, attribute: Attribute) -> Result<u32, Unreadable> {
        let mut value = 0;
        // SAFETY: `value` lives until the call returns.
        self.check("cuDeviceGetAttribute", unsafe {
            (self.driver.functions.cuDeviceGetAttribute)(&raw mut value, attribute, self.device)
        })?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    fn uuid(&self, call: &'static str, get: GetUuid) -> Result<[u8; 16], Unreadable> {
        let mut uuid = sys::CUuuid { bytes: [0; 16] };
        // SAFETY: `uuid` lives until the call returns.
        self.check(call, unsafe { get(&raw mut uuid, self.device) })?;
        Ok(uuid.bytes.map(|byte| byte.to_ne_bytes()[0]))
    }

    fn name(&self) -> Result<String, Unreadable> {
        self.text("cuDeviceGetName", |text, length| {
            // SAFETY: the driver writes at most so many bytes, the last of them a zero.
            unsafe { (self.driver.functions.cuDeviceGetName)(text, length, self.device) }
        })
    }

    fn pci_address(&self) -> Result<Option<String>, Unreadable> {
        let text = self.text("cuDeviceGetPCIBusId", |text, length| {
            // SAFETY: the driver writes at most so many bytes, the last of them a zero.
            unsafe { (self.driver.functions.cuDeviceGetPCIBusId)(text, length, self.device) }
        })?;
        Ok(pci_address(&text))
    }

    fn memory_bytes(&self) -> Result<u64, Unreadable> {
        let mut bytes = 0;
        // SAFETY: `bytes` lives until the call returns.
        self.check("cuDeviceTotalMem_v2", unsafe {
            (self.driver.functions.cuDeviceTotalMem_v2)(&raw mut bytes, self.device)
        })?;
        Ok(bytes as u64)
    }

    fn text(
        &self,
        call: &'static str,
        get: impl FnOnce(*mut c_char, c_int) -> c_int,
    ) -> Result<String, Unreadable> {
        let mut text = [0_u8; 256];
        self.check(call, get(text.as_mut_ptr().cast(), 256))?;
        let text = CStr::from_bytes_until_nul(&text).unwrap_or_default();
        Ok(text.to_string_lossy().into_owned())
    }
}
