//! Checking `[[device]]`.

use std::thread;

use hopwise_core::host::DEFAULT_MEMORY_BYTES;
use toml::Spanned;

use super::Problems;
use crate::device_list::{KINDS, MOST_DEVICES};
use crate::scenario::document::DeviceEntry;
use crate::scenario::plan::HostDevice;
use crate::scenario::problem::Problem;

/// Most workers of a device.
const MOST_WORKERS: u64 = 256;

/// Most memory of a device: 1 TiB. It is a quota and not taken beforehand.
const MOST_MEMORY_BYTES: u64 = 1 << 40;

/// The devices in the order of their indices. Those without workers of their own share the
/// processors, at least one each.
pub(super) fn check(entries: &[DeviceEntry], problems: &mut Problems) -> Vec<HostDevice> {
    let mut devices = Vec::new();
    for entry in entries {
        let kind = entry.kind.get_ref();
        if kind != KINDS {
            let message = format!("no devices of kind `{kind}` can be run on; allowed: {KINDS}");
            problems.add(&entry.kind, message);
        }
        let count = problems.count(entry.count.as_ref(), 1, (1, MOST_DEVICES as u64));
        // Zero stands for a share, which is known once all devices are.
        let workers = problems.count(entry.workers.as_ref(), 0, (1, MOST_WORKERS));
        let memory = entry.memory_bytes.as_ref();
        let memory_bytes = problems.number(memory, DEFAULT_MEMORY_BYTES, (4, MOST_MEMORY_BYTES));
        let device = HostDevice { workers, memory_bytes };
        devices.extend(std::iter::repeat_n(device, count.min(MOST_DEVICES)));
    }
    if devices.is_empty() {
        problems
            .0
            .push(Problem::of_whole("there is no device; add a [[device]] with kind = \"host\""));
    } else if devices.len() > MOST_DEVICES {
        let count = devices.len();
        let message = format!("{count} devices; at most {MOST_DEVICES} are allowed");
        problems.0.push(Problem::of_whole(message));
    }
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let share = (processors / devices.len().max(1)).max(1);
    for device in &mut devices {
        device.workers = if device.workers == 0 { share } else { device.workers };
    }
    devices
}

/// The index of a device; a problem when there is none.
pub(super) fn index(
    given: &Spanned<u64>,
    devices: usize,
    problems: &mut Problems,
) -> Option<usize> {
    let index = usize::try_from(*given.get_ref()).ok().filter(|index| *index < devices);
    if index.is_none() {
        let (device, last) = (given.get_ref(), devices.saturating_sub(1));
        problems.add(given, format!("there is no device {device}; the devices are 0 to {last}"));
    }
    index
}
