//! Where kernels send to the host.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::channel::Party;
use super::deadline_after;
use super::effects::{Effects, new_token};
use super::error::{DeliveryReason, ReceiveError};
use super::host_side::{EnvelopeSink, Wait};
use super::mailbox::Mailbox;
use super::runtime::Runtime;
use crate::message::Envelope;

/// Receives on the host what kernels send to it. Bounded as every mailbox: kernels whose output
/// finds no room do not run until it is received. Dropping it closes it; what it had not given out
/// goes to the dead letters.
#[derive(Debug)]
pub struct Endpoint {
    runtime: Arc<Runtime>,
    name: String,
    mailbox: Arc<Mailbox>,
}

impl Endpoint {
    pub(crate) fn new(runtime: Arc<Runtime>, name: String, capacity: usize) -> Self {
        let mailbox = Arc::new(Mailbox::new(capacity.max(1), runtime.pulse()));
        runtime.know_endpoint(&mailbox);
        Self { runtime, name, mailbox }
    }

    /// The name under which reports list it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Messages that wait to be received.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.mailbox.len()
    }

    /// Receives, waiting as long as it takes.
    ///
    /// # Errors
    ///
    /// [`ReceiveError::Closed`] when the fleet shuts down and nothing is left.
    pub fn recv(&self) -> Result<Envelope, ReceiveError> {
        self.receive_one(Wait::For(None))
    }

    /// Receives what is there now.
    ///
    /// # Errors
    ///
    /// [`ReceiveError::Empty`], or as [`recv`](Self::recv).
    pub fn try_recv(&self) -> Result<Envelope, ReceiveError> {
        self.receive_one(Wait::No)
    }

    /// Receives, waiting until the time is up.
    ///
    /// # Errors
    ///
    /// As [`try_recv`](Self::try_recv).
    pub fn recv_timeout(&self, timeout: Duration) -> Result<Envelope, ReceiveError> {
        self.receive_one(Wait::For(deadline_after(timeout)))
    }

    /// Receives what is there now, up to `most` messages, at the end of `into`; returns how many.
    /// Takes one lock for all, and allocates only when `into` has never been as long.
    ///
    /// # Errors
    ///
    /// As [`try_recv`](Self::try_recv).
    pub fn drain_into(&self, into: &mut Vec<Envelope>, most: usize) -> Result<usize, ReceiveError> {
        self.receive(most.max(1), Wait::No, into)
    }

    /// [`drain_into`](Self::drain_into), waiting for the first message until the time is up.
    ///
    /// # Errors
    ///
    /// As [`try_recv`](Self::try_recv).
    pub fn drain_into_timeout(
        &self,
        into: &mut Vec<Envelope>,
        most: usize,
        timeout: Duration,
    ) -> Result<usize, ReceiveError> {
        self.receive(most.max(1), Wait::For(deadline_after(timeout)), into)
    }

    /// Receives, awaiting a message. Works with any executor.
    ///
    /// # Errors
    ///
    /// As [`recv`](Self::recv).
    pub fn recv_async(&self) -> ReceiveFuture<'_> {
        ReceiveFuture { endpoint: self, token: new_token() }
    }

    pub(crate) fn mailbox(&self) -> &Arc<Mailbox> {
        &self.mailbox
    }

    pub(crate) fn party(&self) -> Party {
        Party::Host { name: self.name.clone() }
    }

    fn receive_one(&self, wait: Wait) -> Result<Envelope, ReceiveError> {
        let mut one = None;
        self.receive(1, wait, &mut one)?;
        one.ok_or(ReceiveError::Empty)
    }

    fn receive(
        &self,
        most: usize,
        wait: Wait,
        into: &mut impl EnvelopeSink,
    ) -> Result<usize, ReceiveError> {
        self.conclude(self.mailbox.take_for_host(most, wait, into))
    }

    fn conclude(
        &self,
        (taken, effects): (Result<usize, Option<DeliveryReason>>, Effects),
    ) -> Result<usize, ReceiveError> {
        if !effects.is_empty() {
            self.runtime.follow(effects);
        }
        taken.map_err(|reason| reason.map_or(ReceiveError::Empty, ReceiveError::Closed))
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let reason = DeliveryReason::EndpointClosed { endpoint: self.name.clone() };
        let effects = self.mailbox.close(reason.clone());
        self.runtime.discard(&self.mailbox, &reason);
        self.runtime.follow(effects);
    }
}

/// A receive that awaits a message.
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct ReceiveFuture<'a> {
    endpoint: &'a Endpoint,
    token: u64,
}

impl Future for ReceiveFuture<'_> {
    type Output = Result<Envelope, ReceiveError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let waiting = (self.token, context.waker().clone());
        let mut one = None;
        let taken = self.endpoint.mailbox.take_or_wake(waiting, &mut one);
        match self.endpoint.conclude(taken) {
            Err(ReceiveError::Empty) => Poll::Pending,
            Ok(_) => Poll::Ready(one.ok_or(ReceiveError::Empty)),
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}
