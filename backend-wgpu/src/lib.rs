//! hopwise on Vulkan, Metal and DX12 through wgpu.
//!
//! [`WgpuBackend`] implements the traits of the core: it lists adapters, opens them as one or more
//! logical devices, and runs kernels whose programs have a WGSL form (`docs/kernel-abi.md` describes
//! the prelude that they are joined with, `docs/backends.md` what this backend can and cannot).
//!
//! [`probe()`] lists the adapters of this machine, each once, and says for every API without an
//! adapter what is missing and what to do about it. It needs no GPU and no driver.
//!
//! ```
//! let probe = hopwise_backend_wgpu::probe();
//! for adapter in probe.adapters() {
//!     println!("{adapter}");
//! }
//! if probe.adapters().is_empty() {
//!     println!("{probe}"); // what is missing, and the remedy
//! }
//! ```
//!
//! OpenGL is not built in: it would show the same cards a second time, with fewer abilities.

#![deny(unsafe_code)]

pub use adapter::{Access, Adapter, AdapterKind, Api};
pub use backend::WgpuBackend;
pub use device::WgpuDevice;
pub use facts::{AdapterFacts, ESTIMATED_MEMORY_BYTES};
pub use memory::AdapterMemory;
pub use options::{AdapterFilter, DEFAULT_TRANSFER_WAIT, DEFAULT_WAIT_LIMIT, WgpuOptions};
pub use probe::{ApiOutcome, Missing, Probe, probe};

mod backend;

mod adapter;
mod facts;
mod memory;
mod options;
mod probe;
mod sysfs;
mod vulkan_loader;

mod batch;
mod core;
mod device;
mod grid;
mod instance;
mod limits;
mod program;

mod prelude;
mod source;

mod digester;
mod driver;
mod mapped;
mod mapping;
mod ready;
mod segmented;
mod staging;
