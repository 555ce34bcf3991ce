//! The host's way into mailboxes: one message or many, blocking, refusing or awaiting.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::deadline_after;
use super::effects::{WaitingFuture, new_token};
use super::error::{DeliveryReason, SendAllError, SendError, SendReason};
use super::host_side::{MessageSource, Refusal, Wait};
use super::router::Outlet;
use super::runtime::Runtime;
use crate::id::ChannelId;
use crate::message::Message;

/// Sends from the host into one in-port of a kernel, or to an endpoint: one channel.
///
/// It is a handle to the mailbox at the channel's end: a send takes one short lock, and wakes the
/// receiver only if that sleeps. Threads may share a sender; numbers are given in the order in which
/// messages enter the mailbox.
///
/// A message with a deadline is not sent, and does not wait for room, after that.
#[derive(Debug)]
pub struct HostSender {
    runtime: Arc<Runtime>,
    outlet: Arc<Outlet>,
    port: String,
    max_message_bytes: u32,
}

impl HostSender {
    pub(crate) fn new(
        runtime: Arc<Runtime>,
        outlet: Arc<Outlet>,
        port: String,
        max_message_bytes: u32,
    ) -> Self {
        Self { runtime, outlet, port, max_message_bytes }
    }

    /// The channel.
    #[must_use]
    pub fn channel(&self) -> ChannelId {
        self.outlet.channel.id
    }

    /// Sends, waiting for room as long as it takes.
    ///
    /// # Errors
    ///
    /// [`SendError`] gives the message back: it is too large, or the kernel takes none.
    pub fn send(&self, message: Message) -> Result<(), SendError> {
        self.send_one(message, Wait::For(None))
    }

    /// Sends if there is room now.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send), and [`SendReason::Full`].
    pub fn try_send(&self, message: Message) -> Result<(), SendError> {
        self.send_one(message, Wait::No)
    }

    /// Sends, waiting for room until the time is up.
    ///
    /// # Errors
    ///
    /// As [`try_send`](Self::try_send).
    pub fn send_timeout(&self, message: Message, timeout: Duration) -> Result<(), SendError> {
        self.send_one(message, Wait::For(deadline_after(timeout)))
    }

    /// Sends, awaiting room. Works with any executor.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub fn send_async(&self, message: Message) -> SendFuture<'_> {
        SendFuture { sender: self, message: Some(message), token: new_token() }
    }

    /// Sends a queue of messages from its front, in few pushes, waiting for room as long as it takes.
    ///
    /// # Errors
    ///
    /// [`SendAllError`] says why the first message that is left in the queue was not sent.
    pub fn send_all(&self, messages: &mut VecDeque<Message>) -> Result<(), SendAllError> {
        self.send_queue(messages, Wait::For(None))
    }

    /// Sends from the front of a queue what there is room for now.
    ///
    /// # Errors
    ///
    /// As [`send_all`](Self::send_all), and [`SendReason::Full`].
    pub fn try_send_all(&self, messages: &mut VecDeque<Message>) -> Result<(), SendAllError> {
        self.send_queue(messages, Wait::No)
    }

    /// [`send_all`](Self::send_all) until the time is up.
    ///
    /// # Errors
    ///
    /// As [`try_send_all`](Self::try_send_all).
    pub fn send_all_timeout(
        &self,
        messages: &mut VecDeque<Message>,
        timeout: Duration,
    ) -> Result<(), SendAllError> {
        self.send_queue(messages, Wait::For(deadline_after(timeout)))
    }

    fn send_one(&self, message: Message, wait: Wait) -> Result<(), SendError> {
        if let Err(reason) = self.check(&message) {
            return Err(SendError { message, reason });
        }
        let deadline = message.deadline();
        let mut message = Some(message);
        match self.push(&mut message, wait.until(deadline)) {
            Ok(()) => Ok(()),
            Err(reason) => {
                let message = message.take().expect("a refused message stays");
                let reason = if matches!(reason, SendReason::Full) {
                    self.check(&message).err().unwrap_or(reason)
                } else {
                    reason
                };
                Err(SendError { message, reason })
            }
        }
    }

    fn send_queue(&self, messages: &mut VecDeque<Message>, wait: Wait) -> Result<(), SendAllError> {
        let mut fine = VecDeque::with_capacity(messages.len());
        let mut outcome = Ok(());
        while let Some(message) = messages.front() {
            outcome = self.check(message);
            if outcome.is_err() {
                break;
            }
            fine.extend(messages.pop_front());
        }
        let earliest = fine.iter().filter_map(Message::deadline).min();
        if let Err(reason) = self.push(&mut fine, wait.until(earliest)) {
            let expired = fine.front().and_then(|message| self.check(message).err());
            outcome = Err(expired.unwrap_or(reason));
        }
        while let Some(message) = fine.pop_back() {
            messages.push_front(message);
        }
        outcome.map_err(|reason| SendAllError { left: messages.len(), reason })
    }

    /// Pushes what fits, and waits for room for the rest if that is wanted.
    fn push(&self, messages: &mut impl MessageSource, wait: Wait) -> Result<(), SendReason> {
        match self.push_now(messages, None) {
            Err(SendReason::Full) => {}
            outcome => return outcome,
        }
        let Wait::For(deadline) = wait else { return Err(SendReason::Full) };
        // A message that waits is under way: the fleet is not idle.
        self.runtime.pulse.add();
        let outcome = loop {
            let in_time = self.outlet.mailbox.wait_for_room(deadline);
            match self.push_now(messages, None) {
                Err(SendReason::Full) if in_time => {}
                outcome => break outcome,
            }
        };
        self.runtime.pulse.remove();
        outcome
    }

    fn push_now(
        &self,
        messages: &mut impl MessageSource,
        waiting: Option<WaitingFuture>,
    ) -> Result<(), SendReason> {
        let outlet = &self.outlet;
        let (outcome, effects) = outlet.mailbox.push_from_host(outlet.source, messages, waiting);
        if !effects.is_empty() {
            self.runtime.follow(effects);
        }
        outcome.map_err(|refusal| match refusal {
            Refusal::Full => SendReason::Full,
            Refusal::Closed(reason) => DeliveryReason::clone(&reason).into(),
        })
    }

    fn check(&self, message: &Message) -> Result<(), SendReason> {
        if self.runtime.closing.load(Ordering::Acquire) {
            return Err(DeliveryReason::ShuttingDown.into());
        }
        let length_bytes = message.payload.len();
        if length_bytes > self.max_message_bytes as usize {
            let (port, max_message_bytes) = (self.port.clone(), self.max_message_bytes);
            return Err(SendReason::TooLarge { port, length_bytes, max_message_bytes });
        }
        if message.has_deadline() && message.is_expired(Instant::now()) {
            return Err(DeliveryReason::Expired.into());
        }
        Ok(())
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
        let message = self.message.as_ref().expect("a finished future is not polled again");
        let waiting = (self.token, context.waker().clone());
        let outcome =
            sender.check(message).and_then(|()| sender.push_now(&mut self.message, Some(waiting)));
        match outcome {
            Ok(()) => Poll::Ready(Ok(())),
            Err(SendReason::Full) => Poll::Pending,
            Err(reason) => {
                let message = self.message.take().expect("a refused message stays");
                Poll::Ready(Err(SendError { message, reason }))
            }
        }
    }
}
