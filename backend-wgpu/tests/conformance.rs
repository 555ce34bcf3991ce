//! The law for backends, on every adapter of this machine and on a second software driver.

#[path = "support/drivers.rs"]
mod drivers;

use std::process::Command;

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
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program)
        .args(["--skip", "swiftshader_passes_the_suite_too"])
        .env("VK_DRIVER_FILES", manifest)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    eprintln!("{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}", output.status);
    assert!(!text.contains("running 0 tests"));
}
