//! Facts about a machine in a line of text, and whether they hold.

use hopwise_topology::{Machine, NodeKind, Tool};

use crate::Outcome;

/// The machine of a file that can be read.
#[track_caller]
pub(crate) fn machine(outcome: &Outcome) -> Machine {
    match outcome {
        Ok(readings) => Machine::merge(readings),
        Err(error) => panic!("not read: {error}"),
    }
}

/// Checks facts, separated by white space:
///
/// - `gpus=8`, `nics=4`, `nvswitches=1`
/// - `all=NV18`: the class of all pairs of GPUs
/// - `GPU0-NIC3=PIX`: the class of a pair, both ways
/// - `numa:GPU0=1`, `numa:GPU0=0-3`, `numa:GPU0=none`
/// - `cpus:GPU0=0-23`, `cpus:GPU0=none`
/// - `os:NIC0=mlx5_2`: what the operating system calls it
/// - `clean`: no warnings; `warned`: some
#[track_caller]
pub(crate) fn check(outcome: &Outcome, facts: &str) {
    let machine = machine(outcome);
    for fact in facts.split_whitespace() {
        let (subject, value) = fact.split_once('=').unwrap_or((fact, ""));
        let holds = if let Some((what, name)) = subject.split_once(':') {
            said(&machine, what, name) == value
        } else if let Some((from, to)) = subject.split_once('-') {
            class(&machine, from, to) == value && class(&machine, to, from) == value
        } else {
            counted(&machine, subject, value)
        };
        assert!(holds, "{fact} does not hold: {machine:#?}");
    }
}

/// Whether the whole machine is so.
#[track_caller]
fn counted(machine: &Machine, subject: &str, value: &str) -> bool {
    let of_kind = |kind| machine.nodes().iter().filter(|node| node.kind == kind).count();
    match subject {
        "gpus" => machine.gpus().len().to_string() == value,
        "nics" => machine.nics().len().to_string() == value,
        "nvswitches" => of_kind(NodeKind::NvSwitch).to_string() == value,
        "clean" => machine.warnings().is_empty(),
        "warned" => !machine.warnings().is_empty(),
        "all" => {
            let gpus = machine.gpus().len();
            let classes = machine.classes();
            (0..gpus).all(|from| (0..gpus).all(|to| to == from || classes[from][to] == value))
        }
        _ => panic!("there is no such fact: {subject}"),
    }
}

#[track_caller]
fn said(machine: &Machine, what: &str, name: &str) -> String {
    let node = &machine.nodes()[position(machine, name)];
    let none = || "none".to_owned();
    match what {
        "numa" => match node.numa_nodes[..] {
            [] => none(),
            [only] => only.to_string(),
            [first, .., last] => format!("{first}-{last}"),
        },
        "cpus" => node.cpu_affinity.clone().unwrap_or_else(none),
        "os" => node.label(Tool::Os).map_or_else(none, str::to_owned),
        "pci" => node.pci.map_or_else(none, |pci| pci.to_string()),
        "links" => node.nvlinks_up.map_or_else(none, |links| links.to_string()),
        "rate" => node.nvlink_gb_per_s.value().map_or_else(none, |rate| rate.to_string()),
        _ => panic!("there is no such fact: {what}"),
    }
}

/// The node of a name that the machine or a tool has for it.
#[track_caller]
pub(crate) fn position(machine: &Machine, name: &str) -> usize {
    let is_named = |position: &usize| {
        let has_label = |label: &hopwise_topology::Label| label.name == name;
        machine.name(*position) == name || machine.nodes()[*position].labels.iter().any(has_label)
    };
    let found = (0..machine.nodes().len()).find(is_named);
    found.unwrap_or_else(|| panic!("there is no {name} in {machine:#?}"))
}

#[track_caller]
fn class(machine: &Machine, from: &str, to: &str) -> String {
    machine.class(position(machine, from), position(machine, to)).class_name()
}
