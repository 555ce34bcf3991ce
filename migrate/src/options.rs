//! How migrations are carried out, and how one is cancelled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Bytes of a chunk unless the options say otherwise: 1 MiB, so that a staging buffer stays in a
/// processor's second-level cache between its reader and its writer.
pub const DEFAULT_CHUNK_BYTES: u64 = 1 << 20;

/// The largest chunk, in bytes: 1 GiB.
pub const MAX_CHUNK_BYTES: u64 = 1 << 30;

/// Staging buffers unless the options say otherwise: one being read into, one being written from,
/// one between them.
pub const DEFAULT_STAGING_BUFFERS: usize = 3;

/// How long a kernel's running step is waited for unless the options say otherwise: twice the time
/// that a fleet allows a step by default.
pub const DEFAULT_HOLD_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a migration may take unless the options say otherwise.
pub const DEFAULT_TOTAL_TIMEOUT: Duration = Duration::from_secs(300);

/// How migrations are carried out.
///
/// ```
/// use std::time::Duration;
///
/// use hopwise_migrate::MigrationOptions;
///
/// let options = MigrationOptions::new()
///     .with_chunk_bytes(4 << 20)
///     .with_total_timeout(Duration::from_secs(60));
/// assert_eq!((options.chunk_bytes(), options.staging_buffers()), (4 << 20, 3));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationOptions {
    chunk_bytes: u64,
    staging_buffers: usize,
    hold_timeout: Duration,
    total_timeout: Duration,
    peer_copy: bool,
}

impl Default for MigrationOptions {
    fn default() -> Self {
        Self {
            chunk_bytes: DEFAULT_CHUNK_BYTES,
            staging_buffers: DEFAULT_STAGING_BUFFERS,
            hold_timeout: DEFAULT_HOLD_TIMEOUT,
            total_timeout: DEFAULT_TOTAL_TIMEOUT,
            peer_copy: true,
        }
    }
}

impl MigrationOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the bytes that are read, written and digested at a time. Rounded up to a multiple of 4,
    /// at least 4, at most [`MAX_CHUNK_BYTES`].
    #[must_use]
    pub fn with_chunk_bytes(mut self, bytes: u64) -> Self {
        self.chunk_bytes = bytes.clamp(4, MAX_CHUNK_BYTES).next_multiple_of(4);
        self
    }

    /// Sets how many chunks are in host memory at a time. At least one; with one, reading and
    /// writing take turns.
    #[must_use]
    pub fn with_staging_buffers(mut self, buffers: usize) -> Self {
        self.staging_buffers = buffers.max(1);
        self
    }

    /// Sets how long the kernel's running step, or whoever else holds the kernel, is waited for.
    #[must_use]
    pub fn with_hold_timeout(mut self, timeout: Duration) -> Self {
        self.hold_timeout = timeout;
        self
    }

    /// Sets how long a migration may take. It is looked at between any two calls to a device: a call
    /// that has begun is not cut short.
    #[must_use]
    pub fn with_total_timeout(mut self, timeout: Duration) -> Self {
        self.total_timeout = timeout;
        self
    }

    /// Says whether devices that reach each other copy directly. Without it every byte goes through
    /// host memory: the remedy on machines whose direct copies are broken.
    #[must_use]
    pub fn with_peer_copy(mut self, allowed: bool) -> Self {
        self.peer_copy = allowed;
        self
    }

    /// Bytes of a chunk.
    #[must_use]
    pub fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    /// Chunks in host memory at a time.
    #[must_use]
    pub fn staging_buffers(&self) -> usize {
        self.staging_buffers
    }

    /// How long the kernel's running step is waited for.
    #[must_use]
    pub fn hold_timeout(&self) -> Duration {
        self.hold_timeout
    }

    /// How long a migration may take.
    #[must_use]
    pub fn total_timeout(&self) -> Duration {
        self.total_timeout
    }

    /// Whether devices that reach each other copy directly.
    #[must_use]
    pub fn peer_copy(&self) -> bool {
        self.peer_copy
    }
}

/// Cancels migrations: clones share one switch.
///
/// A migration that sees it before its hand-over rolls back; one that is past that goes on to its
/// end. Seen between any two calls to a device, and every 10 ms while a running step is waited for.
///
/// ```
/// use hopwise_migrate::CancelToken;
///
/// let token = CancelToken::new();
/// let elsewhere = token.clone();
/// elsewhere.cancel();
/// assert!(token.is_cancelled());
/// ```
#[derive(Clone, Debug, Default)]
pub struct CancelToken {
    cancelled: Arc<AtomicBool>,
}

impl CancelToken {
    /// A token that nobody has cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels, for ever.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }

    /// Whether somebody cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }
}
