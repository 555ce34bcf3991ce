//! The effects of a migration, one for each action of the machine.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hopwise_core::coordinator::MigrationRequest;
use hopwise_core::device::PeerCopy;
use hopwise_core::fleet::{FleetError, HeldKernel, Twin};

use super::copy::{self, Chunks, Ends, PeerOutcome};
use super::run::{Execution, Outcome, Reservation, has_passed};
use super::verify;
use crate::error::MigrationCause;
use crate::machine::Event;
use crate::report::{Phase, TransferPath};

/// How long a running step is waited for before the token and the clock are looked at again.
const HOLD_SLICE: Duration = Duration::from_millis(10);

/// Pause between two attempts to hold a kernel that somebody else holds.
const HELD_PAUSE: Duration = Duration::from_millis(1);

impl Execution<'_> {
    pub(super) fn reserve(&mut self) -> Outcome {
        let request = match self.order.plan {
            Some(plan) => self.fleet.request_planned_migration(plan)?,
            None => self.fleet.request_migration(&self.order.kernel, self.order.target)?,
        };
        self.reservation = Some(Reservation { fleet: self.fleet, request, is_open: true });
        self.source = self.fleet.device(request.source).ok();
        Ok(Event::Reserved)
    }

    pub(super) fn create_twin(&mut self) -> Outcome {
        self.twin = Some(self.fleet.create_twin(self.request())?);
        Ok(Event::TwinCreated)
    }

    /// Waits in slices, so that a cancel is seen while a long step runs. Between two slices the
    /// kernel is free for an instant: a step that ends just then may be followed by one more.
    pub(super) fn stop_kernel(&mut self) -> Outcome {
        let limit = self.options.hold_timeout();
        let deadline = Instant::now().checked_add(limit);
        loop {
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            let slice = left.map_or(HOLD_SLICE, |left| left.min(HOLD_SLICE));
            match self.fleet.hold(&self.order.kernel, slice) {
                Ok(hold) => {
                    self.hold = Some(hold);
                    self.count_steps_before_hold();
                    return Ok(Event::Held);
                }
                Err(FleetError::StepTooLong { .. }) => {}
                Err(FleetError::HeldAlready { .. }) => std::thread::sleep(slice.min(HELD_PAUSE)),
                Err(other) => return Err(other.into()),
            }
            self.limits.check()?;
            if has_passed(deadline) {
                return Err(MigrationCause::HoldTimedOut { limit });
            }
        }
    }

    fn count_steps_before_hold(&mut self) {
        let status = self.fleet.status(&self.order.kernel);
        let own = status.map_or(0, |status| status.steps).saturating_sub(self.steps.own_at_start);
        self.steps.all_at_hold = self.fleet.steps();
        let all = self.steps.all_at_hold - self.steps.all_at_start;
        self.steps.elsewhere_before_hold = all.saturating_sub(own);
    }

    pub(super) fn copy(&mut self) -> Outcome {
        let (ends, chunks, buffers) = (self.ends(), self.chunks(), self.options.staging_buffers());
        let check = || self.limits.check();
        let (mut path, mut peer_failure, mut from_chunk) = (TransferPath::Staged, None, 0);
        if let Some(peer) = self.peer() {
            match copy::peer(peer, &ends, chunks, &check)? {
                PeerOutcome::Complete => {
                    (path, from_chunk) = (TransferPath::Peer, chunks.count());
                }
                PeerOutcome::Refused { at_byte, error } => {
                    from_chunk = at_byte / chunks.chunk_bytes;
                    peer_failure = Some(error.to_string());
                    if at_byte > 0 {
                        path = TransferPath::PeerThenStaged;
                    }
                }
            }
        }
        copy::staged(&ends, chunks, from_chunk..chunks.count(), buffers, &check)?;
        (self.transfer.bytes, self.transfer.chunks) = (chunks.state_bytes, chunks.count());
        self.transfer.path = path;
        self.transfer.peer_failure = peer_failure;
        Ok(Event::Copied)
    }

    pub(super) fn verify(&mut self) -> Outcome {
        let differing = verify::differing(&self.ends(), self.chunks())?;
        // The last moment for it: the hand-over cannot be cancelled.
        self.limits.check()?;
        let Some(&first) = differing.first() else { return Ok(Event::StatesEqual) };
        let chunks = self.chunks();
        let cause = MigrationCause::StatesDiffer {
            differing: differing.len() as u64,
            chunks: chunks.count(),
            first_byte: chunks.span(first).offset_bytes,
        };
        // The machine decides whether that is the end.
        self.failure = Some((Phase::Verify, cause));
        self.transfer.differing = differing;
        Ok(Event::StatesDiffer)
    }

    /// Through host memory, whichever way the bytes took first: a direct copy that loses bytes while
    /// it reports success is known from machines in the field.
    pub(super) fn repair(&mut self) -> Outcome {
        let (ends, chunks) = (self.ends(), self.chunks());
        let indices = self.transfer.differing.iter().copied();
        let buffers = self.options.staging_buffers();
        copy::staged(&ends, chunks, indices, buffers, &|| self.limits.check())?;
        self.transfer.repaired = self.transfer.differing.len() as u64;
        if self.transfer.path == TransferPath::Peer {
            self.transfer.path = TransferPath::PeerThenStaged;
        }
        Ok(Event::Copied)
    }

    pub(super) fn hand_over(&mut self) -> Outcome {
        let hold = self.hold.take().expect("the kernel is held before its hand-over");
        let twin = self.twin.take().expect("the twin exists before the hand-over");
        let request = *self.request();
        self.steps.elsewhere_in_hold = self.fleet.steps() - self.steps.all_at_hold;
        // Kept, so that its memory is freed when the kernel runs again and has been timed.
        let left_behind = Arc::clone(hold.instance());
        let (held_for, began) = (hold.held_for(), Instant::now());
        self.fleet.hand_over(hold, twin, &request)?;
        self.stood_still = held_for + began.elapsed();
        drop(left_behind);
        if let Some(reservation) = &mut self.reservation {
            reservation.is_open = false;
        }
        Ok(Event::HandedOver)
    }

    /// The request under which room is reserved.
    pub(super) fn request(&self) -> &MigrationRequest {
        let reservation = self.reservation.as_ref();
        &reservation.expect("room is reserved from the first effect to the end").request
    }

    fn held_and_twin(&self) -> (&HeldKernel, &Twin) {
        let (hold, twin) = (self.hold.as_ref(), self.twin.as_ref());
        let both = hold.zip(twin);
        both.expect("the kernel is held and has a twin while its state is copied")
    }

    fn ends(&self) -> Ends<'_> {
        let (hold, twin) = self.held_and_twin();
        Ends {
            source: &**hold.instance(),
            source_device: hold.device(),
            target: &**twin.instance(),
            target_device: twin.device(),
        }
    }

    /// How the kernel's state is cut.
    fn chunks(&self) -> Chunks {
        let (hold, _) = self.held_and_twin();
        Chunks {
            state_bytes: hold.instance().state_bytes(),
            chunk_bytes: self.options.chunk_bytes(),
        }
    }

    /// The direct way, where the options, the coordinator and both devices allow it.
    fn peer(&self) -> Option<&dyn PeerCopy> {
        if !self.options.peer_copy() || !self.fleet.coordinator().config().enable_p2p {
            return None;
        }
        let (hold, twin) = self.held_and_twin();
        let (source, target) = (hold.open_device(), twin.open_device());
        if source.info().backend != target.info().backend {
            return None;
        }
        source.peer_copy().filter(|peer| peer.reaches(&**target))
    }
}
