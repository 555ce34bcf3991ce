//! Live migration of kernels between the devices of a fleet.
//!
//! # The life of a migration
//!
//! 1. **Reserve**: the coordinator keeps room on the target.
//! 2. **Twin**: the program is compiled on the target, and a paused instance created.
//! 3. **Hold**: the kernel stops at its next step boundary. Its mailbox goes on accepting, and every
//!    other kernel goes on running.
//! 4. **Copy**: the state goes over in chunks: from device to device where both are of one backend
//!    and reach each other, otherwise through a few staging buffers, one thread reading ahead while
//!    another writes. No second copy of the whole state is ever in host memory.
//! 5. **Verify**: each device digests its own memory, chunk by chunk. Chunks that differ are copied
//!    once more through host memory; what differs then ends the migration.
//! 6. **Hand over**: the coordinator's map and the kernel's home change, the kernel goes on at the
//!    target, the source's instance is freed.
//!
//! Rounds of pre-copy will go between 2 and 3, a journal's record between 5 and 6, and schedules for
//! many kernels above [`KernelMigrator::execute_plans`].
//!
//! # Guarantees
//!
//! - A kernel has one owner at every instant: the source before the hand-over, then the target.
//! - A failure, a cancel or a timeout before the hand-over leaves the kernel running on the source
//!   with its state and all its messages; twin, hold and reservation are released.
//! - The loss of the target is such a failure. The loss of the source makes the kernel lost: it stays
//!   mapped, and its messages are kept.
//! - Once the hand-over has succeeded nothing goes back.
//! - An error says what was being done, why it failed and what is left ([`MigrationError`]).
//! - The protocol is the pure state machine of [`machine`]; everything else performs its actions.
//!
//! ```
//! use hopwise_core::fleet::{Fleet, KernelSpec};
//! use hopwise_core::host::{HostBackend, HostOptions};
//! use hopwise_core::program::Program;
//! use hopwise_migrate::KernelMigrator;
//!
//! let idle = Program::builder("idle").in_port("in", 4).host(|_| Ok(())).build()?;
//! let backend = HostBackend::new(HostOptions::new(2));
//! let fleet = Fleet::builder().backend(&backend)?.build()?;
//! let kernel = fleet.launch(KernelSpec::new("idle", idle, 1 << 20))?;
//! let source = fleet.status(&kernel).ok_or("launched")?.device;
//!
//! let report = KernelMigrator::new(&fleet).migrate(&kernel, 1 - source)?;
//! assert_eq!((report.source, report.target, report.bytes), (source, 1 - source, 1 << 20));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod machine;

mod execute;

mod drain;
mod park;

mod error;
mod options;
mod report;

pub use drain::DrainReport;
pub use error::{MigrationCause, MigrationError, Remains};
pub use execute::{KernelMigrator, PlanOutcome};
pub use options::{
    CancelToken, DEFAULT_CHUNK_BYTES, DEFAULT_HOLD_TIMEOUT, DEFAULT_STAGING_BUFFERS,
    DEFAULT_TOTAL_TIMEOUT, MAX_CHUNK_BYTES, MigrationOptions,
};
pub use report::{MigrationReport, Phase, PhaseTimes, TransferPath};
