//! Where the Vulkan loader is looked for, to say what is missing when Vulkan shows no adapter.
//!
//! wgpu opens the loader itself and does not say why it could not. This module only looks for the
//! file in the folders in which the dynamic linker looks, and opens nothing.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

#[cfg(test)]
mod tests;

/// The file that wgpu opens on this system.
pub(crate) const FILE_NAME: &str = if cfg!(windows) { "vulkan-1.dll" } else { "libvulkan.so.1" };

/// The folders in which the dynamic linker looks.
pub(crate) fn folders() -> Vec<PathBuf> {
    let variable = if cfg!(windows) { "PATH" } else { "LD_LIBRARY_PATH" };
    let listed = env::var_os(variable).unwrap_or_default();
    let mut folders: Vec<PathBuf> = env::split_paths(&listed).collect();
    if cfg!(windows) {
        let root = env::var_os("SystemRoot").unwrap_or_else(|| "C:\\Windows".into());
        folders.insert(0, Path::new(&root).join("System32"));
    } else {
        folders.extend(configured_folders(Path::new("/etc/ld.so.conf"), 0));
        folders.extend(["/lib64", "/usr/lib64", "/lib", "/usr/lib"].map(PathBuf::from));
    }
    folders.retain(|folder| folder.is_dir());
    let mut unique = Vec::new();
    for folder in folders {
        if !unique.contains(&folder) {
            unique.push(folder);
        }
    }
    unique
}

/// The first of `folders` that holds the loader gives its path.
pub(crate) fn find(folders: &[PathBuf]) -> Option<PathBuf> {
    folders.iter().map(|folder| folder.join(FILE_NAME)).find(|file| file.exists())
}

/// The folders named by a file in the form of `ld.so.conf`, and by the files that it includes.
fn configured_folders(file: &Path, depth: usize) -> Vec<PathBuf> {
    let Ok(text) = fs::read_to_string(file) else { return Vec::new() };
    let parent = file.parent().unwrap_or(Path::new("/"));
    let mut folders = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        match line.strip_prefix("include ") {
            // A file that includes itself must not be followed for ever.
            Some(pattern) if depth < 4 => {
                let files = included_files(&parent.join(pattern.trim()));
                folders.extend(files.iter().flat_map(|file| configured_folders(file, depth + 1)));
            }
            Some(_) => {}
            None if line.starts_with('/') => folders.push(line.into()),
            None => {}
        }
    }
    folders
}

/// The files that an include names; a star is understood in the last part, as `*.conf`.
fn included_files(pattern: &Path) -> Vec<PathBuf> {
    let name = pattern.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some((before, after)) = name.split_once('*') else { return vec![pattern.into()] };
    let folder = pattern.parent().unwrap_or(Path::new("/"));
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| {
            entry.file_name().to_str().is_some_and(|name| {
                name.strip_prefix(before).is_some_and(|rest| rest.ends_with(after))
            })
        })
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}
