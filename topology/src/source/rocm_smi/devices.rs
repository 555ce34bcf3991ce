//! The GPUs and what is said about each of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::source::fact::Fact;
use crate::source::matrix_text::excerpt;
use crate::{Node, NodeKind, Observations, PciAddress, SourceWarning, Tool};

/// NUMA nodes that Linux can number, at most.
const MOST_NUMA_NODES: u32 = 1024;

/// A GPU by the tool's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Gpu(pub(super) u32);

impl fmt::Display for Gpu {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "GPU{}", self.0)
    }
}

/// All GPUs of a text.
#[derive(Debug, Default)]
pub(super) struct Devices {
    /// Those that the matrices show.
    in_matrices: BTreeSet<Gpu>,
    facts: BTreeMap<Gpu, Facts>,
}

/// What is said about one GPU.
#[derive(Debug, Default)]
struct Facts {
    numa_node: Fact<Option<u32>>,
    numa_affinity: Fact<Option<u32>>,
    pci: Fact<PciAddress>,
    model: Fact<String>,
    architecture: Fact<String>,
    first_line: Option<usize>,
}

impl Devices {
    pub(super) fn is_empty(&self) -> bool {
        self.in_matrices.is_empty() && self.facts.is_empty()
    }

    /// A GPU that a matrix shows.
    pub(super) fn show(&mut self, gpu: Gpu) {
        self.in_matrices.insert(gpu);
    }

    /// A GPU of which nothing more may be said.
    pub(super) fn mention(&mut self, gpu: Gpu, line: usize) {
        self.facts.entry(gpu).or_default().first_line.get_or_insert(line);
    }

    /// Takes what a line says about a GPU; what it says about something else is passed over.
    pub(super) fn describe(
        &mut self,
        gpu: Gpu,
        key: &str,
        value: &str,
        line: usize,
        warnings: &mut Vec<SourceWarning>,
    ) {
        let Some(key) = Key::of(key) else { return };
        let value = value.trim();
        let facts = self.facts.entry(gpu).or_default();
        facts.first_line.get_or_insert(line);
        let is_consistent = match key {
            Key::NumaNode => numa(value).map(|node| facts.numa_node.set(node)),
            Key::NumaAffinity => numa(value).map(|node| facts.numa_affinity.set(node)),
            Key::Pci => value.parse().ok().map(|pci| facts.pci.set(pci)),
            Key::Model => Some(is_absent(value) || facts.model.set(value.to_owned())),
            Key::Architecture => {
                Some(!value.starts_with("gfx") || facts.architecture.set(value.to_owned()))
            }
        };
        let text = match is_consistent {
            Some(true) => return,
            Some(false) => format!("{} of {gpu} is stated in two ways; none is taken", key.name()),
            None if is_absent(value) => return,
            None => {
                format!("{} of {gpu} cannot be `{}`; it is left out", key.name(), excerpt(value))
            }
        };
        warnings.push(SourceWarning { line: Some(line), text });
    }

    /// Adds a node for each GPU and returns their positions.
    pub(super) fn put_into(mut self, observations: &mut Observations) -> BTreeMap<Gpu, usize> {
        self.drop_strangers(&mut observations.warnings);
        self.drop_shared_addresses(&mut observations.warnings);
        let mut facts = self.facts;
        for gpu in self.in_matrices {
            facts.entry(gpu).or_default();
        }
        let mut positions = BTreeMap::new();
        for (gpu, facts) in facts {
            let numa_node = facts.numa_node(gpu, &mut observations.warnings);
            let node = Node {
                pci: facts.pci.known(),
                model: facts.model.known(),
                architecture: facts.architecture.known(),
                numa_nodes: numa_node.into_iter().collect(),
                ..Node::new(NodeKind::Gpu).labelled(Tool::RocmSmi, gpu.to_string())
            };
            positions.insert(gpu, observations.add_node(node));
        }
        positions
    }

    /// Leaves out what is said about GPUs that no matrix shows: their number is damaged.
    fn drop_strangers(&mut self, warnings: &mut Vec<SourceWarning>) {
        let shown = &self.in_matrices;
        self.facts.retain(|gpu, facts| {
            let is_kept = shown.is_empty() || shown.contains(gpu);
            if !is_kept {
                let text = format!("no matrix shows {gpu}; what is said about it is left out");
                warnings.push(SourceWarning { line: facts.first_line, text });
            }
            is_kept
        });
    }

    /// rocm-smi has shown one address for several partitions of a card.
    fn drop_shared_addresses(&mut self, warnings: &mut Vec<SourceWarning>) {
        let mut owners: BTreeMap<PciAddress, usize> = BTreeMap::new();
        for facts in self.facts.values() {
            if let Fact::Known(pci) = facts.pci {
                *owners.entry(pci).or_default() += 1;
            }
        }
        for (gpu, facts) in &mut self.facts {
            let Fact::Known(pci) = facts.pci else { continue };
            if owners.get(&pci).is_some_and(|owners| *owners > 1) {
                facts.pci = Fact::Contradicted;
                let text = format!("{pci} of {gpu} is the address of another, too; it is left out");
                warnings.push(SourceWarning { line: facts.first_line, text });
            }
        }
    }
}

impl Facts {
    /// The NUMA node, from either of the two figures.
    fn numa_node(&self, gpu: Gpu, warnings: &mut Vec<SourceWarning>) -> Option<u32> {
        match (&self.numa_node, &self.numa_affinity) {
            (Fact::Contradicted, _) => None,
            (Fact::Known(Some(node)), Fact::Known(Some(affinity))) => {
                if node != affinity {
                    let text = format!(
                        "{gpu} is linked to NUMA node {node}, but its affinity is {affinity}; \
                         {node} is taken"
                    );
                    warnings.push(SourceWarning { line: self.first_line, text });
                }
                Some(*node)
            }
            (Fact::Known(Some(node)), _) => Some(*node),
            (_, Fact::Known(affinity)) => *affinity,
            _ => None,
        }
    }
}

/// What is said about single GPUs and of use here.
#[derive(Clone, Copy, Debug)]
enum Key {
    NumaNode,
    NumaAffinity,
    Pci,
    Model,
    Architecture,
}

impl Key {
    fn of(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "(topology) numa node" => Some(Self::NumaNode),
            "(topology) numa affinity" => Some(Self::NumaAffinity),
            "pci bus" => Some(Self::Pci),
            "card series" => Some(Self::Model),
            "gfx version" => Some(Self::Architecture),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::NumaNode => "the NUMA node",
            Self::NumaAffinity => "the NUMA affinity",
            Self::Pci => "the PCI address",
            Self::Model => "the model",
            Self::Architecture => "the architecture",
        }
    }
}

/// A NUMA node; none for -1, also where it was printed without its sign.
fn numa(value: &str) -> Option<Option<u32>> {
    if value == "-1" || value == "4294967295" {
        return Some(None);
    }
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    let node = is_number.then(|| value.parse().ok())?;
    node.filter(|node| *node < MOST_NUMA_NODES).map(Some)
}

fn is_absent(value: &str) -> bool {
    value.is_empty() || ["N/A", "None"].iter().any(|absent| value.eq_ignore_ascii_case(absent))
}
