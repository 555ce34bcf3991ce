//! Checking `[[device]]`.

use toml::Spanned;

use super::Problems;
use crate::device_list::{Kind, MOST_DEVICES, Wanted};
use crate::scenario::document::DeviceEntry;
use crate::scenario::problem::Problem;

/// Most workers of a device.
const MOST_WORKERS: u64 = 256;

/// Most memory of a device: 1 TiB. It is a quota and not taken beforehand.
const MOST_MEMORY_BYTES: u64 = 1 << 40;

/// The devices in the order of their indices.
pub(super) fn check(entries: &[DeviceEntry], problems: &mut Problems) -> Vec<Wanted> {
    let mut devices = Vec::new();
    for entry in entries {
        let count = problems.count(entry.count.as_ref(), 1, (1, MOST_DEVICES as u64));
        let workers = entry.workers.as_ref();
        let workers = workers.map(|given| problems.count(Some(given), 1, (1, MOST_WORKERS)));
        let memory_bytes = entry.memory_bytes.as_ref();
        let memory_bytes =
            memory_bytes.map(|given| problems.number(Some(given), 4, (4, MOST_MEMORY_BYTES)));
        match entry.kind.get_ref().parse::<Kind>() {
            Err(message) => problems.add(&entry.kind, message),
            Ok(Kind::Wgpu(_) | Kind::Cuda(_)) if workers.is_some() => {
                let message =
                    "`workers` belongs to host devices; a GPU runs its kernels in batches";
                problems.add(&entry.kind, message.to_owned());
            }
            Ok(kind) => {
                let device = Wanted { kind, workers, memory_bytes };
                devices.extend(std::iter::repeat_n(device, count.min(MOST_DEVICES)));
            }
        }
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
