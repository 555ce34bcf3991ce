//! `cargo xtask gpu-check`: builds the command with its check of devices, and runs it here or packs
//! it for a machine that has a GPU and no Rust.

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::Command;
use crate::metadata::Metadata;

#[cfg(test)]
mod tests;

/// What lies in the archive: a folder of this name with the program, the script, the licences.
const FOLDER: &str = "hopwise-gpu-check";

/// The licences that go with the program.
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// Run on the other machine.
const SCRIPT: &str = include_str!("gpu_check/run.sh");

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
struct Order<'a> {
    /// The archive to pack; without one the check runs here.
    carry: Option<&'a str>,
    /// What is passed on to `hopwise gpu-check`.
    passed_on: Vec<&'a str>,
}

/// Builds, then runs or packs. `arguments` are those behind `gpu-check`.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let order = Order::read(arguments)?;
    let build = ["build", "--release", "--package", "hopwise", "--features", "gpu-check"];
    let build = Command::cargo(&build, root);
    println!("{build}");
    build.run()?;
    let target = Metadata::read(root)?.target_directory().join("release");
    let program = target.join(format!("hopwise{}", std::env::consts::EXE_SUFFIX));
    match order.carry {
        Some(archive) => pack(root, &target, &program, archive),
        None => {
            let words = [&["gpu-check"], &order.passed_on[..]].concat();
            Command::new(&program.display().to_string(), &words, root).run()
        }
    }
}

impl<'a> Order<'a> {
    fn read(arguments: &[&'a str]) -> Result<Self, String> {
        match *arguments {
            ["--carry", archive] if archive.ends_with(".tar.gz") => {
                Ok(Self { carry: Some(archive), passed_on: Vec::new() })
            }
            ["--carry", ..] => Err("write --carry FILE.tar.gz and nothing else: what is to be \
                                    checked is said on the other machine"
                .to_owned()),
            _ => Ok(Self { carry: None, passed_on: arguments.to_vec() }),
        }
    }
}

/// Packs the program with what it needs on the other machine. A path is taken from the root.
fn pack(root: &Path, target: &Path, program: &Path, archive: &str) -> Result<(), String> {
    let folder = target.join(FOLDER);
    let name = program.file_name().ok_or("the program has no name")?;
    let cannot = |error| format!("cannot fill {}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(cannot)?;
    fs::copy(program, folder.join(name)).map_err(cannot)?;
    for licence in LICENCES {
        fs::copy(root.join(licence), folder.join(licence)).map_err(cannot)?;
    }
    let script = folder.join("run.sh");
    fs::write(&script, SCRIPT).map_err(cannot)?;
    make_executable(&script).map_err(cannot)?;
    let archive: PathBuf = root.join(archive);
    let (archive, from) = (archive.display().to_string(), target.display().to_string());
    Command::new("tar", &["-czf", &archive, "-C", &from, FOLDER], root).run()?;
    println!("{archive} is packed; on the machine with the GPU:");
    println!("  tar -xzf FILE.tar.gz && {FOLDER}/run.sh");
    println!("it needs the NVIDIA driver and NVRTC there, and a C library no older than here");
    Ok(())
}

#[cfg(unix)]
fn make_executable(file: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(file, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> std::io::Result<()> {
    Ok(()) // whether a file can be run is no matter of permissions there
}
