//! Watching a run: what comes to the endpoints, which marks are reached, when it is over.

use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use super::{Assembly, Signals};
use crate::progress;
use crate::scenario::plan::{Action, Mark, Scenario};

/// How long to wait for the fleet to come to rest before looking at marks again.
const GLANCE: Duration = Duration::from_millis(1);

/// For how long a circle of kernels with full mailboxes must stand still to be called a deadlock.
const DEADLOCK: Duration = Duration::from_secs(1);

/// What came to an endpoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    /// Messages received.
    pub(crate) messages: u64,
    /// Tag and words of the last one.
    pub(crate) last: Option<(u32, Vec<u32>)>,
}

/// Follows a run.
pub(super) struct Watch<'a> {
    assembly: &'a Assembly,
    scenario: &'a Scenario,
    signals: &'a Signals,
    orders: Sender<Action>,
    begun: Instant,
    fired: Vec<Option<Duration>>,
    received: Vec<Received>,
    bar: ProgressBar,
    /// Steps of the fleet when it last made one, and when that was noticed.
    last_step: (u64, Instant),
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        assembly: &'a Assembly,
        scenario: &'a Scenario,
        signals: &'a Signals,
        orders: Sender<Action>,
        begun: Instant,
    ) -> Self {
        Self {
            assembly,
            scenario,
            signals,
            orders,
            begun,
            fired: vec![None; scenario.events.len()],
            received: vec![Received::default(); scenario.endpoints.len()],
            bar: progress::count("steps"),
            last_step: (0, begun),
        }
    }

    /// Returns when nothing more can happen, or says why it did not wait for that.
    pub(super) fn until_the_end(&mut self, deadline: Instant) -> Option<String> {
        loop {
            self.bar.set_position(self.assembly.fleet.steps());
            let received = self.receive();
            let fired = self.fire_due_events();
            // Read before the fleet is asked: what the host did until here is in the fleet by then.
            let host_is_done = self.signals.host_is_done();
            match self.assembly.fleet.wait_idle(GLANCE) {
                Ok(()) => {
                    let nothing_new = !received && !fired && self.endpoints_are_empty();
                    if host_is_done && nothing_new {
                        return None;
                    }
                }
                Err(not_idle) => {
                    // More sends cannot open a circle of full mailboxes; an event perhaps can.
                    let acts = self.signals.open_actions.load(Ordering::Acquire) > 0;
                    let stands_still = self.stands_still_for() > DEADLOCK;
                    if !not_idle.cycle.is_empty() && stands_still && !acts {
                        return Some(not_idle.to_string());
                    }
                }
            }
            if Instant::now() > deadline {
                let limit_s = self.scenario.timeout.as_secs();
                let state = self.assembly.fleet.wait_idle(Duration::ZERO);
                let state = state.err().map(|not_idle| format!(": {not_idle}"));
                return Some(format!(
                    "the run did not end within {limit_s} s (timeout_s){}",
                    state.unwrap_or_default()
                ));
            }
        }
    }

    /// Receives everything that has come; answers with whether there was anything.
    fn receive(&mut self) -> bool {
        let mut any = false;
        for (endpoint, received) in self.assembly.endpoints.iter().zip(&mut self.received) {
            // At most what fits: events must not wait for an endpoint that never runs dry.
            for _ in 0..endpoint.depth() {
                let Ok(envelope) = endpoint.try_recv() else { break };
                received.messages += 1;
                let words = envelope.message.payload.to_words();
                received.last = Some((envelope.message.tag, words));
                any = true;
            }
        }
        any
    }

    /// Orders every event whose mark is reached; answers with whether there was one.
    fn fire_due_events(&mut self) -> bool {
        let mut any = false;
        for (index, event) in self.scenario.events.iter().enumerate() {
            if self.fired[index].is_none() && self.is_reached(event.mark) {
                self.fired[index] = Some(self.begun.elapsed());
                self.signals.open_actions.fetch_add(1, Ordering::AcqRel);
                // The other end listens until this one is dropped.
                let _ = self.orders.send(event.action);
                any = true;
            }
        }
        any
    }

    fn is_reached(&self, mark: Mark) -> bool {
        match mark {
            Mark::Messages { endpoint, messages } => self.received[endpoint].messages >= messages,
            Mark::Steps { kernel, steps } => {
                let status = self.assembly.fleet.status(&self.assembly.kernels[kernel]);
                status.is_some_and(|status| status.steps >= steps)
            }
        }
    }

    fn endpoints_are_empty(&self) -> bool {
        self.assembly.endpoints.iter().all(|endpoint| endpoint.depth() == 0)
    }

    fn stands_still_for(&mut self) -> Duration {
        let steps = self.assembly.fleet.steps();
        if steps != self.last_step.0 {
            self.last_step = (steps, Instant::now());
        }
        self.last_step.1.elapsed()
    }

    /// When events were due, and what came. Ends the orders.
    pub(super) fn finish(self) -> (Vec<Option<Duration>>, Vec<Received>) {
        self.bar.finish_and_clear();
        (self.fired, self.received)
    }
}
