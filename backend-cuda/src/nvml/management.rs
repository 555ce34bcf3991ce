//! What this crate asks NVML, behind a trait, so that what is made of the answers can be tested
//! without a driver.

use std::fmt;

use hopwise_topology::{PciAddress, PeerCapability, PeerStatus};

/// What NVML says to one question.
pub(super) type Answer<T> = Result<T, Fault>;

/// The questions. A GPU is named by NVML's index, which means nothing outside of NVML; a lane is
/// one NVLink of a GPU.
///
/// Every question may fail by itself. No answer waits for the GPU's work.
pub(super) trait Management: Send + Sync {
    fn gpu_count(&self) -> Answer<u32>;
    fn uuid(&self, gpu: u32) -> Answer<String>;
    fn pci(&self, gpu: u32) -> Answer<PciAddress>;
    fn name(&self, gpu: u32) -> Answer<String>;
    fn serial(&self, gpu: u32) -> Answer<String>;
    /// Major and minor number.
    fn compute_capability(&self, gpu: u32) -> Answer<(u32, u32)>;
    fn memory(&self, gpu: u32) -> Answer<Memory>;
    fn clocks(&self, gpu: u32, domain: ClockDomain) -> Answer<Clocks>;
    /// NUMA nodes of the host that are near to the GPU.
    fn numa_nodes(&self, gpu: u32) -> Answer<Vec<u32>>;

    /// Whether the GPU is divided.
    fn is_divided(&self, gpu: u32) -> Answer<bool>;
    /// How many instances the GPU can be divided into.
    fn most_instances(&self, gpu: u32) -> Answer<u32>;
    /// One of the instances; numbers may have gaps, which are [`Status::NotFound`].
    fn instance(&self, gpu: u32, number: u32) -> Answer<Instance>;

    fn pcie(&self, gpu: u32) -> Answer<Pcie>;
    fn ancestor(&self, gpu: u32, other: u32) -> Answer<Ancestor>;
    fn peer(&self, gpu: u32, other: u32, capability: PeerCapability) -> Answer<PeerStatus>;

    fn lane_is_up(&self, gpu: u32, lane: u32) -> Answer<bool>;
    /// NVML's number of the NVLink version, which is no generation.
    fn lane_version(&self, gpu: u32, lane: u32) -> Answer<u32>;
    fn lane_remote(&self, gpu: u32, lane: u32) -> Answer<Remote>;
    /// Where the remote end sits; `None` where NVML does not know, as in virtual machines.
    fn lane_remote_pci(&self, gpu: u32, lane: u32) -> Answer<Option<PciAddress>>;
    /// Of one lane, one direction.
    fn lane_megabytes_per_s(&self, gpu: u32) -> Answer<u32>;

    fn load(&self, gpu: u32) -> Answer<Load>;
    /// NVML's bits, see `nvmlClocksThrottleReasons`.
    fn throttle_reasons(&self, gpu: u32) -> Answer<u64>;
    /// Since the driver was loaded.
    fn uncorrected_errors(&self, gpu: u32) -> Answer<u64>;
    fn pages_wait_for_retirement(&self, gpu: u32) -> Answer<bool>;
    fn rows(&self, gpu: u32) -> Answer<Rows>;
}

/// A question that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// NVML's function.
    pub(super) call: &'static str,
    pub(super) status: Status,
}

/// Why a question failed, as far as it makes a difference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Status {
    /// This GPU has no such thing.
    NotSupported,
    /// There is no such lane, instance or device.
    NotFound,
    /// Nothing has happened.
    Timeout,
    /// The GPU has fallen off the bus.
    Lost,
    /// The GPU does nothing until it is reset.
    ResetRequired,
    /// This user may not ask.
    NoPermission,
    /// The driver is too old to know the function.
    NoFunction,
    /// Anything else, in NVML's words.
    Other(String),
}

impl Status {
    /// Whether the GPU is gone, until it is reset or the machine restarted.
    pub(super) fn is_loss(&self) -> bool {
        matches!(self, Self::Lost | Self::ResetRequired)
    }

    /// What usually helps.
    pub(super) fn remedy(&self) -> &'static str {
        match self {
            Self::NotSupported | Self::NotFound | Self::Timeout => {
                "nothing to do: the GPU or the virtual machine does not tell it"
            }
            Self::Lost => {
                "look for Xid 79 in the kernel's log; power the machine off and on, then check \
                 seating, power and cooling of the card, and replace it if it happens again"
            }
            Self::ResetRequired => "end what uses the GPU, then nvidia-smi --gpu-reset",
            Self::NoPermission => {
                "ask as root, or let the container have the GPU's device file (docker run --gpus)"
            }
            Self::NoFunction => "install a newer NVIDIA driver",
            Self::Other(_) => "run nvidia-smi -q and look at the kernel's log for lines with NVRM",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotSupported => "not supported",
            Self::NotFound => "not found",
            Self::Timeout => "nothing has happened",
            Self::Lost => "the GPU is lost",
            Self::ResetRequired => "the GPU needs a reset",
            Self::NoPermission => "no permission",
            Self::NoFunction => "the driver does not know the function",
            Self::Other(text) => text,
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.call, self.status)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) total_bytes: u64,
    pub(super) free_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClockDomain {
    Multiprocessor,
    Memory,
}

/// Clocks in MHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clocks {
    pub(super) now_mhz: u32,
    pub(super) max_mhz: u32,
}

/// A part of a divided GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instance {
    pub(super) uuid: String,
    pub(super) memory_bytes: Option<u64>,
}

/// The PCIe link of a GPU; what NVML does not say is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pcie {
    pub(super) generation_now: Option<u8>,
    pub(super) lanes_now: Option<u8>,
    pub(super) generation_max: Option<u8>,
    pub(super) lanes_max: Option<u8>,
}

/// The nearest thing that two GPUs hang on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ancestor {
    /// One board.
    Internal,
    /// One PCIe switch.
    Single,
    /// Several PCIe switches, no host bridge.
    Multiple,
    HostBridge,
    Node,
    System,
}

/// What an NVLink leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remote {
    Gpu,
    /// IBM's NPU: the processor.
    Processor,
    Switch,
    Unknown,
}

/// How busy a GPU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    /// Share of the last moments in which a kernel ran.
    pub(super) busy_percent: u32,
    /// 0 is the fastest, 15 the slowest; `None` where it is not told.
    pub(super) performance_state: Option<u32>,
}

/// Rows of memory that were replaced by spare ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rows {
    /// After errors that could not be corrected.
    pub(super) after_uncorrected: u32,
    /// Some wait for a reset.
    pub(super) is_pending: bool,
    /// One could not be replaced.
    pub(super) has_failed: bool,
}
