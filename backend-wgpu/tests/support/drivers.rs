//! A second, independent software driver, where the machine has one.

use std::path::{Path, PathBuf};

/// Where a driver's description is looked for: a variable for any machine, then Debian's package.
const VARIABLE: &str = "HOPWISE_SWIFTSHADER";
const DEBIAN: &str = "/usr/lib/chromium/vk_swiftshader_icd.json";

/// The file that makes the loader of Vulkan take `SwiftShader`. Says so where there is none.
pub(crate) fn swiftshader() -> Option<PathBuf> {
    let named = std::env::var_os(VARIABLE).map_or_else(|| DEBIAN.into(), PathBuf::from);
    if Path::new(&named).exists() {
        return Some(named);
    }
    eprintln!(
        "not tried on SwiftShader: {} is missing; install chromium-common (Debian), or set \
         {VARIABLE} to a vk_swiftshader_icd.json",
        named.display()
    );
    None
}
