//! Invocations of a pass, folded into the three dimensions of a dispatch.

/// Most invocations of a pass. What folding adds, and an index past the count, still fit 32 bits.
pub(crate) const MAX_INVOCATIONS: u64 = (1 << 32) - (1 << 26);

/// Workgroups in three dimensions, few more than the invocations need; none for none.
///
/// At most [`MAX_INVOCATIONS`], and a device that allows the 65,535 groups in each dimension that
/// wgpu guarantees, always fit.
pub(crate) fn fold(invocations: u64, workgroup_size: u32, per_dimension: u32) -> [u32; 3] {
    debug_assert!(invocations <= MAX_INVOCATIONS, "grids are checked before they are folded");
    let groups = invocations.div_ceil(u64::from(workgroup_size));
    let most = u64::from(per_dimension);
    // Each dimension is as large as what is left needs at least, so that little is added.
    let depth = groups.div_ceil(most * most).max(1);
    let height = groups.div_ceil(depth).div_ceil(most).max(1);
    let width = groups.div_ceil(depth * height);
    [width, height, depth].map(|count| u32::try_from(count).expect("a dimension is 32 bits wide"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn folded_grids_cover_the_count_and_stay_in_range(
            count in prop_oneof![0..=MAX_INVOCATIONS, 0..10_000u64, Just(MAX_INVOCATIONS)],
            size in prop_oneof![1..=1024u32, Just(1), Just(64), Just(1024)],
        ) {
            let [width, height, depth] = fold(count, size, 65_535);
            prop_assert!(width <= 65_535 && height <= 65_535 && depth <= 65_535);
            let groups = u64::from(width) * u64::from(height) * u64::from(depth);
            prop_assert!(groups * u64::from(size) >= count);
            prop_assert!(groups * u64::from(size) <= u64::from(u32::MAX) + 1);
            prop_assert_eq!(groups == 0, count == 0);
        }
    }
}
