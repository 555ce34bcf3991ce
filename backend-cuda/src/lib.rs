//! hopwise on the CUDA driver.
//!
//! [`CudaBackend`] implements the traits of the core: it lists GPUs and MIG instances by UUID, opens
//! them as one or more logical devices, and runs kernels whose programs have a CUDA C or PTX form
//! (`docs/kernel-abi.md` describes the prelude that they are joined with, `docs/backends.md` what this
//! backend can and cannot, and that it was not run on a real GPU yet).
//!
//! The crate links against nothing of CUDA: it opens the driver's libraries when it is asked
//! to, so that it builds and runs on a machine without them. [`probe()`] says what is there, and
//! for what is missing which names were tried and what to do about it.
//!
//! | library | what it is for | without it |
//! |---|---|---|
//! | CUDA driver (`libcuda.so.1`, `nvcuda.dll`) | running kernels | no CUDA device |
//! | NVRTC (`libnvrtc.so`, `nvrtc64_*.dll`) | compiling CUDA C | only programs that carry PTX |
//! | NVML (`libnvidia-ml.so.1`, `nvml.dll`) | links, health, memory | links are unknown |
//!
//! ```
//! let probe = hopwise_backend_cuda::probe();
//! if probe.device_count() == 0 {
//!     println!("{probe}"); // what is missing, and the remedy
//! }
//! ```

pub use backend::CudaBackend;
pub use device::CudaDevice;
pub use driver::{CudaVersion, DriverOutcome, DriverStatus, SYMBOLS as DRIVER_SYMBOLS};
pub use facts::GpuFacts;
pub use graph::GraphTrial;
pub use library::{Attempt, Libraries, LibraryOutcome};
pub use nvrtc::SYMBOLS as NVRTC_SYMBOLS;
pub use options::{
    CudaOptions, DEFAULT_PAYLOAD_MEMORY_BYTES, DEFAULT_PAYLOADS_FROM_BYTES, DEFAULT_TRANSFER_WAIT,
    DEFAULT_WAIT_LIMIT, GpuFilter, GraphUse, ResidentUse,
};
pub use prelude::{assemble, assemble_resident};
pub use probe::{Probe, probe};
pub use raw::RawCopy;
pub use verify::{PeerVerdict, verdict_line, verify_pair, verify_pair_in_child};

mod backend;

mod facts;
mod options;

mod driver;
mod library;
pub mod nvml;
mod nvrtc;
mod probe;

mod context;
mod gpu;
mod module;
mod owned;
mod stream;

mod compiler;
mod prelude;
mod program;

mod batch;
mod core;
mod device;
mod digester;
mod graph;
mod instance;
mod payload;
mod peer;
mod raw;
mod resident;
mod transfer;
mod verify;
mod watch;
