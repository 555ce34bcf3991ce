//! Tests of the bookkeeping of swaps.

use proptest::prelude::*;

use super::*;
use crate::bisection::tests::{links, topology};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_best_swap_leads_to_the_cut_that_carries_the_least(
        links in links(6, 2),
        mut cut in prop::collection::vec(any::<bool>(), 8),
    ) {
        let topology = topology(6, 2, &links);
        let crossing = Crossing::new(&topology, &[0, 1, 2, 3, 4, 5]);
        cut.truncate(crossing.wires.len());
        rebalance(&mut cut[..6]);
        let carried = |here: usize, there: usize| {
            let mut swapped = cut.clone();
            swapped.swap(here, there);
            let (out, back) = crossing.both_ways(&swapped);
            out.min(back)
        };
        let (after, here, there) = Sums::new(&crossing, &cut).best_swap(&crossing, &cut).unwrap();
        prop_assert_eq!(after, carried(here, there));
        for here in (0..6).filter(|&device| cut[device]) {
            for there in (0..6).filter(|&device| !cut[device]) {
                prop_assert!(after <= carried(here, there));
            }
        }
    }
}
