//! NVIDIA's compilers, without a driver or a card: NVRTC and ptxas from the wheels that NVIDIA puts on
//! `PyPI`, and a C++ compiler. What cannot be had is named; the tests that need it are skipped then.
//!
//! The wheels are unpacked below the target folder, with their licences, and nowhere else.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::packages::Packages;
use crate::command::Command;

#[cfg(test)]
mod tests;

/// Version of both wheels: the last of CUDA 12, which knows architectures from sm_50 to sm_121.
const VERSION: &str = "12.9.86";

/// What pip is asked for. With these digests it takes no other file, whatever an index offers.
const REQUIREMENTS: &str = "\
nvidia-cuda-nvrtc-cu12==12.9.86 \
--hash=sha256:210cf05005a447e29214e9ce50851e83fc5f4358df8b453155d5e1918094dcb4
nvidia-cuda-nvcc-cu12==12.9.86 \
--hash=sha256:5d6a0d32fdc7ea39917c20065614ae93add6f577d840233237ff08e9a38f58f0
";

/// Makes the tests fail rather than skip where a compiler is missing.
const REQUIRED: &str = "HOPWISE_REQUIRE_NVIDIA_COMPILERS";

const SKIPPED: &str =
    "the tests that compile CUDA C with NVIDIA's compilers are skipped, unless they are required";

/// A compiler: the variable that tells tests where it is, and where it is in a wheel.
struct Compiler {
    variable: &'static str,
    in_wheel: &'static str,
}

const COMPILERS: [Compiler; 2] = [
    Compiler { variable: "HOPWISE_NVRTC", in_wheel: "nvidia/cuda_nvrtc/lib/libnvrtc.so.12" },
    Compiler { variable: "HOPWISE_PTXAS", in_wheel: "nvidia/cuda_nvcc/bin/ptxas" },
];

/// Variables of the environment.
type Environment = Vec<(&'static str, String)>;

/// Sees to the compilers and answers with the variables for the tests. Never fails: a machine without
/// them can run every other test.
pub(super) fn run(root: &Path, target: &Path, packages: &mut Packages<'_>) -> Environment {
    if env::var_os("CXX").is_none() {
        let compiler = Command::new("g++", &["--version"], root);
        if let Err(reason) = packages.provide("g++", &compiler) {
            println!("the tests on a stand-in for the CUDA driver will fail: {reason}");
        }
    }
    match named(|name| env::var_os(name)) {
        Some(Ok(environment)) => return environment,
        Some(Err(problem)) => {
            println!("{problem}: {SKIPPED}");
            return Vec::new();
        }
        None => {}
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        println!("{} are set on x86-64 Linux only: {SKIPPED}", variables());
        return Vec::new();
    }
    let folder = target.join("nvidia").join(VERSION);
    let unpacked = if has_all(&folder) { Ok(()) } else { fetch(root, &folder, packages) };
    match unpacked {
        Ok(()) => environment(&folder),
        Err(reason) => {
            println!("NVIDIA's compilers cannot be fetched: {reason}");
            println!("{SKIPPED}; with the CUDA toolkit, set {} to its own", variables());
            Vec::new()
        }
    }
}

fn variables() -> String {
    COMPILERS.map(|compiler| compiler.variable).join(" and ")
}

/// Compilers that somebody named: all of them, or what is wrong. `None` where nobody did.
fn named(value: impl Fn(&str) -> Option<OsString>) -> Option<Result<Environment, String>> {
    let set = COMPILERS.map(|compiler| {
        (compiler.variable, value(compiler.variable).filter(|value| !value.is_empty()))
    });
    if set.iter().all(|(_, value)| value.is_none()) {
        return None;
    }
    let check = |(variable, value): (&'static str, Option<OsString>)| match value {
        Some(path) if Path::new(&path).is_file() => Ok((variable, path.display().to_string())),
        Some(_) => Err(format!("{variable} names no file; unset it or correct it")),
        None => Err(format!("{variable} is not set; set both of {}, or neither", variables())),
    };
    Some(set.into_iter().map(check).collect::<Result<Vec<_>, _>>().map(required))
}

fn required(mut environment: Environment) -> Environment {
    environment.push((REQUIRED, "1".to_owned()));
    environment
}

fn has_all(folder: &Path) -> bool {
    COMPILERS.iter().all(|compiler| folder.join(compiler.in_wheel).is_file())
}

fn environment(folder: &Path) -> Environment {
    let path = |compiler: &Compiler| folder.join(compiler.in_wheel).display().to_string();
    required(COMPILERS.iter().map(|compiler| (compiler.variable, path(compiler))).collect())
}

/// Downloads and unpacks the wheels. The folder has its name once all of it is there, so that what was
/// cut off is done again.
fn fetch(root: &Path, folder: &Path, packages: &mut Packages<'_>) -> Result<(), String> {
    packages.provide("python3-pip", &Command::new("python3", &["-m", "pip", "--version"], root))?;
    let [parts, new] =
        ["parts", "new"].map(|what| folder.with_file_name(format!("{VERSION}-{what}")));
    for old in [&parts, &new, &folder.to_path_buf()] {
        remove(old)?;
    }
    fs::create_dir_all(&parts).map_err(|error| failed("create", &parts, &error))?;
    let list = parts.join("requirements.txt");
    fs::write(&list, REQUIREMENTS).map_err(|error| failed("write", &list, &error))?;
    let download = download(&list, &parts, root);
    println!("fetching NVRTC and ptxas {VERSION}, 130 MB: {download}");
    download.run().map_err(|error| format!("{error}; check the network, or pip's index"))?;
    for wheel in wheels(&parts)? {
        let [wheel, new] = [&wheel, &new].map(|path| path.display().to_string());
        Command::new("python3", &["-m", "zipfile", "-e", &wheel, &new], root).run()?;
    }
    make_executable(&new.join(COMPILERS[1].in_wheel))?;
    if !has_all(&new) {
        return Err(format!("the wheels {VERSION} hold other files than expected"));
    }
    remove(&parts)?;
    fs::rename(&new, folder).map_err(|error| failed("rename", &new, &error))
}

fn download(list: &Path, into: &Path, root: &Path) -> Command {
    let [list, into] = [list, into].map(|path| path.display().to_string());
    let fixed = ["-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"];
    let exact = ["--require-hashes", "-r", &list, "-d", &into];
    Command::new("python3", &[&fixed[..], &exact].concat(), root)
        .with("PIP_DISABLE_PIP_VERSION_CHECK", "1")
}

fn wheels(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| failed("read", folder, &error))?;
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths.filter(|path| path.extension().is_some_and(|ending| ending == "whl")).collect())
}

fn remove(folder: &Path) -> Result<(), String> {
    if !folder.exists() {
        return Ok(());
    }
    fs::remove_dir_all(folder).map_err(|error| failed("remove", folder, &error))
}

/// Python's unpacking forgets which files are programs.
#[cfg(unix)]
fn make_executable(file: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let all = fs::Permissions::from_mode(0o755);
    fs::set_permissions(file, all).map_err(|error| failed("change", file, &error))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<(), String> {
    Ok(())
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot {what} {}: {error}", path.display())
}
