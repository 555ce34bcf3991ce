//! What the host hands to a mailbox and gets from it: one message or many, waiting or not.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::error::DeliveryReason;
use crate::message::{Envelope, Message};

/// Whether the host waits for a mailbox, and until when.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    No,
    For(Option<Instant>),
}

impl Wait {
    /// Until the earlier one of its own end and `deadline`.
    pub(crate) fn until(self, deadline: Option<Instant>) -> Self {
        match (self, deadline) {
            (Self::For(None), deadline) => Self::For(deadline),
            (Self::For(Some(end)), Some(deadline)) => Self::For(Some(end.min(deadline))),
            (wait, _) => wait,
        }
    }
}

/// Why a message of the host was not taken. The message stays with its sender.
#[derive(Debug)]
pub(crate) enum Refusal {
    Full,
    Closed(Arc<DeliveryReason>),
}

/// What the host sends: one message, or a queue of them.
pub(crate) trait MessageSource {
    fn left(&self) -> usize;
    fn next(&mut self) -> Option<Message>;
}

impl MessageSource for Option<Message> {
    fn left(&self) -> usize {
        usize::from(self.is_some())
    }

    fn next(&mut self) -> Option<Message> {
        self.take()
    }
}

impl MessageSource for VecDeque<Message> {
    fn left(&self) -> usize {
        self.len()
    }

    fn next(&mut self) -> Option<Message> {
        self.pop_front()
    }
}

/// Where the host receives into: a list, or a place for one.
pub(crate) trait EnvelopeSink {
    fn put(&mut self, envelope: Envelope);
}

impl EnvelopeSink for Vec<Envelope> {
    fn put(&mut self, envelope: Envelope) {
        self.push(envelope);
    }
}

impl EnvelopeSink for Option<Envelope> {
    fn put(&mut self, envelope: Envelope) {
        *self = Some(envelope);
    }
}
