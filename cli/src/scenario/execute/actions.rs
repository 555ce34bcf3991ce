//! Carrying out events, one after the other, while the kernels go on.

use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use hopwise_core::error::DeviceError;

use super::{Assembly, Signals};
use crate::moves::Moves;
use crate::scenario::plan::Action;

/// Does what comes through the queue until its other end is dropped.
pub(super) fn act_as_told(
    assembly: &Assembly,
    queue: Receiver<Action>,
    signals: &Signals,
) -> Moves {
    let mut moves = Moves::default();
    for action in queue {
        if !signals.stop.load(Ordering::Acquire) {
            act(assembly, action, &mut moves);
        }
        signals.open_actions.fetch_sub(1, Ordering::AcqRel);
    }
    moves
}

fn act(assembly: &Assembly, action: Action, moves: &mut Moves) {
    let (fleet, kernels) = (&assembly.fleet, &assembly.kernels);
    match action {
        Action::Drain { device } => moves.drain(fleet, device),
        Action::Migrate { kernel, device } => moves.migrate(fleet, &kernels[kernel], device),
        Action::Park { kernel } => moves.park(fleet, &kernels[kernel]),
        Action::Lose { device } => match fleet.device(device) {
            Ok(open) => {
                let cause = "the scenario takes it down".to_owned();
                open.health().latch(DeviceError::Lost { cause });
            }
            Err(error) => moves.failures.push(error.to_string()),
        },
        Action::Remove { kernel } => {
            if let Err(error) = fleet.remove(&kernels[kernel]) {
                moves.failures.push(format!("not removed: {error}"));
            }
        }
    }
}
