//! What can go wrong in a fleet, one type per operation.

use std::time::Duration;

use thiserror::Error;

use crate::coordinator::CoordinatorError;
use crate::error::{CompileError, DeviceError, InstanceError, StepFault, TransferError};
use crate::id::KernelId;
use crate::message::Message;

/// Why a receiver takes no message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DeliveryReason {
    /// The receiving kernel stopped.
    #[error("kernel `{kernel}` has stopped: {fault}")]
    Failed {
        /// The kernel.
        kernel: KernelId,
        /// Why it stopped.
        fault: Box<StepFault>,
    },
    /// The receiving kernel's device is gone.
    #[error("kernel `{kernel}` is lost: {cause}")]
    Lost {
        /// The kernel.
        kernel: KernelId,
        /// What took its device down.
        cause: String,
    },
    /// The receiving kernel was removed.
    #[error("kernel `{kernel}` was removed")]
    Removed {
        /// The kernel.
        kernel: KernelId,
    },
    /// The receiving endpoint was dropped.
    #[error("endpoint `{endpoint}` was closed")]
    EndpointClosed {
        /// The endpoint's name.
        endpoint: String,
    },
    /// The sender's out-port is bound to no channel.
    #[error("out-port `{port}` of kernel `{kernel}` is bound to no channel")]
    Unbound {
        /// The sending kernel.
        kernel: KernelId,
        /// The port.
        port: String,
    },
    /// Its deadline passed before a step took it.
    #[error("the message's deadline has passed")]
    Expired,
    /// The fleet is shutting down.
    #[error("the fleet is shutting down")]
    ShuttingDown,
}

/// A host's send of several messages that ended early. What was not sent is still in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{left} messages not sent: {reason}")]
pub struct SendAllError {
    /// How many are left.
    pub left: usize,
    /// Why the first of them was not sent.
    #[source]
    pub reason: SendReason,
}

/// A host's send that did not happen. The message comes back.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("message not sent: {reason}")]
pub struct SendError {
    /// The message.
    pub message: Message,
    /// Why it was not sent.
    #[source]
    pub reason: SendReason,
}

/// Why a host's send did not happen.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendReason {
    /// The mailbox is full, and stayed so until the deadline.
    #[error("the receiver's mailbox is full")]
    Full,
    /// The receiver takes no message.
    #[error(transparent)]
    Closed(#[from] DeliveryReason),
    /// The message is larger than the port allows.
    #[error("{length_bytes} bytes for in-port `{port}`, which allows {max_message_bytes}")]
    TooLarge {
        /// The port.
        port: String,
        /// Bytes of the message.
        length_bytes: usize,
        /// What the port allows.
        max_message_bytes: u32,
    },
}

/// A receive that gave no message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// Nothing came in time.
    #[error("no message came in time")]
    Empty,
    /// Nothing more will come.
    #[error(transparent)]
    Closed(DeliveryReason),
}

/// A kernel could not be launched. Nothing of it is left.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// No device takes it.
    #[error("kernel `{kernel}` could not be placed: {source}")]
    Place {
        /// The kernel's name.
        kernel: String,
        /// The coordinator's refusal.
        source: CoordinatorError,
    },
    /// No device of the fleet can ever run it.
    #[error("no device can run kernel `{kernel}`: {reasons}")]
    Unsuitable {
        /// The kernel's name.
        kernel: String,
        /// Each device with its reason.
        reasons: String,
    },
    /// The program does not compile on the chosen device.
    #[error("kernel `{kernel}` on device {device}: {source}")]
    Compile {
        /// The kernel's name.
        kernel: String,
        /// The device.
        device: usize,
        /// What is wrong.
        source: CompileError,
    },
    /// The instance could not be created on the chosen device.
    #[error("kernel `{kernel}` on device {device}: {source}")]
    Instance {
        /// The kernel's name.
        kernel: String,
        /// The device.
        device: usize,
        /// What is wrong.
        source: InstanceError,
    },
    /// The kernel's description makes no sense.
    #[error("kernel `{kernel}`: {reason}")]
    Spec {
        /// The kernel's name.
        kernel: String,
        /// What is wrong, and what is allowed.
        reason: String,
    },
}

/// Ports could not be connected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// There is no such kernel.
    #[error("kernel `{kernel}` is not in this fleet")]
    UnknownKernel {
        /// The kernel.
        kernel: KernelId,
    },
    /// The program has no such port.
    #[error(
        "kernel `{kernel}` (program `{program}`) has no {direction}-port `{port}`; it has: {ports}"
    )]
    UnknownPort {
        /// The kernel.
        kernel: KernelId,
        /// Its program.
        program: String,
        /// `in` or `out`.
        direction: &'static str,
        /// The name that was asked for.
        port: String,
        /// The names that exist.
        ports: String,
    },
    /// The out-port may send more than the in-port takes.
    #[error(
        "out-port `{from}` sends up to {sends_bytes} bytes, in-port `{to}` takes {takes_bytes}; declare a larger in-port"
    )]
    TooLarge {
        /// The sender, as `kernel.port`.
        from: String,
        /// The receiver, as `kernel.port`.
        to: String,
        /// The out-port's largest message.
        sends_bytes: u32,
        /// The in-port's largest message.
        takes_bytes: u32,
    },
}

/// An operation on a running kernel failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FleetError {
    /// There is no such kernel.
    #[error("kernel `{kernel}` is not in this fleet")]
    UnknownKernel {
        /// The kernel.
        kernel: KernelId,
    },
    /// There is no such device.
    #[error("device {device} is not in this fleet; it has: {devices}")]
    UnknownDevice {
        /// The index.
        device: usize,
        /// The indices that exist.
        devices: String,
    },
    /// The device still has kernels.
    #[error("device {device} still has {kernels} kernels; migrate, park or remove them first")]
    DeviceInUse {
        /// The index.
        device: usize,
        /// Kernels mapped to it.
        kernels: usize,
    },
    /// The kernel has stopped.
    #[error("kernel `{kernel}` has stopped: {fault}")]
    Failed {
        /// The kernel.
        kernel: KernelId,
        /// Why.
        fault: StepFault,
    },
    /// The kernel's device is gone.
    #[error("kernel `{kernel}` is lost: {cause}")]
    Lost {
        /// The kernel.
        kernel: KernelId,
        /// What took its device down.
        cause: String,
    },
    /// The kernel is held by somebody else.
    #[error("kernel `{kernel}` is held already")]
    HeldAlready {
        /// The kernel.
        kernel: KernelId,
    },
    /// A step of the kernel did not end in time.
    #[error("a step of kernel `{kernel}` did not end within {waited:?}")]
    StepTooLong {
        /// The kernel.
        kernel: KernelId,
        /// How long was waited.
        waited: Duration,
    },
    /// The coordinator refused.
    #[error(transparent)]
    Coordinator(#[from] CoordinatorError),
    /// The program does not compile on the device.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The instance could not be created on the device.
    #[error(transparent)]
    Instance(#[from] InstanceError),
    /// State could not be moved.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A twin or hold belongs to another kernel or request.
    #[error("{what} belongs to another kernel or request")]
    Mismatch {
        /// What does.
        what: &'static str,
    },
}
