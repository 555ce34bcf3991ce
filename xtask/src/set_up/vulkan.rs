//! Software Vulkan drivers, which work on every machine: what can be installed is, what cannot is
//! named. Without a driver the tests that need one are skipped and say so.
//!
//! A card's driver is no reason to do without: its manifest lies there without the card too.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::packages::Packages;

#[cfg(test)]
mod tests;

/// Where the Vulkan loader looks for driver manifests on Linux.
const MANIFEST_FOLDERS: [&str; 4] = [
    "/etc/vulkan/icd.d",
    "/usr/local/etc/vulkan/icd.d",
    "/usr/local/share/vulkan/icd.d",
    "/usr/share/vulkan/icd.d",
];

/// A driver that the tests use.
struct Driver {
    name: &'static str,
    /// Begins the names of its manifests.
    manifest: &'static str,
    /// Where its manifests are, besides where a variable says.
    folders: &'static [&'static str],
    /// Name other manifests instead; the first that is set counts.
    variables: &'static [&'static str],
    /// The Debian package that brings it.
    package: &'static str,
    /// What may be skipped without it.
    skipped: &'static str,
}

const DRIVERS: [Driver; 2] = [
    Driver {
        name: "lavapipe, Mesa's software Vulkan driver,",
        manifest: "lvp_icd",
        folders: &MANIFEST_FOLDERS,
        variables: &["VK_DRIVER_FILES", "VK_ICD_FILENAMES"],
        package: "mesa-vulkan-drivers",
        skipped: "the tests on wgpu devices are skipped unless another Vulkan driver works",
    },
    Driver {
        name: "SwiftShader",
        manifest: "vk_swiftshader_icd",
        folders: &["/usr/lib/chromium"],
        variables: &["HOPWISE_SWIFTSHADER"],
        package: "chromium-common",
        skipped: "the tests on a second Vulkan driver are skipped",
    },
];

/// Whether a driver can be used.
#[derive(Debug, PartialEq, Eq)]
enum Presence {
    Found,
    Missing,
    /// This variable names nothing that exists; installing would not help.
    Misnamed(&'static str),
}

/// Sees to the drivers. Never fails: a machine without them can run every other test.
pub(super) fn run(packages: &mut Packages<'_>) {
    if !cfg!(target_os = "linux") {
        return; // elsewhere drivers come with the system
    }
    let presence = |driver: &Driver| driver.presence(|name| env::var_os(name));
    for driver in &DRIVERS {
        let Driver { name, package, skipped, .. } = driver;
        match presence(driver) {
            Presence::Found => {}
            Presence::Misnamed(variable) => {
                println!("{variable} names no file that exists: {skipped}; unset it or correct it");
            }
            Presence::Missing => {
                println!("{name} is missing");
                let installed = packages.install(package);
                if presence(driver) != Presence::Found {
                    let reason = installed.err();
                    let reason = reason.unwrap_or_else(|| "it brings no driver here".to_owned());
                    println!("{skipped}: {package}: {reason}");
                }
            }
        }
    }
}

impl Driver {
    /// Looks where the loader or the tests will.
    fn presence(&self, value: impl Fn(&str) -> Option<OsString>) -> Presence {
        let set =
            |name: &&'static str| Some((*name, value(name).filter(|value| !value.is_empty())?));
        if let Some((variable, paths)) = self.variables.iter().find_map(set) {
            let is_there = env::split_paths(&paths).any(|path| path.exists());
            return if is_there { Presence::Found } else { Presence::Misnamed(variable) };
        }
        let is_there = self.folders.iter().any(|folder| self.has_manifest(Path::new(folder)));
        if is_there { Presence::Found } else { Presence::Missing }
    }

    fn has_manifest(&self, folder: &Path) -> bool {
        let Ok(entries) = std::fs::read_dir(folder) else { return false };
        entries.flatten().map(|entry| PathBuf::from(entry.file_name())).any(|file| {
            let is_json = file.extension().is_some_and(|extension| extension == "json");
            is_json && file.to_string_lossy().starts_with(self.manifest)
        })
    }
}
