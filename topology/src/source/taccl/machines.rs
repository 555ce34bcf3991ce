//! Equal machines of numbered GPUs, of which such files speak.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{Figure, InterconnectType, Link, Node, NodeKind, Observations, SourceError, Tool};

use super::refusal;

/// GPUs of all machines together, at most: files state pairs of them.
pub(super) const MOST_GPUS: usize = 512;

/// Switches of a machine, at most.
const MOST_SWITCHES: usize = 64;

/// Some equal machines. GPUs are numbered through, and come first.
pub(super) struct Machines {
    pub(super) observed: Observations,
    machines: usize,
    gpus_per_machine: usize,
}

impl Machines {
    pub(super) fn new(machines: usize, gpus_per_machine: usize) -> Result<Self, SourceError> {
        let gpus = machines.saturating_mul(gpus_per_machine);
        if gpus > MOST_GPUS {
            return Err(refusal(format!("more than {MOST_GPUS} GPUs; describe fewer machines")));
        }
        let mut observed = Observations::default();
        for number in 0..gpus {
            let gpu = Node::new(NodeKind::Gpu);
            observed.add_node(gpu.labelled(Tool::Profile, format!("GPU{number}")));
        }
        Ok(Self { observed, machines, gpus_per_machine })
    }

    /// Links within each machine by a matrix, rows of destinations. `figures` gives bandwidth and
    /// latency by destination and source.
    pub(super) fn add_links(
        &mut self,
        matrix: &Value,
        figures: impl Fn(usize, usize) -> (Figure, Figure),
    ) {
        let Some(rows) = square(matrix, self.gpus_per_machine) else {
            self.observed.warn(None, "the matrix of links is not one row for each GPU; left out");
            return;
        };
        for (to, row) in rows.iter().enumerate() {
            for (from, links) in row.iter().enumerate() {
                if from == to || links.as_f64().is_none_or(|links| links <= 0.0) {
                    continue;
                }
                let (bandwidth, latency) = figures(to, from);
                for first in self.first_gpus() {
                    self.observed.links.push(Link {
                        from: first + from,
                        to: first + to,
                        kind: InterconnectType::Unknown,
                        bandwidth: bandwidth.clone(),
                        latency: latency.clone(),
                    });
                }
            }
        }
    }

    /// In each machine a switch for each list of GPUs. How it is linked is not said.
    pub(super) fn add_switches(&mut self, switches: &Value) {
        let switches = switches.as_array().map(Vec::as_slice).unwrap_or_default();
        if switches.len() > MOST_SWITCHES {
            let text = format!("more than {MOST_SWITCHES} switches are left out");
            self.observed.warn(None, text);
            return;
        }
        for switch in switches {
            let gpus: Option<BTreeSet<usize>> =
                switch.as_array().and_then(|gpus| gpus.iter().map(|gpu| self.gpu(gpu)).collect());
            let Some(gpus) = gpus else {
                let text = format!("a switch of {} is left out", shown(switch));
                self.observed.warn(None, text);
                continue;
            };
            for first in self.first_gpus() {
                let node = self.observed.add_node(Node::new(NodeKind::NvSwitch));
                for gpu in &gpus {
                    self.observed.add_link_both(link(first + gpu, node));
                }
            }
        }
    }

    /// Links from senders of each machine to receivers of each other one.
    pub(super) fn add_relays(&mut self, relays: &Value) {
        let all = 0..self.gpus_per_machine;
        let relays: BTreeSet<(usize, usize)> = match relays {
            Value::Null => return,
            Value::String(name) if name == "direct-map" => all.map(|gpu| (gpu, gpu)).collect(),
            Value::String(name) if name == "fully-connected" => {
                all.clone().flat_map(|from| all.clone().map(move |to| (from, to))).collect()
            }
            Value::Object(receivers) => {
                receivers.iter().flat_map(|(from, to)| self.relays_of(from, to)).collect()
            }
            other => {
                let text = format!("connections between machines by {} are left out", shown(other));
                self.observed.warn(None, text);
                return;
            }
        };
        for sender in self.first_gpus() {
            for receiver in self.first_gpus().into_iter().filter(|&first| first != sender) {
                let links = relays.iter().map(|&(from, to)| link(sender + from, receiver + to));
                self.observed.links.extend(links);
            }
        }
    }

    fn relays_of(&mut self, from: &str, to: &Value) -> Vec<(usize, usize)> {
        let sender = from.parse().ok().and_then(|number: u64| self.gpu(&number.into()));
        let receivers: Option<Vec<usize>> =
            to.as_array().and_then(|gpus| gpus.iter().map(|gpu| self.gpu(gpu)).collect());
        if let (Some(sender), Some(receivers)) = (sender, receivers) {
            return receivers.into_iter().map(|receiver| (sender, receiver)).collect();
        }
        let from: String = from.chars().take(40).collect();
        let text = format!("the connection from {from} to {} is left out", shown(to));
        self.observed.warn(None, text);
        Vec::new()
    }

    /// A GPU by its number within its machine.
    fn gpu(&self, number: &Value) -> Option<usize> {
        let number = usize::try_from(number.as_u64()?).ok()?;
        (number < self.gpus_per_machine).then_some(number)
    }

    /// The first GPU of each machine.
    fn first_gpus(&self) -> Vec<usize> {
        (0..self.machines).map(|machine| machine * self.gpus_per_machine).collect()
    }
}

fn link(from: usize, to: usize) -> Link {
    let (bandwidth, latency) = (Figure::unknown(), Figure::unknown());
    Link { from, to, kind: InterconnectType::Unknown, bandwidth, latency }
}

/// The rows of a square matrix of this size.
pub(super) fn square(matrix: &Value, size: usize) -> Option<Vec<&Vec<Value>>> {
    let rows: Vec<&Vec<Value>> = matrix.as_array()?.iter().map_while(Value::as_array).collect();
    let is_square = matrix.as_array()?.len() == size
        && rows.len() == size
        && rows.iter().all(|row| row.len() == size);
    is_square.then_some(rows)
}

/// A value short enough for a message.
fn shown(value: &Value) -> String {
    value.to_string().chars().take(40).collect()
}
