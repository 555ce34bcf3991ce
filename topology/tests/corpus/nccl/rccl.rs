//! RCCL's files, of AMD machines.

use std::collections::BTreeSet;

use hopwise_topology::{InterconnectType, NodeKind, Observations, Tool};

use super::{
    Outcome, all, clean, count, gigabits, links_of_gpus, numa_nodes, numa_of_gpus, numbers,
    observed, pcie, switches_above, width,
};

/// The groups of GPUs, each of which has one xGMI link to each other, and none to the rest.
fn are_hives(observed: &Observations, hives: &[&[usize]]) {
    let mut expected = BTreeSet::new();
    for hive in hives {
        for &from in *hive {
            let others = hive.iter().filter(|&&to| to != from);
            expected.extend(others.map(|&to| (from, to, 1)));
        }
    }
    let links = links_of_gpus(observed);
    assert_eq!(links.len(), expected.len());
    assert_eq!(links.into_iter().collect::<BTreeSet<_>>(), expected);
    assert_eq!(count(observed, NodeKind::Gpu), hives.concat().len());
    let is_numbered = |(at, name): (usize, &&str)| **name == format!("GPU{at}");
    assert!(numbers(observed).iter().enumerate().all(is_numbered));
}

fn architecture(observed: &Observations) -> &str {
    let all: BTreeSet<_> =
        all(observed, NodeKind::Gpu).iter().map(|gpu| gpu.architecture.as_deref()).collect();
    assert_eq!(all.len(), 1);
    all.into_iter().next().flatten().unwrap()
}

pub(super) fn mi100_four_hives(outcome: &Outcome) {
    let observed = observed(outcome);
    are_hives(observed, &[&[0, 5, 6, 7], &[1, 2, 3, 4], &[8, 9, 10, 11], &[12, 13, 14, 15]]);
    assert_eq!(numa_nodes(observed), ["1"]);
    assert_eq!(gigabits(observed), [200.0; 16]);
    assert_eq!(architecture(observed), "gfx908");
    // Two times eight switches of one address.
    assert_eq!(count(observed, NodeKind::PcieSwitch), 4 + 16);
    let lines: Vec<_> = observed.warnings.iter().map(|warning| warning.line).collect();
    assert_eq!(lines, [Some(23), Some(139)]);
    assert!(all(observed, NodeKind::Gpu).iter().all(|gpu| switches_above(observed, gpu) == 3));
}

pub(super) fn mi100_seven_numa_nodes(outcome: &Outcome) {
    let observed = clean(outcome);
    are_hives(observed, &[&[0, 2, 3, 5], &[1, 4, 6, 7]]);
    assert_eq!(numa_nodes(observed), ["1", "2", "3", "5", "6", "7", "4"]);
    assert_eq!(numa_of_gpus(observed), [1, 2, 2, 3, 5, 5, 6, 7]);
    let [nic] = all(observed, NodeKind::Nic)[..] else { panic!("{observed:?}") };
    assert_eq!((nic.label(Tool::Os), nic.numa_node()), (Some("mlx5_0"), Some(4)));
}

pub(super) fn mi100_collnet(outcome: &Outcome) {
    let observed = clean(outcome);
    are_hives(observed, &[&[0, 1, 2, 3], &[4, 5, 6, 7]]);
    assert_eq!(numa_of_gpus(observed), [0, 0, 1, 1, 2, 2, 3, 3]);
    assert_eq!(gigabits(observed), [200.0; 4]);
}

pub(super) fn mi210(outcome: &Outcome) {
    let observed = clean(outcome);
    assert_eq!(numa_of_gpus(observed), [0, 1, 1]);
    assert_eq!(observed.links, []);
    assert_eq!(architecture(observed), "gfx90a");
    assert!(all(observed, NodeKind::Gpu).iter().all(|gpu| width(gpu) == pcie(5, 16)));
    assert!(all(observed, NodeKind::PcieSwitch).iter().all(|switch| width(switch) == pcie(4, 16)));
}

/// Eight chips on four cards, wired as in Frontier.
fn are_mi250(observed: &Observations) {
    let links = links_of_gpus(observed);
    let of_first: Vec<_> = links.iter().filter(|(from, ..)| *from == 0).collect();
    assert_eq!(of_first, [&(0, 1, 4), &(0, 2, 1), &(0, 6, 2)]);
    assert_eq!(links.len(), 24);
    assert!(links.iter().all(|&(from, to, count)| links.contains(&(to, from, count))));
    assert_eq!(numa_nodes(observed), ["3", "1", "0", "2"]);
    assert_eq!(numa_of_gpus(observed), [3, 3, 1, 1, 0, 0, 2, 2]);
    assert_eq!(architecture(observed), "gfx90a");
}

pub(super) fn mi250_frontier(outcome: &Outcome) {
    let observed = clean(outcome);
    are_mi250(observed);
    assert_eq!(gigabits(observed), [200.0; 4]);
}

pub(super) fn mi250_vendor(outcome: &Outcome) {
    let observed = clean(outcome);
    are_mi250(observed);
    assert_eq!(gigabits(observed), [10.0, 1.0]);
    let nics = all(observed, NodeKind::Nic);
    let [slow] = nics.iter().filter(|nic| nic.pci.is_some()).collect::<Vec<_>>()[..] else {
        panic!("{nics:?}")
    };
    assert_eq!((slow.label(Tool::Os), width(slow)), (Some("ens2"), pcie(1, 1)));
    assert_eq!(switches_above(observed, slow), 1);
}

pub(super) fn mi50(outcome: &Outcome) {
    let observed = clean(outcome);
    assert_eq!(numa_of_gpus(observed), [0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(observed.links, []);
    assert_eq!(architecture(observed), "gfx906");
    let nics = all(observed, NodeKind::Nic);
    let address: Vec<_> = nics.iter().map(|nic| nic.pci.unwrap().to_string()).collect();
    assert_eq!(address, ["0000:a1:00.0"; 2]);
    assert_eq!(width(nics[0]), pcie(3, 4));
}

pub(super) fn synthetic_c2c(outcome: &Outcome) {
    let observed = clean(outcome);
    assert_eq!(links_of_gpus(observed), [(0, 1, 8), (1, 0, 8)]);
    let to_cpu: Vec<_> =
        observed.links.iter().filter(|link| link.kind == InterconnectType::NvLinkC2c).collect();
    assert_eq!(to_cpu.len(), 4);
    assert!(to_cpu.iter().all(|link| link.bandwidth.to_string() == "=400"));
    assert_eq!(gigabits(observed), [400.0, 100.0]);
    assert_eq!(architecture(observed), "gfx942");
}
