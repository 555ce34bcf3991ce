//! Circles in who-waits-for-whom.

use std::collections::HashMap;

use proptest::prelude::*;

use super::cycle;
use crate::id::KernelId;

fn graph(kernels: &[KernelId], edges: &[(usize, usize)]) -> HashMap<KernelId, Vec<KernelId>> {
    let mut graph: HashMap<KernelId, Vec<KernelId>> = HashMap::new();
    for &(from, to) in edges {
        graph.entry(kernels[from]).or_default().push(kernels[to]);
    }
    graph
}

#[test]
fn a_long_chain_is_no_circle_and_does_not_exhaust_the_stack() {
    let kernels: Vec<_> = (0..100_000).map(|_| KernelId::new("link")).collect();
    let mut edges: Vec<_> = (1..kernels.len()).map(|to| (to - 1, to)).collect();
    assert_eq!(cycle(&graph(&kernels, &edges)), []);
    edges.push((kernels.len() - 1, 10));
    assert_eq!(cycle(&graph(&kernels, &edges)).len(), kernels.len() - 10);
}

proptest! {
    #[test]
    fn a_circle_is_found_exactly_when_there_is_one(
        edges in prop::collection::vec((0usize..7, 0usize..7), 0..14),
    ) {
        let kernels: Vec<_> = (0..7).map(|_| KernelId::new("k")).collect();
        // Who reaches whom, by repeated squaring of the relation.
        let mut reaches = [[false; 7]; 7];
        edges.iter().for_each(|&(from, to)| reaches[from][to] = true);
        for middle in 0..7 {
            for from in 0..7 {
                for to in 0..7 {
                    reaches[from][to] |= reaches[from][middle] && reaches[middle][to];
                }
            }
        }
        let circular = (0..7).any(|kernel| reaches[kernel][kernel]);
        let graph = graph(&kernels, &edges);
        let found = cycle(&graph);
        prop_assert_eq!(!found.is_empty(), circular);
        for (kernel, next) in found.iter().zip(found.iter().cycle().skip(1)) {
            prop_assert!(graph[kernel].contains(next), "each waits for the next");
        }
    }
}
