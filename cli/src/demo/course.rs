//! Following the kernels from their progress messages, and draining devices while they work.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use hopwise_core::fleet::{Fleet, ReceiveError};
use hopwise_core::programs::diffuse::Progress;
use indicatif::ProgressBar;

use super::Plan;
use super::args::Drain;
use super::fleet::StripFleet;
use crate::failure::Failure;
use crate::moves::Moves;
use crate::progress;

/// How long to wait for a progress message before asking whether the fleet has come to rest.
const PATIENCE: Duration = Duration::from_millis(50);

/// How long to wait for the fleet to be at rest, when it seems to be.
const REST: Duration = Duration::from_millis(5);

/// What happened while the kernels worked.
#[derive(Debug, Default)]
pub(crate) struct Course {
    /// From the start to the last kernel's last iteration, or to the standstill.
    pub(crate) elapsed: Duration,
    /// Kernels that were moved, and those that were not.
    pub(crate) moves: Moves,
    /// Drains and losses whose iteration was never reached.
    pub(crate) unreached: Vec<Drain>,
    /// What is under way for ever, when the fleet neither finished nor came to rest.
    pub(crate) restless: Option<String>,
}

impl Course {
    /// Starts the kernels and follows them to their end, or until nothing more can happen.
    ///
    /// # Errors
    ///
    /// [`Failure::Failed`] when the kernels or a thread cannot be started.
    pub(crate) fn follow(strips: &StripFleet, plan: &Plan) -> Result<Self, Failure> {
        let begun = Instant::now();
        let bar = progress::bar(plan.settings.iterations().into(), "iterations");
        let (orders, queue) = mpsc::channel();
        let mut course = thread::scope(|scope| {
            let mover = Builder::new()
                .name("drains".to_owned())
                .spawn_scoped(scope, move || drain_as_told(&strips.fleet, queue))
                .map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?;
            strips.start()?;
            let mut watch = Watch::new(strips, plan, orders, bar);
            let restless = watch.until_the_end();
            let elapsed = begun.elapsed();
            let unreached = watch.finish();
            let moves = mover.join().unwrap_or_else(|_| Moves {
                failures: vec!["the drain panicked".to_owned()],
                ..Moves::default()
            });
            Ok(Self { elapsed, moves, unreached, restless })
        })?;
        // Ledgers and states are exact once nothing is under way.
        if course.restless.is_none()
            && let Err(not_idle) = strips.fleet.wait_idle(plan.step_limit + Duration::from_secs(5))
        {
            course.restless = Some(not_idle.to_string());
        }
        Ok(course)
    }
}

impl Course {
    /// What went wrong, as far as it is known from here.
    pub(crate) fn failures(&self) -> Vec<String> {
        let unreached = self.unreached.iter().map(|Drain { device, iteration }| {
            format!("nothing was done to device {device}: iteration {iteration} was not reached")
        });
        let restless = self.restless.iter().cloned();
        restless.chain(unreached).chain(self.moves.failures.iter().cloned()).collect()
    }
}

/// Drains one device after the other, so that none is moved to a device that leaves next.
fn drain_as_told(fleet: &Fleet, queue: Receiver<usize>) -> Moves {
    let mut moves = Moves::default();
    for device in queue {
        moves.drain(fleet, device);
    }
    moves
}

/// What is known from progress messages.
struct Watch<'a> {
    strips: &'a StripFleet,
    step_limit: Duration,
    iterations: u32,
    /// Iterations that each kernel has finished.
    finished: Vec<u32>,
    /// Drains to come.
    drains: std::iter::Peekable<std::vec::IntoIter<Drain>>,
    /// Losses to come.
    losses: std::iter::Peekable<std::vec::IntoIter<Drain>>,
    /// Whom to tell that a drain is due.
    orders: Sender<usize>,
    bar: ProgressBar,
}

impl<'a> Watch<'a> {
    fn new(strips: &'a StripFleet, plan: &Plan, orders: Sender<usize>, bar: ProgressBar) -> Self {
        let mut watch = Self {
            strips,
            step_limit: plan.step_limit,
            iterations: plan.settings.iterations(),
            finished: vec![0; strips.kernels.len()],
            drains: plan.drains.clone().into_iter().peekable(),
            losses: plan.losses.clone().into_iter().peekable(),
            orders,
            bar,
        };
        watch.do_what_is_due();
        watch
    }

    /// Receives progress until all is done, or nothing more can come; answers with what is under
    /// way for ever, if something is.
    fn until_the_end(&mut self) -> Option<String> {
        // A step ends or its kernel is lost, so something happens in this time or never.
        let longest = self.step_limit * 10 + Duration::from_secs(30);
        let mut last_news = Instant::now();
        while self.slowest() < self.iterations {
            match self.strips.progress.recv_timeout(PATIENCE) {
                Ok(envelope) => {
                    self.note(Progress::from_payload(envelope.message.payload.as_bytes()));
                    last_news = Instant::now();
                }
                Err(ReceiveError::Empty) => match self.strips.fleet.wait_idle(REST) {
                    // At rest, so what has been sent is here, and nothing more will be.
                    Ok(()) if self.strips.progress.depth() == 0 => return None,
                    Err(not_idle) if last_news.elapsed() > longest => {
                        return Some(not_idle.to_string());
                    }
                    _ => {}
                },
                Err(closed) => return Some(closed.to_string()),
            }
        }
        None
    }

    fn note(&mut self, progress: Option<Progress>) {
        let Some(Progress { iteration, strip_index, .. }) = progress else { return };
        if let Some(finished) = self.finished.get_mut(strip_index as usize) {
            *finished = iteration;
            self.bar.set_position(self.slowest().into());
            self.do_what_is_due();
        }
    }

    fn do_what_is_due(&mut self) {
        let slowest = self.slowest();
        while let Some(drain) = self.drains.next_if(|drain| drain.iteration <= slowest) {
            self.bar.set_message(format!("device {} is drained", drain.device));
            // The mover listens until this end is dropped.
            let _ = self.orders.send(drain.device);
        }
        while let Some(loss) = self.losses.next_if(|loss| loss.iteration <= slowest) {
            let Drain { device, iteration } = loss;
            let cause = format!("destroyed on purpose after iteration {iteration} (--lose)");
            self.strips.opened[device].lose(&cause);
        }
    }

    /// The iterations that every kernel has finished.
    fn slowest(&self) -> u32 {
        self.finished.iter().copied().min().unwrap_or(0)
    }

    /// Ends the orders; returns the drains and losses that were not reached.
    fn finish(self) -> Vec<Drain> {
        self.bar.finish_and_clear();
        self.drains.chain(self.losses).collect()
    }
}
