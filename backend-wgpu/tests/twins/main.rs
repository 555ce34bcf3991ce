//! The forms of every shipped program on the same inputs, right and wrong ones: a host device and a
//! wgpu device must agree in every word of state, every message, every flag and every fault.
#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

#[path = "../support/drivers.rs"]
mod drivers;

mod counter;
mod diffuse;
mod diffuse_cases;
mod pair;
mod token_ring;

use std::process::Command;

/// The loader of Vulkan reads its settings once a process, so another driver needs another process:
/// this program again, which then runs the tests above.
#[test]
fn forms_agree_on_swiftshader_too() {
    let Some(manifest) = drivers::swiftshader() else { return };
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--skip", "forms_agree_on_swiftshader_too"])
        .env("VK_DRIVER_FILES", manifest)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    eprintln!("{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}", output.status);
    assert!(!text.contains("running 0 tests"));
}
