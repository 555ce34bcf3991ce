//! Measuring how long state takes from device to device, and to and from host memory.
//!
//! Every transfer is one that a migration would make, between real instances of the shipped
//! program [`counter`](mod@counter). What arrives is compared by digests, so that no figure stands for
//! a copy that the driver promised and the bus did not keep.
//!
//! ```
//! use std::ops::ControlFlow;
//! use hopwise_core::backend::Backend;
//! use hopwise_core::calibrate::{CalibrationOptions, Way, calibrate};
//! use hopwise_core::host::{HostBackend, HostOptions};
//!
//! let backend = HostBackend::new(HostOptions::new(2));
//! let devices = [backend.open(0)?, backend.open(1)?];
//! let options = CalibrationOptions { sizes_bytes: vec![4096, 1 << 16], ..Default::default() };
//! let calibration = calibrate(&devices, &options, &mut |_| ControlFlow::Continue(()));
//! assert_eq!(calibration.pairs.len(), 2);
//! assert_eq!(calibration.pairs[0].way, Way::PeerCopy);
//! assert!(calibration.pairs[0].outcome.measured().is_some());
//! # Ok::<(), hopwise_core::error::DeviceError>(())
//! ```

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::device::Device;
use crate::device_info::{BackendKind, DeviceIdentity};
use crate::programs::counter;

mod measure;
mod observe;

/// What is measured, and how carefully.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalibrationOptions {
    /// Sizes of transfers in bytes, at least one. Each is rounded up to whole words and to the
    /// smallest state of a counter, and sizes for which a device has no room are left out. The smallest gives the
    /// latency, the largest the bandwidth.
    pub sizes_bytes: Vec<u64>,
    /// A transfer is repeated until this much time has passed, and the time is divided.
    pub least_time: Duration,
    /// How often that is done; the median is taken. At least once.
    pub samples: usize,
}

/// 4 KiB, 64 KiB, 1 MiB and 64 MiB, five times 10 ms each.
impl Default for CalibrationOptions {
    fn default() -> Self {
        let sizes_bytes = vec![4 << 10, 64 << 10, 1 << 20, 64 << 20];
        Self { sizes_bytes, least_time: Duration::from_millis(10), samples: 5 }
    }
}

/// What was measured. Devices are known by their place in the list that was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// When it began, in seconds since 1970 (UTC).
    pub unix_seconds: u64,
    /// Whether everything was measured; if not, it was cancelled, and what was measured until then
    /// is there.
    pub is_complete: bool,
    /// Each device with host memory.
    pub devices: Vec<DeviceCalibration>,
    /// Each ordered pair of devices.
    pub pairs: Vec<PairCalibration>,
}

/// A device, and its transfers with host memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceCalibration {
    /// What its driver calls it.
    pub name: String,
    /// The interface it is driven through.
    pub backend: BackendKind,
    /// How it is recognised again.
    pub identity: DeviceIdentity,
    /// NUMA node of the host that it hangs on.
    pub numa_node: Option<u32>,
    /// From the device to host memory.
    pub to_host: Outcome,
    /// From host memory to the device.
    pub from_host: Outcome,
}

/// Transfers from one device to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairCalibration {
    /// The device that sends.
    pub from: usize,
    /// The device that receives.
    pub to: usize,
    /// The way that the bytes took.
    pub way: Way,
    /// What the copy between peers said, where there should have been one and the bytes went
    /// through the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_error: Option<String>,
    /// How long it took.
    pub outcome: Outcome,
}

/// The way that bytes take between two devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// From device to device by the backend's own copy.
    PeerCopy,
    /// Read into host memory, then written: all of a transfer before the next.
    ThroughHost,
}

/// What came of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Figures.
    Measured(Measured),
    /// There are none.
    Failed {
        /// Which device failed, and what it said.
        error: String,
    },
    /// It was cancelled before.
    NotMeasured,
}

impl Outcome {
    /// The figures, if there are any.
    #[must_use]
    pub const fn measured(&self) -> Option<&Measured> {
        match self {
            Self::Measured(measured) => Some(measured),
            _ => None,
        }
    }
}

/// Figures of one kind of transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// How long each size took, smallest first.
    pub sizes: Vec<SizeTime>,
}

/// How long transfers of one size take.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeTime {
    /// The size.
    pub bytes: u64,
    /// The median of the samples, for one transfer, in microseconds.
    pub median_us: f64,
    /// Transfers in all samples together.
    pub transfers: u64,
}

impl Measured {
    /// Microseconds that a transfer of the smallest size takes.
    #[must_use]
    pub fn latency_us(&self) -> f64 {
        self.sizes.first().map_or(0.0, |size| size.median_us)
    }

    /// GB/s (10^9 bytes per second) of a transfer of the largest size.
    #[must_use]
    pub fn bandwidth_gb_per_s(&self) -> f64 {
        self.sizes.last().map_or(0.0, SizeTime::gb_per_s)
    }
}

impl SizeTime {
    /// GB/s (10^9 bytes per second).
    #[must_use]
    pub fn gb_per_s(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^53 bytes")]
        let bytes = self.bytes as f64;
        bytes / (self.median_us * 1000.0)
    }
}

/// How far a calibration is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Measurements that are done.
    pub done: usize,
    /// All measurements: each device with the host, each ordered pair.
    pub total: usize,
    /// What is measured next: the device that sends, and the one that receives or the host.
    pub next: (usize, Option<usize>),
}

/// Measures each device with host memory, then each ordered pair.
///
/// `watch` is called before each measurement and may cancel what is left. A device that fails is
/// an entry with its error, and the others go on. Two states of the largest size and twice as much
/// host memory at most are in use at a time, and freed before the next measurement.
///
/// Whatever else the devices do meanwhile makes the figures worse: measure idle devices.
///
/// # Cost
///
/// For each measurement and size, `samples` times `least_time` or one transfer, whichever is more.
pub fn calibrate(
    devices: &[Arc<dyn Device>],
    options: &CalibrationOptions,
    watch: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Calibration {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut calibration = Calibration {
        unix_seconds: since_epoch.as_secs(),
        is_complete: true,
        devices: devices.iter().map(|device| described(&**device)).collect(),
        pairs: Vec::new(),
    };
    let total = devices.len() * devices.len();
    let mut done = 0;
    let mut go_on = |next: (usize, Option<usize>)| {
        let flow = watch(&Progress { done, total, next });
        done += 1;
        flow.is_continue()
    };
    let program = counter();
    for (at, device) in devices.iter().enumerate() {
        if !go_on((at, None)) {
            calibration.is_complete = false;
            return calibration;
        }
        let entry = &mut calibration.devices[at];
        (entry.to_host, entry.from_host) = measure::with_host(at, &**device, &program, options);
    }
    for from in 0..devices.len() {
        for to in (0..devices.len()).filter(|&to| to != from) {
            if !go_on((from, Some(to))) {
                calibration.is_complete = false;
                return calibration;
            }
            let pair = [(from, &*devices[from]), (to, &*devices[to])];
            calibration.pairs.push(measure::pair(pair, &program, options));
        }
    }
    calibration
}

fn described(device: &dyn Device) -> DeviceCalibration {
    let info = device.info();
    DeviceCalibration {
        name: info.name.clone(),
        backend: info.backend,
        identity: info.identity.clone(),
        numa_node: info.numa_node,
        to_host: Outcome::NotMeasured,
        from_host: Outcome::NotMeasured,
    }
}
