//! The figures: steps, messages, copies, live moves, and CUDA graphs, each beside its limit.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use hopwise_core::device::Device;
use hopwise_core::device_info::BackendKind;
use serde::{Deserialize, Serialize};

use super::devices::{Chosen, no_gpu};
use super::figure::Figure;
use super::{machine, tell};
use crate::device_list::open::{OpenDevice, open};
use crate::failure::Failure;
use crate::report::table;

mod copies;
mod messages;
mod moves;
mod steps;

/// What was measured.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) date: String,
    pub(super) driver: Option<String>,
    /// Whether sizes and runs were those for trying the command out.
    pub(super) quick: bool,
    pub(super) devices: Vec<MeasuredDevice>,
    pub(super) figures: Vec<Figure>,
    /// What could not be measured here, and why.
    pub(super) left_out: Vec<String>,
    /// What failed or gave a wrong result.
    failed: Vec<String>,
}

/// A device, by the number that figures give it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MeasuredDevice {
    pub(super) index: usize,
    pub(super) name: String,
    pub(super) backend: BackendKind,
    /// What it falls with, if anything: logical devices of one card share it.
    pub(super) failure_domain: Option<String>,
    /// Why its figures are not those of a GPU.
    pub(super) no_gpu: Option<String>,
}

/// Why something was not measured.
enum Miss {
    /// The device cannot do it or has no room.
    LeftOut(String),
    /// It failed.
    Failed(String),
}

type Measuring<T> = Result<T, Miss>;

/// A failure of something that should work.
fn failed(error: impl fmt::Display) -> Miss {
    Miss::Failed(error.to_string())
}

/// How much is measured.
#[derive(Clone, Copy)]
struct Sizes {
    runs: usize,
    batch_kernels: [usize; 2],
    batches: usize,
    laps: u32,
    copy_bytes: u64,
    digest_bytes: u64,
    move_bytes: [u64; 2],
}

impl Sizes {
    fn new(quick: bool) -> Self {
        if quick {
            Self {
                runs: 2,
                batch_kernels: [1, 16],
                batches: 4,
                laps: 4,
                copy_bytes: 1 << 20,
                digest_bytes: 2 << 20,
                move_bytes: [256 << 10, 1 << 20],
            }
        } else {
            Self {
                runs: 9,
                batch_kernels: [1, 256],
                batches: 200,
                laps: 1000,
                copy_bytes: 256 << 20,
                digest_bytes: 5 << 30, // beyond what 32 bits can address
                move_bytes: [64 << 20, 1 << 30],
            }
        }
    }
}

/// Measures in this process.
///
/// # Errors
///
/// [`Failure::Failed`] when the devices cannot be opened.
pub(super) fn run(chosen: &Chosen, quick: bool) -> Result<Measured, Failure> {
    let wanted = &chosen.with_host.0;
    let opened = open(wanted)
        .map_err(|error| Failure::failed(format!("cannot open the devices: {error}")))?;
    let devices: Vec<_> = opened.iter().map(OpenDevice::device).collect();
    let mut measured = Measured {
        date: machine::today(),
        driver: machine::driver(),
        quick,
        devices: devices.iter().enumerate().map(MeasuredDevice::new).collect(),
        figures: Vec::new(),
        left_out: Vec::new(),
        failed: Vec::new(),
    };
    let sizes = Sizes::new(quick);
    let alone = measured.one_of_each(chosen.asked.len());
    let host = measured.devices.iter().position(|device| device.backend == BackendKind::Host);
    for index in alone {
        let device = &opened[index];
        let on = index.to_string();
        for kernels in sizes.batch_kernels {
            measured.note("steps", &on, steps::measure(device, &on, kernels, sizes));
        }
        measured.note("copies", &on, copies::with_host(&*devices[index], &on, sizes));
        measured.note("digests", &on, copies::digests(&*devices[index], &on, sizes));
        measured.note("messages", &on, messages::measure(&devices, [index; 2], &on, sizes));
        let is_host = measured.devices[index].backend == BackendKind::Host;
        if let Some(host) = host.filter(|_| !is_host) {
            for bytes in sizes.move_bytes {
                let places = [index, host];
                measured.note("moves", &on, moves::measure(&devices, places, bytes, sizes));
            }
        }
    }
    for from in 1..devices.len() {
        let pair = [from - 1, from];
        let on = format!("{} -> {}", pair[0], pair[1]);
        measured.note("messages", &on, messages::measure(&devices, pair, &on, sizes));
        measured.note("copies", &on, copies::between(&devices, pair, &on, sizes));
    }
    Ok(measured)
}

impl Measured {
    /// The places of the first device of each card among the first `count`, and of one host device.
    fn one_of_each(&self, count: usize) -> Vec<usize> {
        let same = |one: &MeasuredDevice, other: &MeasuredDevice| {
            one.backend == other.backend
                && (one.backend == BackendKind::Host
                    || (one.failure_domain.is_some() && one.failure_domain == other.failure_domain))
        };
        let asked = &self.devices[..count];
        let is_first =
            |place: &usize| !asked[..*place].iter().any(|before| same(before, &asked[*place]));
        (0..count).filter(is_first).collect()
    }

    fn note(&mut self, what: &str, on: &str, measured: Measuring<Vec<Figure>>) {
        match measured {
            Ok(figures) => {
                for figure in &figures {
                    tell(&figure.cells().join(" | "));
                }
                self.figures.extend(figures);
            }
            Err(Miss::LeftOut(reason)) => self.left_out.push(format!("{what}, {on}: {reason}")),
            Err(Miss::Failed(reason)) => {
                tell(&format!("{what}, {on}: FAILED: {reason}"));
                self.failed.push(format!("{what}, {on}: {reason}"));
            }
        }
    }

    /// Everything that failed.
    pub(super) fn failures(&self) -> Vec<String> {
        self.failed.clone()
    }

    /// Why the figures are not for the docs; `None` when they are those of a GPU.
    pub(super) fn no_gpu(&self) -> Option<String> {
        let of_gpus = |device: &&MeasuredDevice| device.backend != BackendKind::Host;
        let others = self.devices.iter().filter(of_gpus).find_map(|device| device.no_gpu.clone());
        let is_bare = !self.devices.iter().any(|device| device.backend != BackendKind::Host);
        others
            .or_else(|| is_bare.then(|| "no GPU is among the devices".to_owned()))
            .or_else(|| self.quick.then(|| "--quick runs too little".to_owned()))
    }

    /// The names of the GPUs, each once.
    pub(super) fn gpu_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for device in self.devices.iter().filter(|device| device.no_gpu.is_none()) {
            if !names.contains(&device.name.as_str()) {
                names.push(&device.name);
            }
        }
        names
    }

    /// The devices, one a line.
    pub(super) fn device_lines(&self) -> impl Iterator<Item = String> {
        self.devices.iter().map(|device| {
            let MeasuredDevice { index, name, backend, failure_domain, .. } = device;
            let domain = failure_domain.iter().map(|domain| format!(", {domain}"));
            format!("{index}: {name} ({backend}{})", domain.collect::<String>())
        })
    }
}

impl MeasuredDevice {
    fn new((index, device): (usize, &Arc<dyn Device>)) -> Self {
        let info = device.info();
        Self {
            index,
            name: info.name.clone(),
            backend: info.backend,
            failure_domain: info.failure_domain.clone(),
            no_gpu: no_gpu(info),
        }
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.device_lines().try_for_each(|line| writeln!(formatter, "{line}"))?;
        let notes: BTreeSet<_> =
            self.devices.iter().filter_map(|device| device.no_gpu.as_ref()).collect();
        notes.iter().try_for_each(|reason| writeln!(formatter, "note: {reason}"))?;
        writeln!(formatter)?;
        let rows: Vec<_> = self.figures.iter().map(|figure| figure.cells().to_vec()).collect();
        let header = ["what", "on", "ours", "limit", "ratio"];
        write!(formatter, "{}", table(&header, 4, &rows))?;
        self.left_out.iter().try_for_each(|reason| write!(formatter, "\nleft out: {reason}"))?;
        self.failed.iter().try_for_each(|reason| write!(formatter, "\nFAILED: {reason}"))
    }
}
