//! Where the NVLinks of one GPU lead.

use super::claims::{Claim, Claims};
use super::links::distinct;
use super::machine::Machine;
use crate::NodeKind;

/// The NVLinks of one GPU.
#[derive(Default)]
pub(super) struct NvLinks {
    /// To devices of the file.
    pub(super) direct: Vec<(usize, u16)>,
    /// To NVSwitches that are no devices of the file, together.
    pub(super) to_switches: Option<u16>,
    /// To the CPU, as POWER9 has them.
    pub(super) to_cpu: Option<u16>,
    /// All of them, if that is certain.
    pub(super) total: Option<u32>,
}

/// The generation of NVLink by compute capability, where its links run at the full speed of the
/// generation.
pub(super) const fn generation(compute_capability: u32) -> Option<u8> {
    match compute_capability {
        60 => Some(1),
        70 => Some(2),
        80 => Some(3),
        90 => Some(4),
        100 | 103 => Some(5),
        _ => None,
    }
}

/// How many links such a GPU can have; none if that is not known here. Where nothing is known of
/// the GPU, it is the most that any of the known ones has.
const fn most_links(compute_capability: Option<u32>) -> Option<u32> {
    match compute_capability {
        Some(..60 | 61 | 62 | 72 | 87..=89 | 120 | 121) => Some(0),
        Some(75) => Some(2),
        Some(60 | 86) => Some(4),
        Some(70) => Some(6),
        Some(80) => Some(12),
        Some(90 | 100 | 103) | None => Some(18),
        _ => None,
    }
}

/// Links that are sorted by where they lead.
#[derive(Default)]
struct Sorted<'c> {
    direct: Vec<(usize, u16)>,
    /// Other GPUs, behind NVSwitches.
    peers: Vec<u16>,
    /// Switches, or whatever else the file does not list.
    switches: Vec<u16>,
    cpus: Vec<u16>,
    /// To `peers` and `switches` together.
    to_switches: u16,
    unknown: Vec<&'c Claim>,
    has_self: bool,
}

impl NvLinks {
    pub(super) fn of(gpu: usize, claims: &Claims, machine: &mut Machine<'_>) -> Self {
        let (stated, are_all) = distinct(&claims.links, machine);
        let sorted = Sorted::of(gpu, &stated, machine);
        for claim in &sorted.unknown {
            machine.warn_of_unknown(claim);
        }
        let is_whole = claims.is_complete && are_all;
        if !claims.is_complete {
            let text = "the list of this GPU's NVLinks is damaged; how many there are is unknown";
            machine.observed.warn(machine.devices[gpu].line, text);
        }
        let most = most_links(claims.compute_capability);
        let Some(sorted) = sorted.possible(|links| most.is_none_or(|most| links <= most)) else {
            let text = "more NVLinks than such a GPU can have, or numbers of links to NVSwitches \
                        that contradict each other; they are left out";
            machine.observed.warn(machine.devices[gpu].line, text);
            return Self::default();
        };
        // A GPU that names nothing but itself has links to others that it does not name.
        let is_whole_and_named = is_whole && (!sorted.has_self || sorted.to_switches > 0);
        Self {
            total: Some(sorted.total()).filter(|_| is_whole_and_named),
            direct: sorted.direct,
            to_switches: Some(sorted.to_switches).filter(|&links| links > 0 && is_whole),
            to_cpu: u16::try_from(sum(sorted.cpus)).ok().filter(|&links| links > 0),
        }
    }
}

impl<'c> Sorted<'c> {
    fn of(gpu: usize, stated: &[&'c Claim], machine: &mut Machine<'_>) -> Self {
        let mut sorted = Self::default();
        for &claim in stated {
            let target = machine.find(&claim.target, gpu);
            if target == Some(gpu) {
                machine.warn_of_self(claim);
                sorted.has_self = true;
                continue;
            }
            let kind = target.map(|target| machine.devices[target].node.kind);
            let class = claim.class.as_deref().unwrap_or("");
            let is_unseen = claim.target.starts_with("fffffff");
            match (target, kind) {
                _ if class.starts_with("068001") => sorted.cpus.push(claim.count),
                (Some(target), Some(NodeKind::NvSwitch)) => {
                    sorted.direct.push((target, claim.count));
                }
                (Some(_), Some(NodeKind::Gpu)) if class.starts_with("0680") => {
                    sorted.peers.push(claim.count);
                }
                (Some(target), Some(NodeKind::Gpu)) => sorted.direct.push((target, claim.count)),
                (None, _) if class.starts_with("0680") || class.is_empty() && is_unseen => {
                    sorted.switches.push(claim.count);
                }
                _ => sorted.unknown.push(claim),
            }
        }
        sorted
    }

    /// The same, with the links to switches counted; nothing if that is more than the GPU can
    /// have.
    fn possible(mut self, is_possible: impl Fn(u32) -> bool) -> Option<Self> {
        let together = through_switches(&self.peers, &self.switches, &is_possible);
        if let Some(links) = together {
            self.to_switches = links;
            if is_possible(self.total()) {
                return Some(self);
            }
        }
        // Each GPU of the list with the full number: all of them are behind switches.
        let direct = self.direct.iter().map(|&(_, links)| links);
        let unknown = self.unknown.iter().map(|claim| claim.count);
        let others = self.peers.iter().chain(&self.switches).copied();
        let all: Vec<u16> = direct.chain(unknown).chain(others).collect();
        self.to_switches = same(&all).filter(|_| all.len() > 1)?;
        self.direct.clear();
        self.unknown.clear();
        is_possible(self.total()).then_some(self)
    }

    fn total(&self) -> u32 {
        let direct = self.direct.iter().map(|&(_, links)| links);
        let unknown = self.unknown.iter().map(|claim| claim.count);
        let others = self.cpus.iter().copied().chain([self.to_switches]);
        sum(direct.chain(unknown).chain(others))
    }
}

/// The number of links to NVSwitches; 0 if none are stated, nothing if it cannot be told.
///
/// A list of switches states links to each of them. A list of other GPUs states the same links
/// for each of them: 18 to each of 7 are 18 in all. A GPU that is missing from the file looks like
/// a switch, but then there are more links than a GPU can have, or other GPUs beside it.
fn through_switches(
    peers: &[u16],
    switches: &[u16],
    is_possible: impl Fn(u32) -> bool,
) -> Option<u16> {
    let all: Vec<u16> = peers.iter().chain(switches).copied().collect();
    let together = sum(all.iter().copied());
    if peers.is_empty() && is_possible(together) {
        return u16::try_from(together).ok();
    }
    same(&all).filter(|&links| is_possible(links.into()))
}

/// The number that all are.
fn same(counts: &[u16]) -> Option<u16> {
    let first = *counts.first()?;
    counts.iter().all(|&count| count == first).then_some(first)
}

/// A list may have so many entries that the sum exceeds every number of links.
fn sum(counts: impl IntoIterator<Item = u16>) -> u32 {
    counts.into_iter().fold(0, |sum, count| sum.saturating_add(u32::from(count)))
}
