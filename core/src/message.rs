//! What travels: a payload, a tag, how urgent it is and until when it counts, and the number that
//! its channel gave it.

use std::any::Any;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::id::ChannelId;

/// Payloads up to this many bytes travel inside the message.
pub const INLINE_BYTES: usize = 32;

/// Payloads from this size on are not copied between host devices. Below, a copy costs less than the
/// bookkeeping that avoids it.
pub const SHARED_BYTES: usize = 1024;

/// The bytes of a message: inline when small, else shared and never copied on one host.
///
/// A payload that a device sent may have a copy in that device's memory, so that another device can
/// fetch it from there. The bytes in host memory are always there too: a message is not lost with the
/// device that sent it.
#[derive(Clone)]
pub struct Payload {
    bytes: Bytes,
}

/// The bytes of a payload in the memory of a device. Whoever holds it keeps the memory.
pub trait DevicePayload: Send + Sync + fmt::Debug {
    /// For the backend that made it.
    fn as_any(&self) -> &dyn Any;
}

#[derive(Clone)]
enum Bytes {
    Inline { length: u8, bytes: [u8; INLINE_BYTES] },
    Shared(Arc<[u8]>, Option<Arc<dyn DevicePayload>>),
}

impl Payload {
    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Inline { length, bytes } => &bytes[..usize::from(*length)],
            Bytes::Shared(bytes, _) => bytes,
        }
    }

    /// Number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.bytes {
            Bytes::Inline { length, .. } => usize::from(*length),
            Bytes::Shared(bytes, _) => bytes.len(),
        }
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A payload of whole words, little-endian.
    #[must_use]
    pub fn from_words(words: &[u32]) -> Self {
        let mut bytes = vec![0; words.len() * 4];
        crate::abi::words_to_bytes(words, &mut bytes);
        Self::from(bytes)
    }

    /// The payload as words without a copy: where it is shared, whole words long, and lies in memory
    /// as a kernel would see it.
    #[must_use]
    pub fn as_words(&self) -> Option<&[u32]> {
        match &self.bytes {
            Bytes::Shared(bytes, _) if cfg!(target_endian = "little") => {
                bytemuck::try_cast_slice(bytes).ok()
            }
            _ => None,
        }
    }

    /// The first `length_bytes` bytes of these words, little-endian.
    ///
    /// # Panics
    ///
    /// When there are fewer.
    pub(crate) fn from_slot(words: &[u32], length_bytes: usize) -> Self {
        if let Ok(length) = u8::try_from(length_bytes)
            && length_bytes <= INLINE_BYTES
        {
            let mut bytes = [0; INLINE_BYTES];
            crate::abi::words_to_bytes(words, &mut bytes[..length_bytes]);
            return Self { bytes: Bytes::Inline { length, bytes } };
        }
        let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, length_bytes).collect();
        let only_owner = Arc::get_mut(&mut bytes).expect("nobody else has the new bytes");
        crate::abi::words_to_bytes(words, only_owner);
        Self::shared(bytes)
    }

    /// The payload as words, the last one zero-padded: a copy.
    #[must_use]
    pub fn to_words(&self) -> Vec<u32> {
        let mut words = vec![0; self.len().div_ceil(4)];
        crate::abi::bytes_to_words(self.as_bytes(), &mut words);
        words
    }

    /// The same payload, of which a device has a copy. A payload that travels inside its message has
    /// no use for one.
    #[must_use]
    pub fn with_copy_on_device(mut self, copy: Arc<dyn DevicePayload>) -> Self {
        if let Bytes::Shared(_, on_device) = &mut self.bytes {
            *on_device = Some(copy);
        }
        self
    }

    /// The copy in the memory of a device, where there is one.
    #[must_use]
    pub fn on_device(&self) -> Option<&Arc<dyn DevicePayload>> {
        match &self.bytes {
            Bytes::Inline { .. } => None,
            Bytes::Shared(_, on_device) => on_device.as_ref(),
        }
    }

    fn shared(bytes: Arc<[u8]>) -> Self {
        Self { bytes: Bytes::Shared(bytes, None) }
    }

    fn inline(bytes: &[u8]) -> Option<Self> {
        let length = u8::try_from(bytes.len()).ok()?;
        let mut inline = [0; INLINE_BYTES];
        inline.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Self { bytes: Bytes::Inline { length, bytes: inline } })
    }
}

impl Default for Payload {
    fn default() -> Self {
        Self { bytes: Bytes::Inline { length: 0, bytes: [0; INLINE_BYTES] } }
    }
}

impl From<&[u8]> for Payload {
    fn from(bytes: &[u8]) -> Self {
        Self::inline(bytes).unwrap_or_else(|| Self::shared(bytes.into()))
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Self::inline(&bytes).unwrap_or_else(|| Self::shared(bytes.into()))
    }
}

/// Shares the bytes whatever their number: nothing is copied.
impl From<Arc<[u8]>> for Payload {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self::shared(bytes)
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Payload {}

/// Prints the length, not the content.
impl fmt::Debug for Payload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} bytes", self.len())
    }
}

/// How urgent a message is. A mailbox gives out the most urgent first; among equals, and so on one
/// channel, order is kept. There is no ageing: low messages wait as long as others come.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// After all others.
    Low,
    /// What messages have unless they say otherwise.
    #[default]
    Normal,
    /// Before normal ones.
    High,
    /// Before all others.
    Urgent,
}

impl Priority {
    /// Number of priorities.
    pub(crate) const COUNT: usize = 4;

    /// Low is 0.
    pub(crate) const fn level(self) -> usize {
        self as usize
    }
}

/// An instant in eight bytes: nanoseconds since the first one that this process has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Deadline(NonZeroU64);

impl Deadline {
    fn epoch() -> Instant {
        static EPOCH: OnceLock<Instant> = OnceLock::new();
        *EPOCH.get_or_init(Instant::now)
    }

    /// An instant before the epoch becomes the epoch's first: it is in the past all the same.
    fn new(instant: Instant) -> Self {
        let since = instant.saturating_duration_since(Self::epoch()).as_nanos();
        let since = NonZeroU64::new(u64::try_from(since).unwrap_or(u64::MAX));
        Self(since.unwrap_or(NonZeroU64::MIN))
    }

    /// `None` where the clock cannot tell it: as good as never.
    fn instant(self) -> Option<Instant> {
        Self::epoch().checked_add(Duration::from_nanos(self.0.get()))
    }
}

/// A message as its sender makes it.
///
/// ```
/// use hopwise_core::message::{Message, Priority};
///
/// let message = Message::new(3, vec![1, 2, 3]).with_priority(Priority::Urgent);
/// assert_eq!(message.payload.as_bytes(), [1, 2, 3]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Free for the program.
    pub tag: u32,
    /// How urgent it is.
    pub priority: Priority,
    deadline: Option<Deadline>,
    /// The bytes.
    pub payload: Payload,
}

impl Message {
    /// A message with these contents, of normal priority and without a deadline.
    #[must_use]
    pub fn new(tag: u32, payload: impl Into<Payload>) -> Self {
        Self { tag, payload: payload.into(), ..Self::default() }
    }

    /// A message whose payload is whole words.
    #[must_use]
    pub fn from_words(tag: u32, words: &[u32]) -> Self {
        Self::new(tag, Payload::from_words(words))
    }

    /// Sets how urgent the message is.
    #[must_use]
    pub fn with_priority(self, priority: Priority) -> Self {
        Self { priority, ..self }
    }

    /// The message is worth nothing after this instant: if no step has taken it by then, it goes to
    /// the dead letters.
    #[must_use]
    pub fn with_deadline(self, deadline: Instant) -> Self {
        Self { deadline: Some(Deadline::new(deadline)), ..self }
    }

    /// [`with_deadline`](Self::with_deadline), counted from now.
    #[must_use]
    pub fn with_time_to_live(self, time: Duration) -> Self {
        match Instant::now().checked_add(time) {
            Some(deadline) => self.with_deadline(deadline),
            None => Self { deadline: None, ..self },
        }
    }

    /// Until when the message is worth something; `None`: for ever.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline.and_then(Deadline::instant)
    }

    pub(crate) fn has_deadline(&self) -> bool {
        self.deadline.is_some()
    }

    pub(crate) fn is_expired(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|deadline| deadline <= now)
    }
}

/// A message under way: numbered by its channel and addressed to a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The channel that carries it.
    pub channel: ChannelId,
    /// Its number on the channel among those of its priority, from 1 without gaps.
    pub sequence: u64,
    /// Index of the receiver's in-port; 0 at a host endpoint.
    pub in_port: u32,
    /// The message.
    pub message: Message,
}
