//! One migration: performs what the machine asks for and tells it what came of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hopwise_core::coordinator::{KernelMigrationPlan, MigrationPriority, MigrationRequest};
use hopwise_core::device::Device;
use hopwise_core::fleet::{Fleet, HeldKernel, Twin};
use hopwise_core::id::KernelId;

use crate::error::{MigrationCause, MigrationError, Remains};
use crate::machine::{self, Action, End, Event, State};
use crate::options::{CancelToken, MigrationOptions};
use crate::report::{MigrationReport, Phase, PhaseTimes, TransferPath};

/// What came of an effect.
pub(super) type Outcome = Result<Event, MigrationCause>;

/// What is to be moved where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order<'a> {
    pub(super) kernel: KernelId,
    pub(super) target: usize,
    pub(super) priority: MigrationPriority,
    /// The plan that the world must still agree with.
    pub(super) plan: Option<&'a KernelMigrationPlan>,
}

/// When to stop.
pub(super) struct Limits<'a> {
    cancel: &'a CancelToken,
    total: Duration,
    /// `None`: beyond what the clock can tell.
    deadline: Option<Instant>,
}

impl Limits<'_> {
    pub(super) fn check(&self) -> Result<(), MigrationCause> {
        if self.cancel.is_cancelled() {
            return Err(MigrationCause::Cancelled);
        }
        if has_passed(self.deadline) {
            return Err(MigrationCause::TimedOut { limit: self.total });
        }
        Ok(())
    }
}

/// Room on a target. Given back when dropped, unless the hand-over has used it.
pub(super) struct Reservation<'a> {
    pub(super) fleet: &'a Fleet,
    pub(super) request: MigrationRequest,
    pub(super) is_open: bool,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if self.is_open {
            // An error means that the request has ended otherwise, and its room with it.
            let _ = self.fleet.cancel_migration(&self.request);
        }
    }
}

/// A migration under way. Whatever it holds is given back when it is dropped.
pub(super) struct Execution<'a> {
    pub(super) fleet: &'a Fleet,
    pub(super) options: &'a MigrationOptions,
    pub(super) order: Order<'a>,
    pub(super) limits: Limits<'a>,
    pub(super) began: Instant,
    pub(super) steps: Steps,
    pub(super) source: Option<Arc<dyn Device>>,
    // Dropped in this order: the kernel goes on first, the room is given back last.
    pub(super) hold: Option<HeldKernel>,
    pub(super) twin: Option<Twin>,
    pub(super) reservation: Option<Reservation<'a>>,
    /// For how long the kernel stood still.
    pub(super) stood_still: Duration,
    pub(super) transfer: Transfer,
    pub(super) times: PhaseTimes,
    pub(super) failure: Option<(Phase, MigrationCause)>,
}

/// Counts of steps, for the report. The kernel's own are read before those of all at the start, and
/// again while it stands still, so that no step of its own is taken for one made elsewhere.
pub(super) struct Steps {
    pub(super) own_at_start: u64,
    pub(super) all_at_start: u64,
    pub(super) all_at_hold: u64,
    pub(super) elsewhere_before_hold: u64,
    pub(super) elsewhere_in_hold: u64,
}

/// What is known about the bytes so far.
pub(super) struct Transfer {
    pub(super) bytes: u64,
    pub(super) chunks: u64,
    pub(super) path: TransferPath,
    pub(super) peer_failure: Option<String>,
    pub(super) differing: Vec<u64>,
    pub(super) repaired: u64,
}

impl<'a> Execution<'a> {
    pub(super) fn new(
        fleet: &'a Fleet,
        options: &'a MigrationOptions,
        order: Order<'a>,
        cancel: &'a CancelToken,
    ) -> Self {
        let (began, total) = (Instant::now(), options.total_timeout());
        let own_at_start = fleet.status(&order.kernel).map_or(0, |status| status.steps);
        Self {
            fleet,
            options,
            order,
            limits: Limits { cancel, total, deadline: began.checked_add(total) },
            began,
            steps: Steps {
                own_at_start,
                all_at_start: fleet.steps(),
                all_at_hold: 0,
                elsewhere_before_hold: 0,
                elsewhere_in_hold: 0,
            },
            source: None,
            hold: None,
            twin: None,
            reservation: None,
            stood_still: Duration::ZERO,
            transfer: Transfer {
                bytes: 0,
                chunks: 0,
                path: TransferPath::Staged,
                peer_failure: None,
                differing: Vec::new(),
                repaired: 0,
            },
            times: PhaseTimes::default(),
            failure: None,
        }
    }

    /// Runs the machine to its end.
    pub(super) fn run(mut self) -> Result<MigrationReport, MigrationError> {
        let mut step = machine::start();
        loop {
            match step.state {
                State::Ended(End::Moved) => return Ok(self.report()),
                State::Ended(End::Stayed(_) | End::SourceLost(_)) => return Err(self.error()),
                _ => {}
            }
            let mut event = None;
            for action in step.actions {
                event = self.perform(action).or(event);
            }
            let event = event.unwrap_or_else(|| self.rolled_back(step.state));
            step = machine::advance(step.state, event)
                .expect("an effect answers with an event that its state takes");
        }
    }

    /// Performs an action. Those that give something back have no outcome.
    fn perform(&mut self, action: Action) -> Option<Event> {
        match action {
            Action::Reserve => self.attempt(Phase::Reserve, Self::reserve),
            Action::CreateTwin => self.attempt(Phase::Twin, Self::create_twin),
            Action::Hold => self.attempt(Phase::Hold, Self::stop_kernel),
            Action::Copy => self.attempt(Phase::Copy, Self::copy),
            Action::Verify => self.attempt(Phase::Verify, Self::verify),
            Action::Repair => self.attempt(Phase::Copy, Self::repair),
            Action::HandOver => self.attempt(Phase::HandOver, Self::hand_over),
            Action::ReleaseHold => {
                self.hold = None;
                None
            }
            Action::DropTwin => {
                self.twin = None;
                None
            }
            Action::CancelReservation => {
                self.reservation = None;
                None
            }
        }
    }

    fn attempt(&mut self, phase: Phase, effect: fn(&mut Self) -> Outcome) -> Option<Event> {
        let began = Instant::now();
        // The hand-over is one action: what was to stop it had to come before.
        let may_begin = if phase == Phase::HandOver { Ok(()) } else { self.limits.check() };
        let outcome = may_begin.and_then(|()| effect(self));
        self.times.add(phase, began.elapsed());
        Some(outcome.unwrap_or_else(|cause| self.failed(phase, cause)))
    }

    /// Everything has been given back; a loss that happened meanwhile is told first.
    fn rolled_back(&self, state: State) -> Event {
        match state {
            State::RollingBack { source_lost: false, .. } if self.remains() == Remains::Lost => {
                Event::SourceLost
            }
            _ => Event::RolledBack,
        }
    }
}

pub(super) fn has_passed(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}
