//! Software Vulkan drivers for machines without a GPU driver: what can be installed is, what cannot
//! is named. Without them the tests that need a driver are skipped and say so.

use std::path::{Path, PathBuf};

use crate::command::Command;

/// Where the Vulkan loader looks for driver manifests on Linux.
const MANIFEST_FOLDERS: [&str; 4] = [
    "/etc/vulkan/icd.d",
    "/usr/local/etc/vulkan/icd.d",
    "/usr/local/share/vulkan/icd.d",
    "/usr/share/vulkan/icd.d",
];

/// SwiftShader's manifest, where Debian's browser puts it.
const SWIFTSHADER: &str = "/usr/lib/chromium/vk_swiftshader_icd.json";

/// A driver that the tests use, the Debian package that brings it, and what is skipped without it.
struct Driver {
    name: &'static str,
    package: &'static str,
    is_there: fn() -> bool,
    skipped: &'static str,
}

const DRIVERS: [Driver; 2] = [
    Driver {
        name: "a Vulkan driver",
        package: "mesa-vulkan-drivers",
        is_there: has_driver,
        skipped: "the tests on wgpu devices",
    },
    Driver {
        name: "SwiftShader",
        package: "chromium-common",
        is_there: has_swiftshader,
        skipped: "the tests on a second Vulkan driver",
    },
];

/// Sees to the drivers. Never fails: a machine without them can run every other test.
pub(super) fn run(root: &Path) {
    if !cfg!(target_os = "linux") {
        return; // elsewhere drivers come with the system
    }
    let mut is_updated = false;
    for driver in DRIVERS.iter().filter(|driver| !(driver.is_there)()) {
        println!("{} is missing", driver.name);
        let installed = install(driver.package, root, &mut is_updated);
        if !(driver.is_there)() {
            let Driver { skipped, package, .. } = driver;
            let reason = installed.err().unwrap_or_else(|| "it brings no driver here".to_owned());
            println!("{skipped} are skipped: {package}: {reason}");
        }
    }
}

/// Installs a Debian package where that can be done without asking anybody.
fn install(package: &str, root: &Path, is_updated: &mut bool) -> Result<(), String> {
    let apt = |arguments: &[&str]| {
        Command::new("apt-get", arguments, root).with("DEBIAN_FRONTEND", "noninteractive")
    };
    let wanted = apt(&["install", "-y", "-qq", "--no-install-recommends", package]);
    let is_root = Command::new("id", &["-u"], root).output().is_ok_and(|id| id.trim() == "0");
    if !is_root || !apt(&["--version"]).succeeds() {
        return Err(format!("install it as root, on Debian with `{wanted}`"));
    }
    if !*is_updated {
        apt(&["update", "-qq"]).run()?;
        *is_updated = true;
    }
    wanted.run()
}

/// Whether the loader would find a driver: named by the environment, or by a manifest.
fn has_driver() -> bool {
    let named = ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"];
    named.iter().any(|name| std::env::var_os(name).is_some())
        || MANIFEST_FOLDERS.iter().any(|folder| has_manifest(&PathBuf::from(folder)))
}

fn has_swiftshader() -> bool {
    Path::new(SWIFTSHADER).exists()
}

fn has_manifest(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries
        .flatten()
        .any(|entry| entry.path().extension().is_some_and(|extension| extension == "json"))
}

#[cfg(test)]
mod tests {
    use super::has_manifest;

    #[test]
    fn a_manifest_is_a_json_file_in_the_folder() {
        let folder = std::env::temp_dir().join(format!("hopwise-manifests-{}", std::process::id()));
        assert!(!has_manifest(&folder), "no folder");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("readme.txt"), "").unwrap();
        assert!(!has_manifest(&folder));
        std::fs::write(folder.join("lvp_icd.json"), "{}").unwrap();
        assert!(has_manifest(&folder));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
