//! Tests of the bookkeeping of swaps.

use proptest::prelude::*;

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_swap_carries_what_its_cut_carries(
        bandwidth in prop::collection::vec(0_u32..50, 36),
        mut cut in prop::collection::vec(any::<bool>(), 6),
    ) {
        let crossing = Crossing {
            devices: 6,
            // No device has a link to itself.
            bandwidth: (0..36)
                .map(|at| if at / 6 == at % 6 { 0.0 } else { f64::from(bandwidth[at]) })
                .collect(),
            unknown_links: 0,
        };
        rebalance(&mut cut);
        let sums = Sums::new(&crossing, &cut);
        for here in positions(&cut, true) {
            for there in positions(&cut, false) {
                let mut swapped = cut.clone();
                swapped.swap(here, there);
                prop_assert_eq!(
                    sums.after_swap(&crossing, here, there),
                    crossing.gb_per_s(&swapped)
                );
            }
        }
    }
}
