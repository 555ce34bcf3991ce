//! The law for backends, with state that goes through staging buffers as on GPUs with memory of
//! their own.

use hopwise_backend_wgpu::{WgpuBackend, WgpuOptions};
use hopwise_core::conformance::SMALL_MEMORY_BYTES;

hopwise_core::conformance_suite!(|| {
    let options = WgpuOptions::new().with_memory_bytes(SMALL_MEMORY_BYTES);
    WgpuBackend::new(options.with_staged_transfers())
});
