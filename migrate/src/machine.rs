//! The protocol of one migration as a state machine without I/O: (state, event) to (state, actions).
//!
//! ```text
//! Reserving -> CreatingTwin -> Holding -> Copying -> Verifying -> HandingOver -> Ended(Moved)
//!                                                     |     ^
//!                                          (differ)   v     |
//!                                                    Repairing
//!
//! every state before Ended --(failure, cancel, timeout, loss)--> RollingBack
//!     --> Ended(Stayed) | Ended(SourceLost)
//! ```
//!
//! Rounds of pre-copy belong between the twin and the hold, the record of a journal between
//! verifying and handing over.
//!
//! # What always holds
//!
//! - One owner: the source until the hand-over has succeeded, the target from then on.
//! - What was taken (reservation, twin, hold) is given back exactly once, on every way to the end.
//! - Before the hand-over every failure leads to `Stayed` or `SourceLost`; after it there is no way
//!   but the end.
//! - A cancel and a timeout are legal in every state before the hand-over is tried. The hand-over
//!   itself is one action that succeeds or does not; it cannot be cancelled.
//! - Nothing happens after the end.

use thiserror::Error;

/// Where a migration stands. Every state but the last two waits for the outcome of one effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Room on the target is being reserved.
    Reserving,
    /// The paused instance on the target is being created.
    CreatingTwin,
    /// The kernel is being stopped at a step boundary.
    Holding,
    /// The kernel stands still; its state is being copied.
    Copying,
    /// The digests of both states are being compared.
    Verifying {
        /// Whether differing chunks have been copied again already.
        repaired: bool,
    },
    /// The chunks that differ are being copied once more.
    Repairing,
    /// The owner is being changed. What was held has been passed on.
    HandingOver,
    /// What was taken is being given back.
    RollingBack {
        /// Why.
        reason: Reason,
        /// Whether the source's device is gone.
        source_lost: bool,
    },
    /// Nothing more will happen.
    Ended(End),
}

/// Why a migration was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// An effect failed.
    Failed,
    /// The device that the kernel is on was lost.
    SourceLost,
    /// Somebody cancelled.
    Cancelled,
    /// A time limit passed.
    TimedOut,
    /// The states differed also after the second copy.
    StatesDiffer,
}

/// How a migration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// The target owns the kernel.
    Moved,
    /// The source owns the kernel, as before.
    Stayed(Reason),
    /// The source owns the kernel and is gone.
    SourceLost(Reason),
}

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Room is reserved.
    Reserved,
    /// The twin exists.
    TwinCreated,
    /// The kernel stands still.
    Held,
    /// The bytes that were to be copied are copied.
    Copied,
    /// All digests agree.
    StatesEqual,
    /// Some digests differ.
    StatesDiffer,
    /// The target owns the kernel.
    HandedOver,
    /// The effect under way failed, and took nothing.
    Failed,
    /// The device that the kernel is on was lost.
    SourceLost,
    /// Somebody cancelled.
    Cancelled,
    /// A time limit passed.
    TimedOut,
    /// Everything has been given back.
    RolledBack,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Reserve room on the target.
    Reserve,
    /// Create the twin.
    CreateTwin,
    /// Stop the kernel at a step boundary.
    Hold,
    /// Copy the whole state.
    Copy,
    /// Compare the digests.
    Verify,
    /// Copy the chunks that differ once more.
    Repair,
    /// Make the twin the kernel. It takes hold and twin, whether it succeeds or not; success ends the
    /// reservation, too.
    HandOver,
    /// Let the kernel go on.
    ReleaseHold,
    /// Free the twin.
    DropTwin,
    /// Give the room back.
    CancelReservation,
}

/// What follows from an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The state from now on.
    pub state: State,
    /// What to do, in this order. In a forward state this is one effect, whose outcome is the next
    /// event; in [`State::RollingBack`] it is everything to give back, then comes
    /// [`Event::RolledBack`].
    pub actions: Vec<Action>,
}

/// An event that makes no sense in a state. The state stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("event {event:?} means nothing in state {state:?}")]
pub struct Refused {
    /// The state.
    pub state: State,
    /// The event.
    pub event: Event,
}

/// How every migration begins.
#[must_use]
pub fn start() -> Step {
    Step { state: State::Reserving, actions: vec![Action::Reserve] }
}

/// What follows from an event.
///
/// # Errors
///
/// [`Refused`]: the event makes no sense now. Nothing has changed.
///
/// ```
/// use hopwise_migrate::machine::{Action, End, Event, Reason, State, advance, start};
///
/// let twin = advance(start().state, Event::Reserved)?;
/// assert_eq!(twin.actions, [Action::CreateTwin]);
/// let back = advance(twin.state, Event::Cancelled)?;
/// assert_eq!(back.actions, [Action::CancelReservation]);
/// let end = advance(back.state, Event::RolledBack)?;
/// assert_eq!(end.state, State::Ended(End::Stayed(Reason::Cancelled)));
/// # Ok::<(), hopwise_migrate::machine::Refused>(())
/// ```
pub fn advance(state: State, event: Event) -> Result<Step, Refused> {
    let step = match (state, event) {
        (State::Reserving, Event::Reserved) => forward(State::CreatingTwin, Action::CreateTwin),
        (State::CreatingTwin, Event::TwinCreated) => forward(State::Holding, Action::Hold),
        (State::Holding, Event::Held) => forward(State::Copying, Action::Copy),
        (State::Copying, Event::Copied) => {
            forward(State::Verifying { repaired: false }, Action::Verify)
        }
        (State::Repairing, Event::Copied) => {
            forward(State::Verifying { repaired: true }, Action::Verify)
        }
        (State::Verifying { .. }, Event::StatesEqual) => {
            forward(State::HandingOver, Action::HandOver)
        }
        (State::Verifying { repaired: false }, Event::StatesDiffer) => {
            forward(State::Repairing, Action::Repair)
        }
        (State::Verifying { repaired: true }, Event::StatesDiffer) => {
            roll_back(state, Reason::StatesDiffer)
        }
        (State::HandingOver, Event::HandedOver) => end(End::Moved),
        (State::RollingBack { reason, .. }, Event::SourceLost) => {
            Step { state: State::RollingBack { reason, source_lost: true }, actions: Vec::new() }
        }
        (State::RollingBack { reason, source_lost: true }, Event::RolledBack) => {
            end(End::SourceLost(reason))
        }
        (State::RollingBack { reason, source_lost: false }, Event::RolledBack) => {
            end(End::Stayed(reason))
        }
        (now, event) => match interruption(now, event) {
            Some(reason) => roll_back(now, reason),
            None => return Err(Refused { state, event }),
        },
    };
    Ok(step)
}

/// The reason to roll back that an event is in a state, if it is one.
fn interruption(state: State, event: Event) -> Option<Reason> {
    let reason = match event {
        Event::Failed => Reason::Failed,
        Event::SourceLost => Reason::SourceLost,
        Event::Cancelled => Reason::Cancelled,
        Event::TimedOut => Reason::TimedOut,
        _ => return None,
    };
    match (state, event) {
        (State::RollingBack { .. } | State::Ended(_), _) => None,
        // The hand-over is under way: its outcome decides, not a wish that comes too late.
        (State::HandingOver, Event::Cancelled | Event::TimedOut) => None,
        _ => Some(reason),
    }
}

fn forward(state: State, action: Action) -> Step {
    Step { state, actions: vec![action] }
}

fn end(end: End) -> Step {
    Step { state: State::Ended(end), actions: Vec::new() }
}

/// Gives back what a state holds: first the kernel goes on, then the twin's memory is freed, last
/// the room, so that whoever gets the room finds the memory, too.
fn roll_back(from: State, reason: Reason) -> Step {
    let actions = match from {
        State::Reserving | State::RollingBack { .. } | State::Ended(_) => Vec::new(),
        State::CreatingTwin | State::HandingOver => vec![Action::CancelReservation],
        State::Holding => vec![Action::DropTwin, Action::CancelReservation],
        State::Copying | State::Verifying { .. } | State::Repairing => {
            vec![Action::ReleaseHold, Action::DropTwin, Action::CancelReservation]
        }
    };
    let source_lost = reason == Reason::SourceLost;
    Step { state: State::RollingBack { reason, source_lost }, actions }
}

#[cfg(test)]
mod tests;
