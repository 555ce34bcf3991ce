//! A second, independent software driver, where the machine has one.

#![allow(dead_code, reason = "every test file uses its own part")]

use std::path::{Path, PathBuf};
use std::process::Command;

use hopwise_backend_wgpu::{WgpuBackend, WgpuOptions};

/// A word of every name that `SwiftShader` gives its adapters.
pub(crate) const SWIFTSHADER: &str = "SwiftShader";

/// Where a driver's description is looked for: a variable for any machine, then Debian's package.
const VARIABLE: &str = "HOPWISE_SWIFTSHADER";
const DEBIAN: &str = "/usr/lib/chromium/vk_swiftshader_icd.json";

/// Says which adapter a process of tests must find.
const NAMED: &str = "HOPWISE_TEST_DRIVER";

/// Whether this process is one that [`run_on`] started.
pub(crate) fn is_run_on() -> bool {
    std::env::var_os(NAMED).is_some()
}

/// The file that makes the loader of Vulkan take `SwiftShader`. Says so where there is none.
pub(crate) fn swiftshader() -> Option<PathBuf> {
    if is_run_on() {
        return None;
    }
    let named = std::env::var_os(VARIABLE).map_or_else(|| DEBIAN.into(), PathBuf::from);
    if Path::new(&named).exists() {
        return Some(named);
    }
    eprintln!(
        "skipped, not tried on SwiftShader: {} is missing; install chromium-common (Debian), or \
         set {VARIABLE} to a vk_swiftshader_icd.json",
        named.display()
    );
    None
}

/// Runs tests of this program again in a process that has this driver alone. Gives what the process printed if a test fails there, or none ran.
pub(crate) fn run_on(manifest: &Path, driver: &str, arguments: &[&str]) -> Result<(), String> {
    let program = std::env::current_exe().expect("a test knows its program");
    let output = Command::new(program)
        .args(arguments)
        .env("VK_DRIVER_FILES", manifest)
        .env(NAMED, driver)
        .output()
        .expect("a test can be started again");
    let printed = String::from_utf8_lossy(&output.stdout);
    let printed = format!("{printed}{}", String::from_utf8_lossy(&output.stderr));
    eprintln!("{printed}");
    let checked = printed.contains("the_driver_that_was_named_is_listed ... ok");
    if output.status.success() && checked { Ok(()) } else { Err(printed) }
}

/// Fails in a process that was to have a certain driver and does not have it, or has another too.
pub(crate) fn assert_named_is_listed() {
    let Ok(driver) = std::env::var(NAMED) else { return };
    let backend = WgpuBackend::new(WgpuOptions::new());
    let names: Vec<_> = backend.adapters().map(|facts| facts.adapter.name.clone()).collect();
    let is_named = !names.is_empty() && names.iter().all(|name| name.contains(&driver));
    assert!(is_named, "{driver} is not among the adapters, or not alone: {names:?}");
}
