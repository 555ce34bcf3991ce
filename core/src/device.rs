//! What a backend must offer for one open device: compile, create instances, run batches of steps.
//!
//! # Who checks what
//!
//! `core` checks sizes, ranges, ports and lifetimes before it calls; a backend that meets a
//! violation has found a bug above it. A backend checks what only it can know: its driver's
//! answers and its own limits.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::device_info::{DeviceInfo, DeviceLimits};
use crate::error::{CompileError, DeviceError, InstanceError, StepFault, TransferError};
use crate::health::{Degradation, DeviceHealth};
use crate::message::{DevicePayload, Payload};
use crate::program::Program;

/// One open device.
///
/// # Implementing
///
/// Every method may be called from several threads at once; [`run_batch`](Self::run_batch) is
/// called by at most [`DeviceInfo::workers`] threads, not counting those that were given up in a
/// step without end. Methods may block on the driver but never
/// call back into `core`. After a loss every method returns the latched cause: read it from
/// [`health`](Self::health), not from call results. The conformance suite
/// (feature `conformance`) is the law for implementers.
pub trait Device: Send + Sync + fmt::Debug {
    /// The facts found when the device was opened. Its index is the ordinal that was opened; the
    /// fleet gives the device another one when it registers it.
    fn info(&self) -> &DeviceInfo;

    /// Limits, found by asking or probing.
    fn limits(&self) -> &DeviceLimits;

    /// Memory now.
    ///
    /// # Errors
    ///
    /// The driver's, or the latched loss.
    fn memory(&self) -> Result<DeviceMemory, DeviceError>;

    /// The latch that closes when the device is lost.
    fn health(&self) -> &DeviceHealth;

    /// Lets the driver say that the device is lost, while nobody uses it. Never waits.
    ///
    /// # Errors
    ///
    /// The latched loss.
    fn poll(&self) -> Result<(), DeviceError> {
        self.health().check()
    }

    /// What makes the device worse than it should be while it works, as far as the backend knows.
    /// An empty list means that nothing is known, not that nothing is wrong. Never waits for a
    /// step.
    ///
    /// # Errors
    ///
    /// The latched loss: a lost device is not degraded.
    fn degradations(&self) -> Result<Vec<Degradation>, DeviceError> {
        self.health().check().map(|()| Vec::new())
    }

    /// Makes a program ready to run here. The same program is compiled once and kept.
    ///
    /// # Errors
    ///
    /// [`CompileError`]: no fitting form, wrong source, a limit, or the device.
    fn compile(&self, program: &Arc<Program>) -> Result<Arc<dyn CompiledProgram>, CompileError>;

    /// Creates an instance of a program compiled on this device.
    ///
    /// # Errors
    ///
    /// [`InstanceError`]: state too large, memory or quota used up, or the device.
    fn create_instance(
        &self,
        program: &Arc<dyn CompiledProgram>,
        request: &InstanceRequest<'_>,
    ) -> Result<Arc<dyn KernelInstance>, InstanceError>;

    /// Runs one step of every instance named, each instance at most once in a batch, and sets the
    /// outcome of each. Boxes hold the ABI's bytes; the outbox is prepared by the caller.
    ///
    /// # Errors
    ///
    /// The device's, when the batch as a whole failed. The outcomes then say for each step whether
    /// it was not started, applied or unknown.
    fn run_batch(&self, steps: &mut [Step]) -> Result<(), DeviceError>;

    /// Whether payloads that have a copy on a device may be left out of the inboxes of its steps: the
    /// device fills them in, from the copy or from host memory ([`StepPayloads::received`]).
    fn takes_device_payloads(&self) -> bool {
        false
    }

    /// Whether large payloads in host memory may be left out of the inboxes of its steps
    /// ([`StepPayloads::received`]), because its kernels read them where they are; what they send may
    /// be in [`StepPayloads::shared`].
    fn reads_payloads_in_place(&self) -> bool {
        false
    }

    /// Copies between devices of this backend without staging in host memory, where it can.
    fn peer_copy(&self) -> Option<&dyn PeerCopy>;

    /// For the backend that made it: peers recognise each other.
    fn as_any(&self) -> &dyn Any;
}

/// A program made ready for one device.
pub trait CompiledProgram: Send + Sync + fmt::Debug {
    /// The program.
    fn program(&self) -> &Arc<Program>;

    /// For the backend that made it.
    fn as_any(&self) -> &dyn Any;
}

/// One kernel's parameters and state on one device. Dropping it frees its memory.
///
/// Reading and writing may go on beside a batch of *other* instances. A read or write of an
/// instance whose step runs waits for the step's end, for a bounded time.
pub trait KernelInstance: Send + Sync + fmt::Debug {
    /// Size of the state in bytes.
    fn state_bytes(&self) -> u64;

    /// Reads `into.len()` bytes from `offset_bytes`.
    ///
    /// # Errors
    ///
    /// [`TransferError`]: wrong range, a running step, or the device.
    fn read_state(&self, offset_bytes: u64, into: &mut [u8]) -> Result<(), TransferError>;

    /// Writes `from` at `offset_bytes`.
    ///
    /// # Errors
    ///
    /// [`TransferError`]: wrong range, a running step, or the device.
    fn write_state(&self, offset_bytes: u64, from: &[u8]) -> Result<(), TransferError>;

    /// Digests of the state's chunks of `chunk_bytes` bytes, computed on the device
    /// (see [`crate::digest`]).
    ///
    /// # Errors
    ///
    /// [`TransferError`]: a chunk size that is not a positive multiple of 4, a running step, or
    /// the device.
    fn chunk_digests(&self, chunk_bytes: u64) -> Result<Vec<u64>, TransferError>;

    /// For the backend that made it.
    fn as_any(&self) -> &dyn Any;
}

/// Copies between instances on devices of one backend.
pub trait PeerCopy: Send + Sync {
    /// Whether this device can reach `other` now.
    fn reaches(&self, other: &dyn Device) -> bool;

    /// Copies a range of state from one instance to the same range of another, on any devices
    /// that reach each other.
    ///
    /// # Errors
    ///
    /// [`TransferError`]: wrong range, a running step, or either device.
    fn copy_state(
        &self,
        from: &dyn KernelInstance,
        to: &dyn KernelInstance,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Result<(), TransferError>;
}

/// Memory of a device at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceMemory {
    /// Memory that the device has, or its quota, in bytes.
    pub total_bytes: u64,
    /// Memory that is free, in bytes.
    pub available_bytes: u64,
}

/// What an instance is made from.
#[derive(Clone, Copy, Debug)]
pub struct InstanceRequest<'a> {
    /// Parameters, padded or not. Fewer words than the program declares are filled with zeros.
    pub parameters: &'a [u32],
    /// Size of the state: a positive multiple of four.
    pub state_bytes: u64,
    /// What the state holds at first.
    pub initial: InitialState<'a>,
}

/// What the state of a new instance holds.
#[derive(Clone, Copy, Debug)]
pub enum InitialState<'a> {
    /// Zeros.
    Zeroed,
    /// These bytes, as many as the state has.
    Bytes(&'a [u8]),
    /// Anything: the caller writes every byte before the first step.
    Undefined,
}

/// One step of one instance within a batch.
#[derive(Debug)]
pub struct Step {
    /// Whose step.
    pub instance: Arc<dyn KernelInstance>,
    /// The inbox in the ABI's form.
    pub inbox: Vec<u32>,
    /// The outbox in the ABI's form, prepared by the caller, filled by the device.
    pub outbox: Vec<u32>,
    /// How the step ended; [`StepOutcome::NotStarted`] before the batch.
    pub outcome: StepOutcome,
    /// Payloads that are, or are to be, in the memory of a device.
    pub payloads: StepPayloads,
}

impl Step {
    /// A step that has not begun, with these boxes.
    #[must_use]
    pub fn new(instance: Arc<dyn KernelInstance>, inbox: Vec<u32>, outbox: Vec<u32>) -> Self {
        let (outcome, payloads) = (StepOutcome::NotStarted, StepPayloads::default());
        Self { instance, inbox, outbox, outcome, payloads }
    }
}

/// Payloads of a step that are not, or not only, in its boxes.
#[derive(Debug, Default)]
pub struct StepPayloads {
    /// Messages of the inbox without their payload words. Only a device meets any that
    /// [fills them in](Device::takes_device_payloads), or
    /// [reads them in place](Device::reads_payloads_in_place).
    pub received: Vec<ReceivedPayload>,
    /// Payloads that slots of the outbox stand for, which hold only their lengths.
    pub shared: Vec<(u32, Payload)>,
    /// Copies that the device keeps of what the step sent, with the slots of the outbox. The outbox
    /// has the bytes all the same.
    pub kept: Vec<(u32, Arc<dyn DevicePayload>)>,
}

/// A payload that was left out of an inbox.
#[derive(Debug)]
pub struct ReceivedPayload {
    /// Which message of the inbox, from 0.
    pub message: u32,
    /// The payload.
    pub payload: Payload,
    /// How the bytes came; set by the device when the step was applied.
    pub way: Option<PayloadWay>,
}

/// How the bytes of a payload came into a device's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PayloadWay {
    /// From the memory of the same card.
    SameDevice,
    /// From the memory of another device to this one's.
    Direct,
    /// From device to device through a third one.
    Relayed {
        /// The failure domain of the relay, as its [`DeviceInfo`] has it.
        relay: String,
    },
    /// From host memory.
    Host,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    /// The step did not begin: state and boxes are as before.
    NotStarted,
    /// The step ran, and its outbox is in host memory.
    Applied,
    /// The step stopped its kernel; the state is undefined, the outbox worthless.
    Faulted(StepFault),
    /// Nobody knows. The kernel is lost; the step is never silently repeated.
    Unknown,
}
