//! What NVML knows about links, as observations for `hopwise_topology::Machine::merge`.

use std::collections::BTreeMap;

use hopwise_topology::{
    Figure, Link, Node, NodeKind, Observations, PciAddress, PcieWidth, Tool, Uplink,
};

use super::complaints::Complaints;
use super::lanes::{self, Bundle, End};
use super::management::Management;
use fabric::Fabric;

mod fabric;
mod pairs;

/// A GPU of which something is known.
struct Gpu {
    /// NVML's, for asking only.
    index: u32,
    name: String,
    position: usize,
    pci: Option<PciAddress>,
    /// Whether programs see its instances instead.
    is_divided: bool,
    /// Where its NVLinks lead.
    ends: BTreeMap<End, Bundle>,
}

/// Everything that NVML knows about GPUs and their links. What a question that failed would have
/// told is missing, with a warning; the rest is there.
pub(super) fn observe(nvml: &dyn Management) -> Observations {
    let mut all = Observations::default();
    let mut complaints = Complaints::default();
    let count = match nvml.gpu_count() {
        Ok(count) => count,
        Err(fault) => {
            all.warn(None, format!("no GPU is shown: {fault}; {}", fault.status.remedy()));
            return all;
        }
    };
    let mut gpus: Vec<Gpu> =
        (0..count).filter_map(|index| gpu(nvml, index, &mut all, &mut complaints)).collect();
    let addresses: Vec<PciAddress> = gpus.iter().filter_map(|gpu| gpu.pci).collect();
    for gpu in &mut gpus {
        add_nvlinks(nvml, gpu, &addresses, &mut all, &mut complaints);
    }
    let statuses = pairs::ask(nvml, &gpus, &mut all, &mut complaints);
    let mut fabric = Fabric::new(&gpus, &statuses);
    fabric.add_links(&mut all);
    pairs::add_classes(nvml, &gpus, &fabric, &mut all, &mut complaints);
    for text in complaints.into_texts() {
        all.warn(None, text);
    }
    all
}

/// A GPU with its facts; none of whose identity nothing can be learnt.
fn gpu(
    nvml: &dyn Management,
    index: u32,
    all: &mut Observations,
    complaints: &mut Complaints,
) -> Option<Gpu> {
    let name = format!("GPU{index}");
    let pci = complaints.take(index, &name, nvml.pci(index));
    if complaints.is_lost(index) {
        return None;
    }
    let uuid = complaints.take(index, &name, nvml.uuid(index));
    if pci.is_none() && uuid.is_none() {
        return None;
    }
    let divided = complaints.take_if_any(index, &name, nvml.is_divided(index));
    let is_divided = divided == Some(true);
    let kind = if is_divided { NodeKind::Card } else { NodeKind::Gpu };
    // NVML numbers GPUs as nvidia-smi does, and not as CUDA does: it is a label.
    let mut node = Node::new(kind).labelled(Tool::NvidiaSmi, &name);
    node.pci = pci;
    node.uuid = uuid;
    node.model = complaints.take(index, &name, nvml.name(index));
    let capability = complaints.take_if_any(index, &name, nvml.compute_capability(index));
    node.architecture = capability.map(|(major, minor)| format!("sm{major}{minor}"));
    let numa_nodes = complaints.take_if_any(index, &name, nvml.numa_nodes(index));
    node.numa_nodes = numa_nodes.unwrap_or_default();
    node.uplink = complaints.take_if_any(index, &name, nvml.pcie(index)).map(|pcie| Uplink {
        current: PcieWidth { generation: pcie.generation_now, lanes: pcie.lanes_now },
        maximum: PcieWidth { generation: pcie.generation_max, lanes: pcie.lanes_max },
    });
    let position = all.add_node(node);
    if is_divided {
        add_instances(nvml, index, &name, position, all, complaints);
    }
    Some(Gpu { index, name, position, pci, is_divided, ends: BTreeMap::new() })
}

/// The instances of a divided GPU: programs see them, and not the card.
fn add_instances(
    nvml: &dyn Management,
    index: u32,
    name: &str,
    card: usize,
    all: &mut Observations,
    complaints: &mut Complaints,
) {
    let most = complaints.take(index, name, nvml.most_instances(index)).unwrap_or(0);
    let before = all.nodes.len();
    for number in 0..most {
        let subject = format!("instance {number} of {name}");
        let answer = nvml.instance(index, number);
        let Some(instance) = complaints.take_if_any(index, &subject, answer) else { continue };
        let mut node = Node::new(NodeKind::Gpu);
        node.uuid = Some(instance.uuid);
        node.card = Some(card);
        node.numa_nodes = all.nodes[card].numa_nodes.clone();
        node.model = all.nodes[card].model.clone();
        node.architecture = all.nodes[card].architecture.clone();
        all.add_node(node);
    }
    if all.nodes.len() == before {
        let text = format!(
            "{name} is divided into instances (MIG), and has none: no program can use it; make \
             some with nvidia-smi mig -cgi, or nvidia-smi -mig 0"
        );
        all.warn(None, text);
    }
}

/// Counts the GPU's NVLinks and follows those that are up.
fn add_nvlinks(
    nvml: &dyn Management,
    gpu: &mut Gpu,
    addresses: &[PciAddress],
    all: &mut Observations,
    complaints: &mut Complaints,
) {
    let (index, name) = (gpu.index, &gpu.name);
    if complaints.is_lost(index) {
        return;
    }
    let Some(states) = complaints.take(index, name, lanes::states(nvml, index)) else { return };
    let node = &mut all.nodes[gpu.position];
    node.nvlinks_up = u16::try_from(states.up.len()).ok();
    if states.up.is_empty() {
        return;
    }
    let speed = complaints.take_if_any(index, name, nvml.lane_megabytes_per_s(index));
    let figure = speed.and_then(|speed| Figure::reported(f64::from(speed) / 1000.0, "NVML").ok());
    node.nvlink_gb_per_s = figure.unwrap_or_default();
    let (ends, warnings) = lanes::ends(nvml, index, name, &states.up, addresses, complaints);
    for warning in warnings {
        all.warn(None, warning);
    }
    gpu.ends = ends;
}

/// A link of which NVML states no figure.
const fn link(from: usize, to: usize, kind: hopwise_topology::InterconnectType) -> Link {
    Link { from, to, kind, bandwidth: Figure::unknown(), latency: Figure::unknown() }
}
