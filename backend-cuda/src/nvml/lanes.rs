//! The NVLinks of one GPU, lane by lane.

use std::collections::BTreeMap;

use hopwise_topology::PciAddress;

use super::complaints::Complaints;
use super::management::{Answer, Management, Remote, Status};

/// Lanes of a GPU at most, with room for those to come; NVML knows 18.
const MOST_LANES: u32 = 64;

/// Where lanes lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    Gpu(PciAddress),
    /// The processor.
    Processor,
    Switch(PciAddress),
    /// A switch of which nothing is known, as in virtual machines.
    UnknownSwitch,
}

/// Lanes to one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bundle {
    pub(super) lanes: u16,
    /// The generation of the slowest.
    pub(super) generation: Option<u8>,
}

/// Which lanes are there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LaneStates {
    pub(super) up: Vec<u32>,
    pub(super) down: Vec<u32>,
}

/// The state of each lane. A GPU without NVLink has none, which is another thing than lanes that
/// are down.
pub(super) fn states(nvml: &dyn Management, gpu: u32) -> Answer<LaneStates> {
    let mut states = LaneStates::default();
    for lane in 0..MOST_LANES {
        match nvml.lane_is_up(gpu, lane) {
            Ok(true) => states.up.push(lane),
            Ok(false) => states.down.push(lane),
            Err(fault) => match fault.status {
                Status::NotFound => break,
                Status::NotSupported => {}
                _ => return Err(fault),
            },
        }
    }
    Ok(states)
}

/// The generation by NVML's enumeration of versions (`NVML_NVLINK_VERSION_*`): 1.0, 2.0, 2.2, 3.0,
/// 3.1, 4.0 and 5.0 are numbered from 1. An A100 says 5 and is of generation 3.
pub(super) const fn generation(version: u32) -> Option<u8> {
    match version {
        1 => Some(1),
        2 | 3 => Some(2),
        4 | 5 => Some(3),
        6 => Some(4),
        7 => Some(5),
        _ => None,
    }
}

/// Where the lanes that are up lead. A GPU that is at no address of `gpus` is not followed.
pub(super) fn ends(
    nvml: &dyn Management,
    gpu: u32,
    name: &str,
    up: &[u32],
    gpus: &[PciAddress],
    complaints: &mut Complaints,
) -> (BTreeMap<End, Bundle>, Vec<String>) {
    let mut bundles: BTreeMap<End, Bundle> = BTreeMap::new();
    let mut warnings = Vec::new();
    for &lane in up {
        let subject = format!("lane {lane} of {name}");
        let version = complaints.take(gpu, &subject, nvml.lane_version(gpu, lane));
        let remote = complaints.take_if_any(gpu, &subject, nvml.lane_remote(gpu, lane));
        // NVML refuses where a hypervisor hides the other end, so this is no complaint.
        let pci = complaints.take_if_any(gpu, &subject, nvml.lane_remote_pci(gpu, lane)).flatten();
        if complaints.is_lost(gpu) {
            return (BTreeMap::new(), warnings);
        }
        let is_known = pci.is_some_and(|pci| gpus.contains(&pci));
        let end = match (remote.unwrap_or(Remote::Unknown), pci) {
            (Remote::Processor, _) => End::Processor,
            (Remote::Gpu | Remote::Unknown, Some(pci)) if is_known => End::Gpu(pci),
            (Remote::Switch, Some(pci)) => End::Switch(pci),
            (Remote::Gpu, Some(pci)) => {
                warnings.push(format!(
                    "{subject} leads to a GPU at {pci} that NVML does not list; left out; look \
                     whether that GPU is lost, or hidden from this container"
                ));
                continue;
            }
            (Remote::Gpu | Remote::Switch | Remote::Unknown, _) => End::UnknownSwitch,
        };
        let bundle = bundles.entry(end).or_default();
        let known = version.and_then(generation);
        bundle.generation = if bundle.lanes == 0 {
            known
        } else {
            bundle.generation.zip(known).map(|(one, other)| one.min(other))
        };
        bundle.lanes += 1;
    }
    (bundles, warnings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_an_enumeration() {
        let found: Vec<_> = (0..9).map(generation).collect();
        let due = [None, Some(1), Some(2), Some(2), Some(3), Some(3), Some(4), Some(5), None];
        assert_eq!(found, due);
    }
}
