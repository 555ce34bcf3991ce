//! What can go wrong with a device, and the errors of each operation that wrap it.
//!
//! A backend reports only what its caller cannot foresee. `core` checks ranges, sizes and
//! lifetimes above the traits, once.

use thiserror::Error;

use crate::device_info::BackendKind;

/// A device or its driver failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The device is gone; its memory cannot be read.
    #[error("the device is lost: {cause}")]
    Lost {
        /// What the driver said first.
        cause: String,
    },
    /// Memory, or the quota on it, is used up.
    #[error("out of device memory: {}", shortage(*requested_bytes, *available_bytes))]
    OutOfMemory {
        /// Bytes asked for; 0 where what the driver refused has no size that is known.
        requested_bytes: u64,
        /// Bytes that were left of the quota; `None` where the driver or the system refused, which
        /// do not say how much they had.
        available_bytes: Option<u64>,
    },
    /// A step outlived its limit and cannot be stopped.
    #[error("the device does not respond: {cause}")]
    Unresponsive {
        /// Which step, and its limit.
        cause: String,
    },
    /// The device or its driver is not there.
    #[error("not available: {reason}")]
    Unavailable {
        /// What is missing, and the remedy.
        reason: String,
    },
    /// The driver refused a call. The device still works.
    #[error("the driver failed: {message}")]
    Driver {
        /// The driver's own words.
        message: String,
    },
}

fn shortage(requested_bytes: u64, available_bytes: Option<u64>) -> String {
    match (requested_bytes, available_bytes) {
        (0, _) => "the driver refuses a call; free kernels, or use another device".to_owned(),
        (_, Some(left)) => format!("{requested_bytes} bytes asked for, {left} available"),
        (_, None) => format!(
            "{requested_bytes} bytes asked for, refused though the quota allows them; lower the \
             quota, or free memory outside of it"
        ),
    }
}

impl DeviceError {
    /// Whether the device cannot be used any more: lost or unresponsive.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        matches!(self, Self::Lost { .. } | Self::Unresponsive { .. })
    }
}

/// A program could not be made ready for a device.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The program has no form that the backend understands.
    #[error("program `{program}` has no form for {backend} devices; it has: {forms}")]
    NoForm {
        /// The program's name.
        program: String,
        /// The backend asked.
        backend: BackendKind,
        /// The forms that the program carries.
        forms: String,
    },
    /// The source is wrong.
    #[error("program `{program}`, {file}:{line}:{column}: {message}")]
    Source {
        /// The program's name.
        program: String,
        /// Which source.
        file: String,
        /// Line in the user's source, from 1.
        line: u32,
        /// Column in the user's source, from 1.
        column: u32,
        /// What is wrong, and the remedy.
        message: String,
    },
    /// The program asks for more than the device can give.
    #[error("program `{program}` needs {wanted} {limit}, the device offers {offered}")]
    Limit {
        /// The program's name.
        program: String,
        /// The name of the limit.
        limit: String,
        /// What the program needs.
        wanted: u64,
        /// What the device offers.
        offered: u64,
    },
}

/// A kernel instance could not be created.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InstanceError {
    /// The device failed, or has no memory left.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The state is larger than the device can hold in one instance.
    #[error(
        "a state of {state_bytes} bytes exceeds the device's limit of {max_state_bytes} bytes (max_state_bytes)"
    )]
    StateTooLarge {
        /// Bytes asked for.
        state_bytes: u64,
        /// The limit.
        max_state_bytes: u64,
    },
    /// The state's size is not a positive multiple of four.
    #[error("a state of {state_bytes} bytes: the size must be a positive multiple of 4")]
    StateSize {
        /// Bytes asked for.
        state_bytes: u64,
    },
    /// The compiled program belongs to another device.
    #[error("the program was compiled for another device; compile it on this one")]
    ForeignProgram,
}

/// State could not be read, written or digested.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The range leaves the state.
    #[error(
        "bytes {offset_bytes}..{offset_bytes}+{length_bytes} leave a state of {state_bytes} bytes"
    )]
    OutOfRange {
        /// First byte.
        offset_bytes: u64,
        /// Number of bytes.
        length_bytes: u64,
        /// Size of the state.
        state_bytes: u64,
    },
    /// Offset or length is not a multiple of four.
    #[error("offset {offset_bytes} and length {length_bytes} must be multiples of 4")]
    Misaligned {
        /// First byte.
        offset_bytes: u64,
        /// Number of bytes.
        length_bytes: u64,
    },
    /// Chunks for digests are not a positive multiple of four bytes.
    #[error("chunks of {chunk_bytes} bytes: the size must be a positive multiple of 4")]
    ChunkSize {
        /// Bytes of a chunk.
        chunk_bytes: u64,
    },
    /// A step of this instance runs and did not end in time.
    #[error("a step of the instance is running and did not end within {waited_ms} ms")]
    Busy {
        /// How long the call waited.
        waited_ms: u64,
    },
}

impl TransferError {
    /// Whether the device cannot be used any more.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        matches!(self, Self::Device(error) if error.is_fatal())
    }
}

/// Checks a range against a state's size: the check that every backend may rely on.
///
/// # Errors
///
/// [`TransferError::Misaligned`] and [`TransferError::OutOfRange`].
pub fn check_range(
    offset_bytes: u64,
    length_bytes: u64,
    state_bytes: u64,
) -> Result<(), TransferError> {
    if !offset_bytes.is_multiple_of(4) || !length_bytes.is_multiple_of(4) {
        return Err(TransferError::Misaligned { offset_bytes, length_bytes });
    }
    match offset_bytes.checked_add(length_bytes) {
        Some(end) if end <= state_bytes => Ok(()),
        _ => Err(TransferError::OutOfRange { offset_bytes, length_bytes, state_bytes }),
    }
}

/// Checks the chunk size of digests: the check that every backend may rely on.
///
/// # Errors
///
/// [`TransferError::ChunkSize`].
pub fn check_chunk_bytes(chunk_bytes: u64) -> Result<(), TransferError> {
    if chunk_bytes == 0 || !chunk_bytes.is_multiple_of(4) {
        return Err(TransferError::ChunkSize { chunk_bytes });
    }
    Ok(())
}

/// Checks the size of a new state: the check that every backend may rely on.
///
/// # Errors
///
/// [`InstanceError::StateSize`] and [`InstanceError::StateTooLarge`].
pub fn check_state_bytes(state_bytes: u64, max_state_bytes: u64) -> Result<(), InstanceError> {
    if state_bytes == 0 || !state_bytes.is_multiple_of(4) {
        return Err(InstanceError::StateSize { state_bytes });
    }
    if state_bytes > max_state_bytes {
        return Err(InstanceError::StateTooLarge { state_bytes, max_state_bytes });
    }
    Ok(())
}

/// Why a step stopped its kernel. The kernel keeps its messages; no other kernel is touched.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StepFault {
    /// The step sent more messages than the program's outbox has slots.
    #[error(
        "outbox overflow: {sent} messages sent, {slots} slots; declare more outbox slots or send fewer per step"
    )]
    OutboxOverflow {
        /// Messages that the step tried to send.
        sent: u64,
        /// Slots of the outbox.
        slots: u32,
    },
    /// The step wrote a slot that makes no sense.
    #[error("malformed message in outbox slot {slot}: {reason}")]
    MalformedMessage {
        /// The slot, from 0.
        slot: u32,
        /// What is wrong.
        reason: String,
    },
    /// Two messages of one step on one port carry the same key.
    #[error(
        "two messages on out-port `{port}` carry key {key}; keys order the messages of a step and must differ"
    )]
    EqualKeys {
        /// The port's name.
        port: String,
        /// The key.
        key: u32,
    },
    /// The program gave up with a code of its own.
    #[error("the program reports fault {code}: {reason}")]
    Program {
        /// The program's code; 0 where it gave none.
        code: u16,
        /// The program's words; empty on devices that carry only the code.
        reason: String,
    },
    /// A host function panicked.
    #[error("the program panicked: {message}")]
    Panicked {
        /// The panic's text.
        message: String,
    },
    /// The step ran longer than the limit; its kernel is lost.
    #[error("the step ran longer than its limit of {limit_ms} ms")]
    Overrun {
        /// The limit.
        limit_ms: u64,
    },
    /// The device could not run the step, however often it was tried.
    #[error("the step could not be run: {0}")]
    Device(DeviceError),
}
