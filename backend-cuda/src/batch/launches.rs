//! Which kernels of a batch share a launch.

use std::collections::BTreeMap;

use super::plan::{Planned, threads_of};
use crate::module::Function;
use crate::prelude::KERNEL_BYTES;

/// A launch of one function for one or more kernels.
pub(super) struct Launch<'a> {
    pub(super) function: &'a Function,
    /// Which of the planned steps, with their numbers of invocations.
    pub(super) kernels: Vec<(usize, u64)>,
    /// Where its table lies in the batch's memory, in bytes.
    pub(super) table_at: usize,
    pub(super) threads: u32,
}

/// Kernels with their numbers of invocations, and the function that they run.
type Group<'a> = (&'a Function, Vec<(usize, u64)>);

impl Launch<'_> {
    /// Blocks: as many as the largest kernel needs, for each kernel.
    pub(super) fn grid(&self) -> [u32; 2] {
        let most = self.kernels.iter().map(|(_, invocations)| *invocations).max().unwrap_or(0);
        let blocks = most.div_ceil(self.threads.into());
        let number = |count: u64| u32::try_from(count).expect("grids are checked before");
        [number(blocks), number(self.kernels.len() as u64)]
    }
}

/// The launches of a batch, pass by pass, and where their tables end. Kernels share a launch when
/// they run the same function and their sizes differ at most by a factor of two: blocks that have
/// nothing to do end at once, but a small kernel beside a huge one would have very many.
pub(super) fn launches<'a>(planned: &[Planned<'a>]) -> (Vec<Launch<'a>>, usize) {
    let most_passes = planned.iter().map(|planned| planned.instance.program.passes.len()).max();
    let mut launches = Vec::new();
    let mut tables_end = 0;
    for number in 0..most_passes.unwrap_or(0) {
        let mut groups: BTreeMap<(usize, u32), Group<'a>> = BTreeMap::new();
        for (kernel, planned) in planned.iter().enumerate() {
            let program = &planned.instance.program;
            let passes = program.passes.get(number).zip(program.program.passes().get(number));
            let Some((function, pass)) = passes else { continue };
            let invocations = planned.instance.invocations(pass.grid, planned.messages);
            if invocations == 0 {
                continue;
            }
            let blocks = invocations.div_ceil(threads_of(function).into());
            let key = (function.key(), blocks.next_power_of_two().trailing_zeros());
            let group = groups.entry(key).or_insert_with(|| (function, Vec::new()));
            group.1.push((kernel, invocations));
        }
        for (function, kernels) in groups.into_values() {
            let most = kernels.iter().map(|(_, invocations)| *invocations).max().unwrap_or(1);
            let threads = u64::from(threads_of(function)).min(most);
            let threads = u32::try_from(threads).expect("a block is small");
            let table_at = tables_end;
            tables_end += kernels.len() * KERNEL_BYTES;
            launches.push(Launch { function, kernels, table_at, threads });
        }
    }
    (launches, tables_end)
}
