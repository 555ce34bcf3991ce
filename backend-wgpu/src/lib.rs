//! hopwise on Vulkan, Metal and DX12 through wgpu.
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

#![forbid(unsafe_code)]

pub use adapter::{Access, Adapter, AdapterKind, Api};
pub use probe::{ApiOutcome, Missing, Probe, probe};

mod adapter;
mod prelude;
mod probe;
mod source;
mod vulkan_loader;
