//! What the host sends.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use hopwise_core::fleet::{HostSender, SendReason};

use super::{Assembly, Signals};
use crate::scenario::plan::{Scenario, Send};

/// How long to wait when no mailbox had room.
const PAUSE: Duration = Duration::from_micros(200);

/// One `[[send]]` under way.
struct Queue<'a> {
    send: &'a Send,
    sender: &'a HostSender,
    sent: u64,
    failure: Option<String>,
}

impl Queue<'_> {
    fn is_open(&self) -> bool {
        self.failure.is_none() && self.sent < self.send.count
    }

    /// Sends until the mailbox is full; answers with whether anything was sent.
    fn advance(&mut self) -> bool {
        let before = self.sent;
        while self.is_open() {
            match self.sender.try_send(self.send.message.clone()) {
                Ok(()) => self.sent += 1,
                Err(error) if error.reason == SendReason::Full => break,
                Err(error) => {
                    let (nth, count) = (self.sent + 1, self.send.count);
                    let reason = format!("message {nth} of {count} of a send: {}", error.reason);
                    self.failure = Some(reason);
                }
            }
        }
        self.sent > before
    }
}

/// Sends everything, to all kernels side by side: one that takes nothing keeps no other waiting.
/// Returns what could not be sent.
pub(super) fn send_all(assembly: &Assembly, scenario: &Scenario, signals: &Signals) -> Vec<String> {
    let pairs = scenario.sends.iter().zip(&assembly.senders);
    let queues = pairs.map(|(send, sender)| Queue { send, sender, sent: 0, failure: None });
    let mut queues: Vec<_> = queues.collect();
    while queues.iter().any(Queue::is_open) && !signals.stop.load(Ordering::Acquire) {
        let mut any = false;
        for queue in &mut queues {
            any |= queue.advance();
        }
        if !any {
            thread::sleep(PAUSE);
        }
    }
    signals.sends_done.store(true, Ordering::Release);
    let failures = queues.into_iter().filter_map(|queue| {
        let open = queue.is_open().then(|| {
            let (sent, count, to) = (queue.sent, queue.send.count, &queue.send.to.1);
            format!("only {sent} of {count} messages were sent to in-port `{to}` in time")
        });
        queue.failure.or(open)
    });
    failures.collect()
}
