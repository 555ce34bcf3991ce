//! What the wgpu backend sees: adapters with their facts, and what is missing.

use std::fmt;

use hopwise_backend_wgpu::{
    AdapterFacts, ApiOutcome, ESTIMATED_MEMORY_BYTES, WgpuBackend, WgpuOptions,
};
use hopwise_core::device::Device;
use serde::Serialize;

use super::{Missing, gib};

/// The adapters of this machine.
#[derive(Debug, Serialize)]
pub(super) struct Wgpu {
    adapters: Vec<Adapter>,
    missing: Vec<Missing>,
}

/// One adapter. What the driver does not tell is null; `memory_is_estimated` says of the memory
/// figures whether they are a guess.
#[derive(Debug, Serialize)]
struct Adapter {
    /// Names it in `--devices wgpu[INDEX]:1`, until the machine starts anew.
    index: usize,
    name: String,
    kind: String,
    pci_address: Option<String>,
    apis: Vec<String>,
    drivers: Vec<String>,
    memory_bytes: u64,
    available_memory_bytes: Option<u64>,
    memory_is_estimated: bool,
    numa_node: Option<u32>,
    pcie_generation: Option<u8>,
    pcie_lanes: Option<u8>,
    subgroup_sizes: (u32, u32),
    max_binding_bytes: u64,
    max_state_bytes: u64,
    max_workgroup_invocations: u32,
    /// Iterations after which the driver silently ends an invocation, found by trying.
    max_loop_iterations: Option<u64>,
    /// Why the adapter could not be opened, if it could not.
    fault: Option<String>,
}

impl Wgpu {
    /// Asks every adapter, and opens each to try out how long a loop may be.
    pub(super) fn now() -> Self {
        let backend = WgpuBackend::new(WgpuOptions::new());
        let adapters: Vec<_> = backend
            .adapters()
            .enumerate()
            .map(|(place, facts)| Adapter::new(facts, &backend, place))
            .collect();
        let probe = hopwise_backend_wgpu::probe();
        let missing = probe.apis().iter().filter_map(|(api, outcome)| match outcome {
            ApiOutcome::NoAdapter(missing) => {
                Some(Missing { what: api.to_string(), explanation: missing.to_string() })
            }
            _ => None,
        });
        Self { adapters, missing: missing.collect() }
    }
}

impl Adapter {
    fn new(facts: &AdapterFacts, backend: &WgpuBackend, place: usize) -> Self {
        let opened = backend.open_wgpu(place);
        let accesses = &facts.adapter.accesses;
        Self {
            index: facts.index,
            name: facts.adapter.name.clone(),
            kind: facts.adapter.kind.to_string(),
            pci_address: facts.adapter.pci_address.clone(),
            apis: accesses.iter().map(|access| access.api.to_string()).collect(),
            drivers: accesses.iter().map(|access| access.driver.clone()).collect(),
            memory_bytes: facts.memory.map_or(ESTIMATED_MEMORY_BYTES, |memory| memory.total_bytes),
            available_memory_bytes: facts.memory.and_then(|memory| memory.available_bytes),
            memory_is_estimated: facts.memory.is_none(),
            numa_node: facts.numa_node,
            pcie_generation: facts.pcie.map(|link| link.generation),
            pcie_lanes: facts.pcie.map(|link| link.lanes),
            subgroup_sizes: facts.subgroup_sizes,
            max_binding_bytes: facts.max_binding_bytes,
            max_state_bytes: facts.max_state_bytes,
            max_workgroup_invocations: facts.max_workgroup_invocations,
            max_loop_iterations: opened
                .as_ref()
                .ok()
                .and_then(|device| device.limits().max_loop_iterations),
            fault: opened.err().map(|error| error.to_string()),
        }
    }
}

impl fmt::Display for Wgpu {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for adapter in &self.adapters {
            writeln!(formatter, "{adapter}")?;
        }
        for Missing { what, explanation } in &self.missing {
            writeln!(formatter, "{what}: {explanation}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Adapter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unknown = || "unknown".to_owned();
        let or_unknown = |fact: Option<String>| fact.unwrap_or_else(unknown);
        writeln!(formatter, "{}: {} ({})", self.index, self.name, self.kind)?;
        for (api, driver) in self.apis.iter().zip(&self.drivers) {
            writeln!(formatter, "    through {api} [{driver}]")?;
        }
        let pci = self.pci_address.clone();
        let pci = pci.unwrap_or_else(|| "none reported: its identity is unstable".to_owned());
        writeln!(formatter, "    PCI address: {pci}")?;
        let link = self.pcie_generation.zip(self.pcie_lanes);
        let link = link.map(|(generation, lanes)| format!("generation {generation}, x{lanes}"));
        let node = self.numa_node.map(|node| node.to_string());
        let (link, node) = (or_unknown(link), or_unknown(node));
        writeln!(formatter, "    PCI Express link: {link}; NUMA node: {node}")?;
        let mark =
            if self.memory_is_estimated { " (estimated: the driver does not tell)" } else { "" };
        let free = or_unknown(self.available_memory_bytes.map(gib));
        writeln!(formatter, "    memory: {}{mark}, available: {free}", gib(self.memory_bytes))?;
        let (smallest, largest) = self.subgroup_sizes;
        writeln!(
            formatter,
            "    largest state: {}, in bindings of {}; workgroups up to {}, subgroups {smallest} to \
             {largest}",
            gib(self.max_state_bytes),
            gib(self.max_binding_bytes),
            self.max_workgroup_invocations
        )?;
        match (&self.fault, self.max_loop_iterations) {
            (Some(fault), _) => write!(formatter, "    cannot be opened: {fault}"),
            (None, None) => write!(formatter, "    loops: no limit found"),
            (None, Some(limit)) => {
                write!(formatter, "    loops: ended silently after {limit} iterations (tried)")
            }
        }
    }
}
