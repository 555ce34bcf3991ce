//! What NVML says about pairs of GPUs: access, and what both hang on.

use std::collections::BTreeMap;

use hopwise_topology::{
    InterconnectType, Observations, Pair, PeerCapability, PeerStatus, Statement,
};

use super::super::complaints::Complaints;
use super::super::management::{Ancestor, Management};
use super::Gpu;
use super::fabric::Fabric;

/// Whether NVLink gives access from one GPU to another, by their places in the list of GPUs.
pub(super) type NvLinkStatuses = BTreeMap<(usize, usize), PeerStatus>;

const CAPABILITIES: [PeerCapability; 4] =
    [PeerCapability::Read, PeerCapability::Write, PeerCapability::NvLink, PeerCapability::Atomics];

/// Asks for access of each ordered pair and states it. Returns what was said of NVLink.
pub(super) fn ask(
    nvml: &dyn Management,
    gpus: &[Gpu],
    all: &mut Observations,
    complaints: &mut Complaints,
) -> NvLinkStatuses {
    let mut statuses = BTreeMap::new();
    for (from, to) in ordered(gpus) {
        let (here, there) = (&gpus[from], &gpus[to]);
        // A divided GPU gives no access to others.
        if here.is_divided || there.is_divided {
            continue;
        }
        for capability in CAPABILITIES {
            if complaints.is_lost(here.index) || complaints.is_lost(there.index) {
                break;
            }
            let subject = format!("{} to {}", here.name, there.name);
            let answer = nvml.peer(here.index, there.index, capability);
            let Some(status) = complaints.take_of_pair(&subject, answer) else { continue };
            if capability == PeerCapability::NvLink {
                statuses.insert((from, to), status);
            }
            let statement = Statement::Peer { capability, status };
            let (from, to) = (here.position, there.position);
            all.pairs.push(Pair { from, to, statement, line: None });
        }
    }
    statuses
}

/// States the class of each ordered pair that NVLink does not join: what the links say better is
/// not said twice.
pub(super) fn add_classes(
    nvml: &dyn Management,
    gpus: &[Gpu],
    fabric: &Fabric<'_>,
    all: &mut Observations,
    complaints: &mut Complaints,
) {
    for (from, to) in ordered(gpus).filter(|&(from, to)| from < to) {
        let (here, there) = (&gpus[from], &gpus[to]);
        if complaints.is_lost(here.index) || complaints.is_lost(there.index) {
            continue;
        }
        let subject = format!("{} and {}", here.name, there.name);
        let answer = nvml.ancestor(here.index, there.index);
        let Some(ancestor) = complaints.take_of_pair(&subject, answer) else { continue };
        for (from, to) in [(from, to), (to, from)] {
            if !fabric.joins(from, to) {
                let statement = Statement::Class(class(ancestor));
                let (from, to) = (gpus[from].position, gpus[to].position);
                all.pairs.push(Pair { from, to, statement, line: None });
            }
        }
    }
}

fn ordered(gpus: &[Gpu]) -> impl Iterator<Item = (usize, usize)> {
    let count = gpus.len();
    (0..count).flat_map(move |from| (0..count).map(move |to| (from, to)).filter(|(a, b)| a != b))
}

const fn class(ancestor: Ancestor) -> InterconnectType {
    match ancestor {
        // Two GPUs of one board sit on its switch.
        Ancestor::Internal | Ancestor::Single => InterconnectType::PcieSwitch,
        Ancestor::Multiple => InterconnectType::PcieSwitches,
        Ancestor::HostBridge => InterconnectType::HostBridge,
        Ancestor::Node => InterconnectType::Node,
        Ancestor::System => InterconnectType::System,
    }
}
