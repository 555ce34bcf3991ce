//! hopwise on the CUDA driver.
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

pub use driver::{CudaVersion, DriverOutcome, DriverStatus};
pub use library::{Attempt, Libraries, LibraryOutcome};
pub use probe::{Probe, probe};

mod driver;
mod library;
mod probe;
