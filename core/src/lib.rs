//! The core of hopwise: the coordinator, the backend traits, kernel-to-kernel messages and the
//! fleet runtime.
//!
//! ```text
//!            Fleet  -- runs kernels, carries messages, holds and hands over
//!              |
//!    MultiGpuCoordinator  -- which kernel is on which device, who has room
//!              |
//!   Backend / Device / KernelInstance  -- what a driver must offer (object-safe)
//! ```
//!
//! Read in this order: [`id`], [`device_info`], [`coordinator`] for those who run their kernels
//! themselves; then [`program`], [`backend`], [`fleet`] for the whole runtime.
//! The bytes that kernels see are described in `docs/kernel-abi.md`.
#![forbid(unsafe_code)]

pub use coordinator::{
    Candidate, CoordinatorError, CoordinatorEvent, DeviceState, DeviceStatus,
    DeviceUnregisterResult, Explanation, Incarnation, KernelActivity, KernelMigrationPlan,
    KernelPriority, LaunchOptions, LoadBalancingStrategy, MigrationEnd, MigrationPriority,
    MigrationRequest, MultiGpuBuilder, MultiGpuConfig, MultiGpuCoordinator, MultiGpuStats,
    Placement, Refusal, RefusalReason, StaleReason,
};
pub use device_info::{BackendKind, ComputeCapability, DeviceIdentity, DeviceInfo};
pub use hopwise_topology::{GpuConnection, GpuTopology, InterconnectType};
pub use id::{ChannelId, KernelId};

pub mod device_info;
pub mod error;
pub mod health;
pub mod id;

pub mod abi;
pub mod digest;
pub mod message;
pub mod program;

pub mod backend;
pub mod calibrate;
pub mod device;
pub mod host;
pub mod implementing;

pub mod coordinator;
pub mod fleet;
pub mod programs;

#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(feature = "conformance")]
pub mod fault;
