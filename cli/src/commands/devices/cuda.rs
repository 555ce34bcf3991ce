//! The CUDA part of `hopwise devices`: GPUs with their facts and troubles, what is missing, and the
//! check of peer copies.

use std::fmt::Write;
use std::process::Command;
use std::time::Duration;

use hopwise_backend_cuda::nvml::{Condition, Nvml};
use hopwise_backend_cuda::{
    CudaBackend, CudaOptions, DriverOutcome, GpuFacts, Libraries, PeerVerdict, Probe, verdict_line,
    verify_pair, verify_pair_in_child,
};
use serde::Serialize;

use super::{Missing, gib, indent};
use crate::args::VerifyPairArguments;
use crate::failure::Failure;
use crate::output;
use crate::progress;

/// How long the check of one pair may take: a GPU can need seconds to be set up.
const PAIR_LIMIT: Duration = Duration::from_secs(60);

/// What `--json` prints.
#[derive(Debug, Serialize)]
pub(super) struct Cuda {
    device_count: u32,
    /// The newest CUDA version that the driver supports.
    cuda_version: Option<String>,
    gpus: Vec<Gpu>,
    /// GPUs that the driver lists and does not describe.
    problems: Vec<String>,
    /// What the check of peer copies found, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    peers: Option<Vec<Peer>>,
    missing: Vec<Missing>,
    #[serde(skip)]
    text: String,
}

#[derive(Debug, Serialize)]
struct Gpu {
    /// The CUDA driver's number, which is not nvidia-smi's.
    ordinal: usize,
    name: String,
    uuid: String,
    parent_uuid: Option<String>,
    pci_address: Option<String>,
    memory_bytes: u64,
    compute_capability: String,
    multiprocessors: u32,
    /// What makes it worse than it should be; none where NVML tells nothing.
    troubles: Option<Vec<String>>,
}

#[derive(Debug, Serialize)]
struct Peer {
    from: usize,
    to: usize,
    verdict: String,
    remedy: Option<&'static str>,
}

impl Cuda {
    /// Asks the driver and NVML.
    pub(super) fn now(verify_peers: bool) -> Result<Self, Failure> {
        let probe = hopwise_backend_cuda::probe();
        let backend = CudaBackend::new(CudaOptions::new());
        let nvml = Nvml::open(&Libraries::system()).ok();
        let gpus: Vec<_> = backend.gpus().map(|gpu| Gpu::new(gpu, nvml.as_ref())).collect();
        let peers = if verify_peers { Some(verify(&gpus)?) } else { None };
        let cuda_version = match &probe.driver {
            DriverOutcome::Ready { version, .. } | DriverOutcome::NoDevice { version, .. } => {
                Some(version.to_string())
            }
            _ => None,
        };
        Ok(Self {
            device_count: probe.device_count(),
            cuda_version,
            gpus,
            problems: backend.problems(),
            peers,
            missing: missing(&probe),
            text: probe.to_string(),
        })
    }

    /// For a person.
    pub(super) fn describe(&self) -> String {
        let mut text = self.text.clone();
        for gpu in &self.gpus {
            // A string takes every text.
            let _ = write!(text, "\n{}", gpu.describe());
        }
        for problem in &self.problems {
            let _ = write!(text, "\n{problem}");
        }
        for peer in self.peers.iter().flatten() {
            let _ = write!(text, "\npeer copies {} -> {}: {}", peer.from, peer.to, peer.verdict);
            if let Some(remedy) = peer.remedy {
                let _ = write!(text, "\n  remedy: {remedy}");
            }
        }
        text
    }

    /// Whether a pair was found on which bytes are lost.
    pub(super) fn is_any_pair_unsound(&self) -> bool {
        self.peers.iter().flatten().any(|peer| peer.remedy.is_some())
    }
}

impl Gpu {
    fn new(facts: &GpuFacts, nvml: Option<&Nvml>) -> Self {
        let troubles = nvml.and_then(|nvml| match nvml.condition(&facts.uuid) {
            Condition::Sound => Some(Vec::new()),
            Condition::Degraded(found) => {
                Some(found.iter().map(|one| format!("{}; {}", one.what, one.remedy)).collect())
            }
            Condition::Lost { cause } => Some(vec![format!("lost: {cause}")]),
            _ => None,
        });
        Self {
            ordinal: facts.ordinal,
            name: facts.name.clone(),
            uuid: facts.uuid.clone(),
            parent_uuid: facts.parent_uuid.clone(),
            pci_address: facts.pci_address.clone(),
            memory_bytes: facts.memory_bytes,
            compute_capability: facts.compute_capability.to_string(),
            multiprocessors: facts.multiprocessors,
            troubles,
        }
    }

    fn describe(&self) -> String {
        let mut text = format!(
            "cuda[{}]: {}, compute capability {}, {} multiprocessors, {}\n  {}",
            self.ordinal,
            self.name,
            self.compute_capability,
            self.multiprocessors,
            gib(self.memory_bytes),
            self.uuid
        );
        if let Some(parent) = &self.parent_uuid {
            let _ = write!(text, ", part of {parent}");
        }
        if let Some(address) = &self.pci_address {
            let _ = write!(text, ", PCI {address}");
        }
        let troubles = match self.troubles.as_deref() {
            None => "health: unknown".to_owned(),
            Some([]) => "health: nothing is wrong".to_owned(),
            Some(troubles) => format!("health:\n{}", indent(&troubles.join("\n"))),
        };
        let _ = write!(text, "\n{}", indent(&troubles));
        text
    }
}

fn missing(probe: &Probe) -> Vec<Missing> {
    let mut missing = Vec::new();
    let mut note = |what: &str, explanation: String| {
        missing.push(Missing { what: what.to_owned(), explanation });
    };
    if probe.driver.remedy().is_some() {
        note("CUDA driver", probe.driver.to_string());
    }
    for (what, library) in [("NVRTC", &probe.nvrtc), ("NVML", &probe.nvml)] {
        if library.is_missing() {
            note(what, library.to_string());
        }
    }
    missing
}

/// Checks every ordered pair, each in a process of its own.
fn verify(gpus: &[Gpu]) -> Result<Vec<Peer>, Failure> {
    let fail = |error: std::io::Error| Failure::failed(format!("cannot start the check: {error}"));
    let this = std::env::current_exe().map_err(fail)?;
    let pairs: Vec<_> = gpus
        .iter()
        .flat_map(|from| gpus.iter().map(move |to| (from, to)))
        .filter(|(from, to)| from.ordinal != to.ordinal)
        .collect();
    let bar = progress::bar(pairs.len() as u64, "pairs of GPUs");
    let mut peers = Vec::with_capacity(pairs.len());
    for (from, to) in pairs {
        let mut command = Command::new(&this);
        command.args(["verify-pair", &from.uuid, &to.uuid]);
        let verdict = verify_pair_in_child(command, PAIR_LIMIT).map_err(fail)?;
        let remedy = verdict.remedy();
        let verdict = verdict.to_string();
        peers.push(Peer { from: from.ordinal, to: to.ordinal, verdict, remedy });
        bar.inc(1);
    }
    Ok(peers)
}

/// `hopwise verify-pair`: the check of one pair, in a process that may hang.
pub(crate) fn verify_one(arguments: &VerifyPairArguments) -> Result<(), Failure> {
    let verdict: PeerVerdict = verify_pair(&Libraries::system(), &arguments.from, &arguments.to);
    output::print(&verdict_line(&verdict))
}
