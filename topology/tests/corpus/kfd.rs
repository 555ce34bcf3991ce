//! Facts about recorded topologies of AMD's kernel driver.

use hopwise_topology::{InterconnectType, Machine, NodeKind, Statement};

use super::facts::{check, machine, position};
use crate::{Case, Outcome};

fn count(machine: &Machine, kind: NodeKind) -> usize {
    machine.nodes().iter().filter(|node| node.kind == kind).count()
}

fn weight(machine: &Machine, from: &str, to: &str) -> Option<u32> {
    let (from, to) = (position(machine, from), position(machine, to));
    machine.statements(from, to).find_map(|statement| match statement {
        Statement::Weight(weight) => Some(*weight),
        _ => None,
    })
}

/// GB/s of the links of a kind, each once.
fn rates(machine: &Machine, is_kind: fn(InterconnectType) -> bool) -> Vec<f64> {
    let links = machine.links().iter().filter(|link| is_kind(link.kind));
    let mut rates: Vec<f64> = links.filter_map(|link| link.bandwidth.value()).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    rates
}

const fn is_xgmi(kind: InterconnectType) -> bool {
    matches!(kind, InterconnectType::InfinityFabric { .. })
}

const fn is_pcie(kind: InterconnectType) -> bool {
    matches!(kind, InterconnectType::Pcie { .. })
}

fn mi210(read: &Outcome) {
    check(read, "gpus=8 GPU0-GPU1=XGMI GPU0-GPU3=XGMI GPU4-GPU7=XGMI GPU0-GPU4=SYS GPU3-GPU7=SYS");
    let machine = machine(read);
    assert_eq!(count(&machine, NodeKind::NumaNode), 2);
    let xgmi: Vec<_> = machine.links().iter().filter(|link| is_xgmi(link.kind)).collect();
    assert_eq!(xgmi.len(), 24);
    assert_eq!(rates(&machine, is_xgmi), [50.0]);
    assert_eq!(rates(&machine, is_pcie), [32.0]);
    let node = |number: usize| format!("node {number}");
    assert_eq!(weight(&machine, &node(2), &node(3)), Some(15));
    assert_eq!(weight(&machine, &node(2), &node(6)), Some(72));
    assert_eq!(weight(&machine, &node(2), &node(1)), Some(52));
    assert_eq!(weight(&machine, &node(0), &node(2)), Some(20));
    let gpu = &machine.nodes()[position(&machine, "node 2")];
    assert_eq!(gpu.architecture.as_deref(), Some("gfx90a"));
    assert_eq!((gpu.pci.unwrap().to_string().as_str(), gpu.numa_node()), ("0000:63:00.0", Some(0)));
}

fn vega10(read: &Outcome) {
    check(read, "gpus=2 warned");
    let machine = machine(read);
    assert_eq!(count(&machine, NodeKind::NumaNode), 1);
    assert!(machine.links().iter().all(|link| is_pcie(link.kind) && link.bandwidth.is_unknown()));
    assert_eq!(weight(&machine, "node 0", "node 1"), Some(20));
    assert!(machine.topology().connection(0, 1).is_none_or(|link| !link.peer_access));
}

pub(crate) const CASES: &[Case] = &[
    ("kfd/mi210-8gpu-xgmi-and-pcie.grep.txt", mi210),
    ("kfd/mi210-8gpu-xgmi-and-pcie.tar.gz", mi210),
    ("kfd/mi300x-cpx-63-partitions.tar.gz", |read| {
        check(read, "gpus=63 clean");
        let machine = machine(read);
        assert_eq!(count(&machine, NodeKind::NumaNode), 2);
        assert_eq!(count(&machine, NodeKind::Card), 8);
        assert_eq!(weight(&machine, "node 3", "node 2"), Some(13));
        assert_eq!(weight(&machine, "node 3", "node 11"), Some(41));
        let [a, b, far] = ["node 2", "node 3", "node 11"].map(|node| position(&machine, node));
        assert_eq!(machine.nodes()[a].card, machine.nodes()[b].card);
        assert_ne!(machine.nodes()[a].card, machine.nodes()[far].card);
        let bandwidth = |from, to| {
            let link = machine.links().iter().find(|link| (link.from, link.to) == (from, to));
            link.unwrap().bandwidth.clone()
        };
        assert_eq!(bandwidth(b, a).to_string(), "=819.2");
        // 0 stands for unknown, so what is shown is an estimate.
        assert!(bandwidth(b, far).to_string().starts_with('~'));
        let between = machine.links().iter().filter(|link| link.kind == InterconnectType::System);
        assert!(between.count() > 0);
    }),
    ("kfd/vega10-2gpu-pcie-zero-bw.grep.txt", vega10),
    ("kfd/vega10-2gpu-pcie-zero-bw.tar.gz", vega10),
];
