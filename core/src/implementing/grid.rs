//! The number of invocations of a pass.

use crate::program::Grid;

/// How many invocations a pass has for a kernel with this state, these parameters, and this many
/// messages in its inbox.
#[must_use]
pub fn invocations(grid: Grid, state_bytes: u64, parameters: &[u32], messages: u32) -> u64 {
    match grid {
        Grid::Fixed(count) => count.into(),
        Grid::StateWords => state_bytes / 4,
        Grid::Parameter(word) => parameters.get(word as usize).copied().unwrap_or(0).into(),
        Grid::Messages => messages.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_come_from_where_the_program_says() {
        let count = |grid| invocations(grid, 400, &[7, 8], 5);
        assert_eq!(count(Grid::Fixed(3)), 3);
        assert_eq!(count(Grid::StateWords), 100);
        assert_eq!(count(Grid::Parameter(1)), 8);
        assert_eq!(count(Grid::Messages), 5);
    }
}
