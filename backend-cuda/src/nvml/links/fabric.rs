//! NVLinks as links of the machine: between GPUs, to NVSwitches, to the processor.
//!
//! That a lane is up proves nothing about a pair of GPUs. A link between two GPUs is stated only
//! where the driver does not deny it for that ordered pair.

use std::collections::BTreeMap;

use hopwise_topology::{InterconnectType, Node, NodeKind, Observations, PeerStatus, Tool};

use super::super::lanes::{Bundle, End};
use super::pairs::NvLinkStatuses;
use super::{Gpu, link};

/// The NVLinks of all GPUs.
pub(super) struct Fabric<'a> {
    gpus: &'a [Gpu],
    statuses: &'a NvLinkStatuses,
    /// The switches as nodes; `None` is the one of which nothing is known.
    switches: BTreeMap<End, usize>,
}

impl<'a> Fabric<'a> {
    pub(super) const fn new(gpus: &'a [Gpu], statuses: &'a NvLinkStatuses) -> Self {
        Self { gpus, statuses, switches: BTreeMap::new() }
    }

    /// Adds the links, and the nodes that they need.
    pub(super) fn add_links(&mut self, all: &mut Observations) {
        for (at, gpu) in self.gpus.iter().enumerate() {
            if gpu.is_divided {
                continue; // instances have no NVLink
            }
            let is_cut_off = self.is_cut_off(at);
            if is_cut_off {
                let text = format!(
                    "the NVLinks of {} to switches are up, but the driver lets it reach no GPU \
                     over them; they are left out; start the nvidia-fabricmanager service, and \
                     look into its log",
                    gpu.name
                );
                all.warn(None, text);
            }
            for (&end, &Bundle { lanes, generation }) in &gpu.ends {
                let kind = InterconnectType::NvLink { generation, links: lanes };
                match end {
                    End::Gpu(_) => self.add_direct(at, end, kind, all),
                    End::Switch(_) | End::UnknownSwitch if is_cut_off => {}
                    End::Switch(_) | End::UnknownSwitch => {
                        let switch = self.switch(end, all);
                        all.add_link_both(link(gpu.position, switch, kind));
                    }
                    End::Processor => add_to_processor(gpu, kind, all),
                }
            }
        }
    }

    /// Whether NVLink leads from one GPU to another, as far as lanes and driver tell.
    pub(super) fn joins(&self, from: usize, to: usize) -> bool {
        if self.is_denied(from, to) || self.gpus[from].is_divided || self.gpus[to].is_divided {
            return false;
        }
        let (here, there) = (&self.gpus[from].ends, &self.gpus[to].ends);
        here.keys().any(|end| match end {
            End::Gpu(pci) => self.gpus[to].pci == Some(*pci),
            End::Switch(_) | End::UnknownSwitch => there.contains_key(end),
            End::Processor => false,
        })
    }

    fn is_denied(&self, from: usize, to: usize) -> bool {
        self.statuses.get(&(from, to)).is_some_and(|status| is_no(*status))
    }

    /// Whether a GPU on switches is denied NVLink to each other GPU on switches.
    fn is_cut_off(&self, at: usize) -> bool {
        let is_on_switch = |gpu: &Gpu| {
            gpu.ends.keys().any(|end| matches!(end, End::Switch(_) | End::UnknownSwitch))
        };
        let others = (0..self.gpus.len())
            .filter(|&other| other != at && is_on_switch(&self.gpus[other]))
            .collect::<Vec<_>>();
        is_on_switch(&self.gpus[at])
            && !others.is_empty()
            && others.iter().all(|&other| self.is_denied(at, other) && self.is_denied(other, at))
    }

    fn add_direct(&self, from: usize, end: End, kind: InterconnectType, all: &mut Observations) {
        let is_end = |gpu: &&Gpu| gpu.pci.map(End::Gpu) == Some(end);
        let Some(to) = self.gpus.iter().position(|gpu| is_end(&gpu)) else { return };
        if to == from {
            return;
        }
        let (here, there) = (&self.gpus[from], &self.gpus[to]);
        if self.is_denied(from, to) {
            let text = format!(
                "NVLinks from {} to {} are up, but the driver denies access over them; the link is \
                 left out; look whether a bridge is seated and whether a registry key disables it",
                here.name, there.name
            );
            all.warn(None, text);
            return;
        }
        all.links.push(link(here.position, there.position, kind));
    }

    fn switch(&mut self, end: End, all: &mut Observations) -> usize {
        *self.switches.entry(end).or_insert_with(|| {
            let mut node = Node::new(NodeKind::NvSwitch);
            if let End::Switch(pci) = end {
                node.pci = Some(pci);
            }
            all.add_node(node)
        })
    }
}

/// Whether a status says that there is no access; that the driver does not know is no such word.
const fn is_no(status: PeerStatus) -> bool {
    !matches!(status, PeerStatus::Supported | PeerStatus::Unknown)
}

/// NVLinks to the processor, as POWER9 has them, end at the NUMA node that the GPU is near to.
fn add_to_processor(gpu: &Gpu, kind: InterconnectType, all: &mut Observations) {
    let Some(numa) = all.nodes[gpu.position].numa_node() else {
        let text = format!(
            "the NVLinks of {} to the processor are left out, since its NUMA node is unknown",
            gpu.name
        );
        all.warn(None, text);
        return;
    };
    let label = numa.to_string();
    let is_it = |node: &Node| {
        node.kind == NodeKind::NumaNode && node.label(Tool::Numa) == Some(label.as_str())
    };
    let position = all.nodes.iter().position(is_it).unwrap_or_else(|| {
        let mut node = Node::new(NodeKind::NumaNode).labelled(Tool::Numa, &label);
        node.numa_nodes = vec![numa];
        all.add_node(node)
    });
    all.add_link_both(link(gpu.position, position, kind));
}
