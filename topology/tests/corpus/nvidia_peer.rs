//! Facts about recorded outputs of `nvidia-smi topo -p2p`.

use hopwise_topology::{PeerCapability, PeerStatus, Statement};

use super::facts::{check, machine};
use crate::{Case, Outcome};

/// Every ordered pair of GPUs has this status for each of these ways of access, and no other.
#[track_caller]
fn all(read: &Outcome, capabilities: &[PeerCapability], status: PeerStatus) {
    let machine = machine(read);
    for &from in machine.gpus() {
        for &to in machine.gpus().iter().filter(|&&to| to != from) {
            let stated: Vec<_> = machine.statements(from, to).cloned().collect();
            let due = capabilities.iter().map(|&capability| Statement::Peer { capability, status });
            assert_eq!(stated, due.collect::<Vec<_>>());
        }
    }
}

pub(crate) const CASES: &[Case] = &[
    ("nvidia-smi-p2p/h100-8gpu-all-ok.txt", |read| {
        check(read, "gpus=8 clean");
        all(read, &[PeerCapability::Read], PeerStatus::Supported);
    }),
    ("nvidia-smi-p2p/l4-2gpu-cns.txt", |read| {
        check(read, "gpus=2 clean");
        all(read, &[PeerCapability::Read], PeerStatus::ChipsetNotSupported);
    }),
    ("nvidia-smi-p2p/nccl-docs-8gpu-p2p-p.txt", |read| {
        // The command line was not copied, so what was asked is not known.
        check(read, "gpus=8 warned");
        all(read, &[PeerCapability::Read], PeerStatus::Supported);
    }),
    ("nvidia-smi-p2p/rtx5090-2gpu-rw-gns.txt", |read| {
        check(read, "gpus=2 warned");
        all(read, &[PeerCapability::Read], PeerStatus::GpuNotSupported);
    }),
];
