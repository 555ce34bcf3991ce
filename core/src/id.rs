//! Names of things: kernels and channels.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Bytes of a display name that travel inside a [`KernelId`].
const LABEL_BYTES: usize = 20;

/// Identifies one kernel for ever.
///
/// Two ids made by two calls of [`KernelId::new`] differ even when their names are equal, also
/// across processes: an id is (origin of the process, serial number) and is never used for another
/// kernel. The name is for people; it takes no part in comparison or hashing.
///
/// The id is 32 bytes, [`Copy`], and owns no memory. A name longer than 20 bytes is shortened in
/// the middle (`a-very-lo~name-0042`), because the ends tell siblings apart.
///
/// ```
/// use hopwise_core::id::KernelId;
///
/// let first = KernelId::new("strip");
/// let second = KernelId::new("strip");
/// assert_ne!(first, second);
/// assert_eq!(first.name(), second.name());
/// ```
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "KernelIdForm", into = "KernelIdForm")]
pub struct KernelId {
    serial: u64,
    origin: u32,
    label: [u8; LABEL_BYTES],
}

impl KernelId {
    /// Makes an id that no other kernel has or will have, carrying `name` for display.
    #[must_use]
    pub fn new(name: impl AsRef<str>) -> Self {
        static NEXT_SERIAL: AtomicU64 = AtomicU64::new(1);
        Self {
            serial: NEXT_SERIAL.fetch_add(1, Ordering::Relaxed),
            origin: process_origin(),
            label: shorten(name.as_ref()),
        }
    }

    /// The display name, shortened to 20 bytes.
    #[must_use]
    pub fn name(&self) -> &str {
        let end = self.label.iter().position(|&byte| byte == 0).unwrap_or(LABEL_BYTES);
        // Labels are cut at character boundaries when they are made, so the fallback is never taken.
        std::str::from_utf8(&self.label[..end]).unwrap_or("?")
    }

    /// The serial number within the process that made the id.
    #[must_use]
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Which process made the id: a number drawn at its first use of an id.
    #[must_use]
    pub fn origin(&self) -> u32 {
        self.origin
    }
}

impl PartialEq for KernelId {
    fn eq(&self, other: &Self) -> bool {
        self.serial == other.serial && self.origin == other.origin
    }
}

impl Eq for KernelId {}

impl PartialOrd for KernelId {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for KernelId {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.origin, self.serial).cmp(&(other.origin, other.serial))
    }
}

impl Hash for KernelId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.serial);
        state.write_u32(self.origin);
    }
}

/// Prints the display name.
impl fmt::Display for KernelId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// Prints name and serial number, so that kernels of one name can be told apart.
impl fmt::Debug for KernelId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}#{}", self.name(), self.serial)
    }
}

/// The serialised form: plain fields, so that plans and journals are readable.
#[derive(Serialize, Deserialize)]
struct KernelIdForm {
    name: String,
    origin: u32,
    serial: u64,
}

impl From<KernelId> for KernelIdForm {
    fn from(id: KernelId) -> Self {
        Self { name: id.name().to_owned(), origin: id.origin, serial: id.serial }
    }
}

impl TryFrom<KernelIdForm> for KernelId {
    type Error = String;

    fn try_from(form: KernelIdForm) -> Result<Self, String> {
        if form.serial == 0 {
            return Err("a kernel id with serial number 0: serial numbers start at 1".to_owned());
        }
        Ok(Self { serial: form.serial, origin: form.origin, label: shorten(&form.name) })
    }
}

/// A number that tells this process from others with overwhelming likelihood.
fn process_origin() -> u32 {
    static ORIGIN: OnceLock<u32> = OnceLock::new();
    *ORIGIN.get_or_init(|| {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut hasher = blake3::Hasher::new();
        hasher.update(&since_epoch.as_nanos().to_le_bytes());
        hasher.update(&std::process::id().to_le_bytes());
        // The address of a static differs between processes where addresses are randomised.
        hasher.update(format!("{:p}", &ORIGIN).as_bytes());
        let digest = hasher.finalize();
        let bytes = digest.as_bytes();
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    })
}

/// Fits a name into a label: as it is, or its head and its tail around a `~`.
/// Zero bytes end a label, so they become spaces.
fn shorten(name: &str) -> [u8; LABEL_BYTES] {
    let clean = name.replace('\0', " ");
    let mut label = [0; LABEL_BYTES];
    if clean.len() <= LABEL_BYTES {
        label[..clean.len()].copy_from_slice(clean.as_bytes());
        return label;
    }
    let tail_start = clean.ceil_char_boundary(clean.len() - 9);
    let tail = &clean[tail_start..];
    let head = &clean[..clean.floor_char_boundary(LABEL_BYTES - 1 - tail.len())];
    let short = format!("{head}~{tail}");
    label[..short.len()].copy_from_slice(short.as_bytes());
    label
}

/// Identifies one channel for ever within a fleet: a rebound port gets a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ChannelId(u64);

impl ChannelId {
    /// The channel with this number. Fleets count from 1.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The number.
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// The low 32 bits, which a kernel sees as its message's sender.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the ABI carries the low half")]
    pub const fn low_word(self) -> u32 {
        self.0 as u32
    }
}

impl fmt::Display for ChannelId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "channel {}", self.0)
    }
}

#[cfg(test)]
mod tests;
