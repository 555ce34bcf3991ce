//! The forms of every shipped program on the same inputs, right and wrong ones: a host device and a
//! wgpu device must agree in every word of state, every message, every flag and every fault.

#[path = "../support/drivers.rs"]
mod drivers;

use hopwise_backend_wgpu::{WgpuBackend, WgpuOptions};

/// Memory of a wgpu device: room for the largest state.
const MEMORY_BYTES: u64 = 512 << 20;

hopwise_core::twins_suite!(|| WgpuBackend::new(WgpuOptions::new().with_memory_bytes(MEMORY_BYTES)));

/// The loader of Vulkan reads its settings once a process, so another driver needs another process:
/// this program again, which then runs the tests above.
#[test]
fn forms_agree_on_swiftshader_too() {
    let Some(manifest) = drivers::swiftshader() else { return };
    let result = drivers::run_on(&manifest, drivers::SWIFTSHADER, &[]);
    assert!(result.is_ok(), "a test fails there, see above");
}

/// In such a process the driver must be the one that was named: with none every test would pass.
#[test]
fn the_driver_that_was_named_is_listed() {
    drivers::assert_named_is_listed();
}
