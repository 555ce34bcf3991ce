//! Facts about recorded outputs of xpu-smi.

use hopwise_topology::NodeKind;

use super::facts::{check, machine, position};
use crate::Case;

pub(crate) const CASES: &[Case] = &[
    ("xpu-smi/device0-topology-table.txt", |read| {
        check(read, "gpus=1");
        let machine = machine(read);
        let affinity = machine.nodes()[machine.gpus()[0]].cpu_affinity.as_deref();
        assert_eq!(affinity, Some("0-23,48-71"));
        let domains = machine.failure_domains(machine.gpus()[0]);
        assert_eq!(domains.len(), 1);
        assert_eq!(machine.nodes()[domains[0]].kind, NodeKind::PcieSwitch);
    }),
    ("xpu-smi/max-2card-2tile-matrix-pipes.txt", |read| {
        check(read, "gpus=4 clean");
        let machine = machine(read);
        let class = |from: &str, to: &str| {
            let [from, to] = [from, to].map(|tile| position(&machine, &format!("GPU {tile}")));
            machine.class(from, to).class_name()
        };
        assert_eq!(class("0/0", "0/1"), "MDF");
        assert_eq!(class("0/0", "1/1"), "XL16");
        assert_eq!(class("0/0", "1/0"), "XL*");
        let node = |tile: &str| &machine.nodes()[position(&machine, &format!("GPU {tile}"))];
        assert_eq!(node("1/0").cpu_affinity.as_deref(), Some("24-47,72-95"));
        assert_eq!(node("1/0").card, node("1/1").card);
        assert_ne!(node("0/0").card, node("1/0").card);
        // A tile reaches the one that it is not linked to through its neighbour, not through XL*.
        assert!(machine.topology().connection(0, 2).is_none());
    }),
];
