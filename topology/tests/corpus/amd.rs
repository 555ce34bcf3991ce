//! Facts about recorded outputs of rocm-smi and amd-smi.

use hopwise_topology::{PeerCapability, PeerStatus, Statement};

use super::facts::{check, machine, position};
use crate::{Case, Outcome};

/// Weight and hops between two GPUs, in both directions.
#[track_caller]
fn between(read: &Outcome, from: &str, to: &str, weight: u32, hops: u32) {
    let machine = machine(read);
    let (from, to) = (position(&machine, from), position(&machine, to));
    for (from, to) in [(from, to), (to, from)] {
        let stated: Vec<_> = machine.statements(from, to).collect();
        assert!(stated.contains(&&Statement::Weight(weight)), "{stated:?}");
        assert!(stated.contains(&&Statement::Hops(hops)), "{stated:?}");
    }
}

pub(crate) const CASES: &[Case] = &[
    ("rocm-smi/1gpu-type-only-kvm.txt", |read| {
        check(read, "gpus=1 clean");
        assert!(machine(read).links().is_empty() && machine(read).pairs().is_empty());
    }),
    ("rocm-smi/4gpu-pcie-80col-banner-truncated.txt", |read| {
        check(read, "gpus=4 all=PCIE numa:GPU0=none");
        between(read, "GPU0", "GPU1", 52, 3);
        between(read, "GPU2", "GPU3", 52, 3);
    }),
    ("rocm-smi/hygon-8dcu-numa-json-elided.json.txt", |read| {
        let error = read.as_ref().unwrap_err();
        assert_eq!(error.line(), Some(2), "{error}");
    }),
    ("rocm-smi/mi100-2gpu-type-only-collapsed-spaces.txt", |read| check(read, "gpus=2 all=PCIE")),
    ("rocm-smi/mi210-8gpu-numa-reversed.txt", |read| {
        check(read, "gpus=8 numa:GPU0=3 numa:GPU1=2 numa:GPU2=1 numa:GPU3=0 numa:GPU4=7");
        check(read, "numa:GPU5=6 numa:GPU6=5 numa:GPU7=4 all=? clean");
    }),
    ("rocm-smi/mi210-8gpu-two-xgmi-quads-leading-blank.txt", |read| {
        check(read, "gpus=8 GPU0-GPU1=XGMI GPU0-GPU3=XGMI GPU4-GPU7=XGMI GPU0-GPU4=PCIE");
        check(read, "GPU3-GPU7=PCIE numa:GPU0=0 numa:GPU3=0 numa:GPU4=1 numa:GPU7=1 clean");
        between(read, "GPU0", "GPU1", 15, 1);
        between(read, "GPU0", "GPU4", 72, 3);
        assert_eq!(machine(read).links().len(), 24);
    }),
    ("rocm-smi/mi300a-4apu-trailing-spaces.txt", |read| {
        check(read, "gpus=4 all=XGMI numa:GPU0=0 numa:GPU1=1 numa:GPU2=2 numa:GPU3=3 clean");
        between(read, "GPU1", "GPU3", 15, 1);
    }),
    ("other/amd-smi-topology-mi300x-8gpu.txt", |read| {
        check(read, "gpus=8 all=XGMI pci:GPU0=0000:0c:00.0 pci:GPU7=0000:df:00.0 clean");
        between(read, "GPU0", "GPU7", 15, 1);
        let machine = machine(read);
        let stated: Vec<_> = machine.statements(0, 7).collect();
        let status = PeerStatus::Supported;
        assert!(stated.contains(&&Statement::Peer { capability: PeerCapability::Read, status }));
        let gb_per_s = stated.iter().find_map(|statement| match statement {
            Statement::Bandwidth(figure) => figure.value(),
            _ => None,
        });
        assert_eq!(gb_per_s, Some(50.0));
    }),
];
