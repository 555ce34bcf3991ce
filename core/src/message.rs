//! What travels: a payload, a tag, and the number that its channel gave it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::id::ChannelId;

/// Payloads up to this many bytes travel inside the message.
pub const INLINE_BYTES: usize = 32;

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

/// A message as its sender makes it.
///
/// ```
/// use hopwise_core::message::Message;
///
/// let message = Message::new(3, vec![1, 2, 3]);
/// assert_eq!(message.payload.as_bytes(), [1, 2, 3]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Free for the program.
    pub tag: u32,
    /// The bytes.
    pub payload: Payload,
}

impl Message {
    /// A message with these contents.
    #[must_use]
    pub fn new(tag: u32, payload: impl Into<Payload>) -> Self {
        Self { tag, payload: payload.into() }
    }

    /// A message whose payload is whole words.
    #[must_use]
    pub fn from_words(tag: u32, words: &[u32]) -> Self {
        Self { tag, payload: Payload::from_words(words) }
    }
}

/// A message under way: numbered by its channel and addressed to a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The channel that carries it.
    pub channel: ChannelId,
    /// Its number on the channel, from 1 without gaps.
    pub sequence: u64,
    /// Index of the receiver's in-port; 0 at a host endpoint.
    pub in_port: u32,
    /// The message.
    pub message: Message,
}
