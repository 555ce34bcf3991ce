//! The law for backends, on every adapter of this machine and on a second software driver.

#[path = "support/drivers.rs"]
mod drivers;

use hopwise_backend_wgpu::{WgpuBackend, WgpuOptions};
use hopwise_core::conformance::SMALL_MEMORY_BYTES;

hopwise_core::conformance_suite!(|| {
    WgpuBackend::new(WgpuOptions::new().with_memory_bytes(SMALL_MEMORY_BYTES))
});

/// The loader of Vulkan reads its settings once a process, so another driver needs another process:
/// this program again, which then runs the suite above.
#[test]
fn swiftshader_passes_the_suite_too() {
    let Some(manifest) = drivers::swiftshader() else { return };
    let result = drivers::run_on(&manifest, drivers::SWIFTSHADER, &[]);
    assert!(result.is_ok(), "a test fails there, see above");
}

/// In such a process the driver must be the one that was named: with none every test would pass.
#[test]
fn the_driver_that_was_named_is_listed() {
    drivers::assert_named_is_listed();
}

#[test]
fn a_manifest_without_a_driver_is_not_taken_for_one_that_passes() {
    if drivers::is_run_on() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let manifest = folder.path().join("broken_icd.json");
    std::fs::write(&manifest, "{}").unwrap();
    let only = ["--exact", "the_driver_that_was_named_is_listed"];
    let failed = drivers::run_on(&manifest, drivers::SWIFTSHADER, &only).unwrap_err();
    assert!(failed.contains("SwiftShader is not among the adapters"), "{failed}");
}
