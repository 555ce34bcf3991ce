//! The host's ends of channels: senders into kernels, endpoints that kernels send to.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::channel::{Channel, Party};
use super::deadline_after;
use super::error::{DeliveryReason, ReceiveError, SendError, SendReason};
use super::mailbox::{Mailbox, Parcel, Refused, Waiters, new_token};
use super::runtime::Runtime;
use crate::id::ChannelId;
use crate::message::{Envelope, Message};

/// Sends from the host into one in-port of a kernel: one channel.
///
/// Threads may share a sender; numbers are given in the order in which messages enter the mailbox.
#[derive(Debug)]
pub struct HostSender {
    runtime: Arc<Runtime>,
    channel: Arc<Channel>,
    port: String,
    max_message_bytes: u32,
}

impl HostSender {
    pub(crate) fn new(
        runtime: Arc<Runtime>,
        channel: Arc<Channel>,
        port: String,
        max_message_bytes: u32,
    ) -> Self {
        Self { runtime, channel, port, max_message_bytes }
    }

    /// The channel.
    #[must_use]
    pub fn channel(&self) -> ChannelId {
        self.channel.id
    }

    /// Sends, waiting for room as long as it takes.
    ///
    /// # Errors
    ///
    /// [`SendError`] gives the message back: it is too large, or the kernel takes none.
    pub fn send(&self, message: Message) -> Result<(), SendError> {
        self.push(message, None)
    }

    /// Sends if there is room now.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send), and [`SendReason::Full`].
    pub fn try_send(&self, message: Message) -> Result<(), SendError> {
        self.push(message, Some(Instant::now()))
    }

    /// Sends, waiting for room until the time is up.
    ///
    /// # Errors
    ///
    /// As [`try_send`](Self::try_send).
    pub fn send_timeout(&self, message: Message, timeout: Duration) -> Result<(), SendError> {
        self.push(message, deadline_after(timeout))
    }

    /// Sends, awaiting room. Works with any executor.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub fn send_async(&self, message: Message) -> SendFuture<'_> {
        SendFuture { sender: self, message: Some(message), token: new_token() }
    }

    fn push(&self, message: Message, deadline: Option<Instant>) -> Result<(), SendError> {
        let message = self.check(message)?;
        // Counted as busy, so that nobody finds the fleet idle between the push and the wake-up.
        self.runtime.add_busy();
        let pushed = self.channel.to.mailbox.push_from_host(&self.channel, message, deadline);
        let pushed = pushed.map_err(refused).map(|waiters| self.arrived(waiters));
        self.runtime.remove_busy();
        pushed
    }

    fn arrived(&self, waiters: Waiters) {
        self.runtime.wake(waiters);
        self.runtime.wake_receiver(&self.channel);
    }

    fn check(&self, message: Message) -> Result<Message, SendError> {
        if self.runtime.closing.load(Ordering::Acquire) {
            return Err(SendError { message, reason: DeliveryReason::ShuttingDown.into() });
        }
        let length_bytes = message.payload.len();
        if length_bytes <= self.max_message_bytes as usize {
            return Ok(message);
        }
        let (port, max_message_bytes) = (self.port.clone(), self.max_message_bytes);
        let reason = SendReason::TooLarge { port, length_bytes, max_message_bytes };
        Err(SendError { message, reason })
    }
}

fn refused(refused: Refused<Message>) -> SendError {
    match refused {
        Refused::Full(message) => SendError { message, reason: SendReason::Full },
        Refused::Closed(message, reason) => {
            SendError { message, reason: DeliveryReason::clone(&reason).into() }
        }
    }
}

/// A send that awaits room.
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct SendFuture<'a> {
    sender: &'a HostSender,
    message: Option<Message>,
    token: u64,
}

impl Future for SendFuture<'_> {
    type Output = Result<(), SendError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let sender = self.sender;
        let message = self.message.take().expect("a finished future is not polled again");
        let message = match sender.check(message) {
            Ok(message) => message,
            Err(error) => return Poll::Ready(Err(error)),
        };
        sender.runtime.add_busy();
        let channel = &sender.channel;
        let waiting = (self.token, context.waker().clone());
        let pushed = channel.to.mailbox.push_or_wake(channel, message, waiting);
        let poll = match pushed {
            Ok(waiters) => {
                sender.arrived(waiters);
                Poll::Ready(Ok(()))
            }
            Err(Refused::Full(message)) => {
                self.message = Some(message);
                Poll::Pending
            }
            Err(closed) => Poll::Ready(Err(refused(closed))),
        };
        sender.runtime.remove_busy();
        poll
    }
}

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
        let mailbox = Arc::new(Mailbox::new(capacity.max(1)));
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
        self.conclude(self.mailbox.take_one(None))
    }

    /// Receives what is there now.
    ///
    /// # Errors
    ///
    /// [`ReceiveError::Empty`], or as [`recv`](Self::recv).
    pub fn try_recv(&self) -> Result<Envelope, ReceiveError> {
        self.conclude(self.mailbox.take_one(Some(Instant::now())))
    }

    /// Receives, waiting until the time is up.
    ///
    /// # Errors
    ///
    /// As [`try_recv`](Self::try_recv).
    pub fn recv_timeout(&self, timeout: Duration) -> Result<Envelope, ReceiveError> {
        self.conclude(self.mailbox.take_one(deadline_after(timeout)))
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

    fn conclude(
        &self,
        taken: Result<(Parcel, Waiters), Option<DeliveryReason>>,
    ) -> Result<Envelope, ReceiveError> {
        match taken {
            Ok((parcel, waiters)) => {
                parcel.channel.note_delivered();
                self.runtime.wake(waiters);
                Ok(parcel.into_envelope())
            }
            Err(Some(reason)) => Err(ReceiveError::Closed(reason)),
            Err(None) => Err(ReceiveError::Empty),
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let reason = DeliveryReason::EndpointClosed { endpoint: self.name.clone() };
        let waiters = self.mailbox.close(reason.clone());
        self.runtime.discard(&self.mailbox, &reason);
        self.runtime.wake(waiters);
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
        match self.endpoint.mailbox.take_or_wake(waiting) {
            Err(None) => Poll::Pending,
            taken => Poll::Ready(self.endpoint.conclude(taken)),
        }
    }
}
