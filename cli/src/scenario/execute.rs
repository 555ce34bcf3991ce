//! Running a scenario: the fleet, the host's sends and the events, to the end or to a standstill.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use super::outcome::Outcome;
use super::plan::Scenario;
use crate::failure::Failure;
use crate::moves::Moves;

mod actions;
mod assembly;
mod sends;
mod watch;

pub(crate) use assembly::Assembly;
pub(crate) use watch::Received;

use watch::Watch;

/// What happened while the kernels worked.
#[derive(Debug)]
pub(crate) struct Course {
    /// From the start to the end or the standstill.
    pub(crate) elapsed: Duration,
    /// When each event was due; none for a mark that was not reached.
    pub(crate) fired: Vec<Option<Duration>>,
    /// What came to each endpoint.
    pub(crate) received: Vec<Received>,
    /// Kernels that were moved, and events that failed.
    pub(crate) moves: Moves,
    /// Sends that failed.
    pub(crate) send_failures: Vec<String>,
    /// Why the run was ended before it came to rest.
    pub(crate) ended_early: Option<String>,
}

/// What the threads of a run tell each other.
#[derive(Debug, Default)]
struct Signals {
    /// The run is over: what is left undone stays undone.
    stop: AtomicBool,
    /// Everything that the host was to send has been sent or refused.
    sends_done: AtomicBool,
    /// Actions that have been ordered and not finished.
    open_actions: AtomicUsize,
}

impl Signals {
    /// Whether the host has nothing left to do by itself.
    fn host_is_done(&self) -> bool {
        self.sends_done.load(Ordering::Acquire) && self.open_actions.load(Ordering::Acquire) == 0
    }
}

/// Runs a scenario. What goes wrong while kernels run is in the outcome.
///
/// # Errors
///
/// [`Failure::Failed`] when the kernels could not be launched or a thread not be started.
pub(crate) fn execute(scenario: &Scenario) -> Result<Outcome, Failure> {
    let assembly = Assembly::build(scenario)?;
    let course = follow(&assembly, scenario)?;
    Ok(Outcome::collect(assembly, course, scenario))
}

fn follow(assembly: &Assembly, scenario: &Scenario) -> Result<Course, Failure> {
    let signals = &Signals::default();
    let (orders, queue) = mpsc::channel();
    let no_thread = |error| Failure::failed(format!("cannot start a thread: {error}"));
    thread::scope(|scope| {
        let actor = Builder::new()
            .name("events".to_owned())
            .spawn_scoped(scope, move || actions::act_as_told(assembly, queue, signals))
            .map_err(no_thread)?;
        let begun = Instant::now();
        assembly.start(scenario)?;
        let sender = Builder::new()
            .name("sends".to_owned())
            .spawn_scoped(scope, || sends::send_all(assembly, scenario, signals))
            .map_err(no_thread)?;
        let mut watch = Watch::new(assembly, scenario, signals, orders, begun);
        let ended_early = watch.until_the_end(begun + scenario.timeout);
        let elapsed = begun.elapsed();
        let (fired, received) = watch.finish();
        signals.stop.store(true, Ordering::Release);
        let panicked = |who: &str| vec![format!("the thread of the {who} panicked")];
        let send_failures = sender.join().unwrap_or_else(|_| panicked("sends"));
        let moves = actor
            .join()
            .unwrap_or_else(|_| Moves { failures: panicked("events"), ..Moves::default() });
        Ok(Course { elapsed, fired, received, moves, send_failures, ended_early })
    })
}
