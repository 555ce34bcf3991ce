//! A stand-in for NVRTC: a test fixture of hopwise, and no compiler of CUDA C. It gives the source,
//! behind a shim of the built-ins, to a C++ compiler, and the image holds the path of what that made.
//! Diagnostics are put into the form of NVRTC's.

#![allow(non_snake_case, clippy::missing_safety_doc, reason = "the names are NVRTC's")]

use std::collections::hash_map::DefaultHasher;
use std::env;
use std::ffi::{CStr, c_char, c_int};
use std::fmt::Write;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::process::{Command, id};
use std::sync::atomic::{AtomicU64, Ordering};

const SHIM: &str = include_str!("../shim/cuda_shim.h");
const MAGIC: &str = "HOPWISE-STAND-IN\n";
const ARCHITECTURES: [c_int; 5] = [70, 80, 90, 100, 120];

const SUCCESS: c_int = 0;
const INVALID_PROGRAM: c_int = 4;
const INVALID_OPTION: c_int = 5;
const COMPILATION: c_int = 6;

/// A program of NVRTC's.
pub struct Program {
    source: String,
    log: Vec<u8>,
    image: Vec<u8>,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) -> c_int {
    unsafe {
        major.write(12);
        minor.write(8);
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetNumSupportedArchs(count: *mut c_int) -> c_int {
    unsafe { count.write(5) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetSupportedArchs(architectures: *mut c_int) -> c_int {
    unsafe { architectures.cast::<[c_int; 5]>().write(ARCHITECTURES) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcCreateProgram(
    program: *mut *mut Program,
    source: *const c_char,
    _name: *const c_char,
    _headers: c_int,
    _texts: *const *const c_char,
    _names: *const *const c_char,
) -> c_int {
    let source = unsafe { CStr::from_ptr(source) }.to_string_lossy().into_owned();
    let new = Box::new(Program { source, log: vec![0], image: Vec::new() });
    unsafe { program.write(Box::into_raw(new)) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcCompileProgram(
    program: *mut Program,
    count: c_int,
    options: *const *const c_char,
) -> c_int {
    let Some(program) = (unsafe { program.as_mut() }) else { return INVALID_PROGRAM };
    let options = (0..usize::try_from(count).unwrap_or(0))
        .map(|at| unsafe { CStr::from_ptr(options.add(at).read()) }.to_string_lossy());
    let known = ["--gpu-architecture=", "--std=c++17", "--generate-line-info", "--diag-suppress="];
    if !options.into_iter().all(|option| known.iter().any(|known| option.starts_with(known))) {
        return INVALID_OPTION;
    }
    match compile(&program.source) {
        Ok(path) => {
            program.image = format!("{MAGIC}{}\0", path.display()).into_bytes();
            SUCCESS
        }
        Err(log) => {
            program.log = format!("{log}\0").into_bytes();
            COMPILATION
        }
    }
}

/// The library made of a source. The same source is compiled once, by whatever process.
fn compile(source: &str) -> Result<PathBuf, String> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let folder = env::var_os("HOPWISE_STAND_IN_FOLDER").map_or_else(env::temp_dir, PathBuf::from);
    let mut hasher = DefaultHasher::new();
    (SHIM, source).hash(&mut hasher);
    let library = folder.join(format!("kernel-{:016x}.so", hasher.finish()));
    if library.exists() {
        return Ok(library);
    }
    let stem = format!("kernel-{}-{}", id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let [code, made] = ["cpp", "so"].map(|ending| folder.join(format!("{stem}.{ending}")));
    let text = format!("{SHIM}\n#line 1 \"program.cu\"\n{source}");
    fs::write(&code, text).map_err(|error| format!("{}: {error}", code.display()))?;
    let flags = ["-std=c++17", "-O2", "-shared", "-fPIC", "-fwrapv", "-fno-strict-aliasing"];
    let quiet = ["-w", "-fno-diagnostics-show-caret", "-fno-diagnostics-show-option", "-o"];
    let output = Command::new(env::var("CXX").unwrap_or_else(|_| "g++".to_owned()))
        .args(flags)
        .args(quiet)
        .args([&made, &code])
        .output()
        .map_err(|error| format!("the C++ compiler does not start: {error}"))?;
    if !output.status.success() {
        return Err(log(&String::from_utf8_lossy(&output.stderr)));
    }
    fs::rename(&made, &library).map_err(|error| format!("{}: {error}", made.display()))?;
    Ok(library)
}

/// `program.cu:3:9: error: what` becomes `program.cu(3): error: what`, with a caret below.
fn log(diagnostics: &str) -> String {
    let mut log = String::new();
    for line in diagnostics.lines() {
        let Some((place, what)) = line.split_once(": error: ") else { continue };
        let mut parts = place.rsplitn(3, ':');
        let column = parts.next().and_then(|text| text.parse::<usize>().ok()).unwrap_or(1);
        let (line, file) = (parts.next().unwrap_or("1"), parts.next().unwrap_or("program.cu"));
        let caret = " ".repeat(column + 1);
        let _ = writeln!(log, "{file}({line}): error: {what}\n\n{caret}^\n");
    }
    log
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetProgramLogSize(program: *mut Program, size: *mut usize) -> c_int {
    unsafe { size.write((*program).log.len()) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetProgramLog(program: *mut Program, into: *mut c_char) -> c_int {
    let log = unsafe { &(*program).log };
    unsafe { into.copy_from_nonoverlapping(log.as_ptr().cast(), log.len()) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetPTXSize(program: *mut Program, size: *mut usize) -> c_int {
    unsafe { nvrtcGetCUBINSize(program, size) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetPTX(program: *mut Program, into: *mut c_char) -> c_int {
    unsafe { nvrtcGetCUBIN(program, into) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetCUBINSize(program: *mut Program, size: *mut usize) -> c_int {
    unsafe { size.write((*program).image.len()) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetCUBIN(program: *mut Program, into: *mut c_char) -> c_int {
    let image = unsafe { &(*program).image };
    unsafe { into.copy_from_nonoverlapping(image.as_ptr().cast(), image.len()) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcDestroyProgram(program: *mut *mut Program) -> c_int {
    drop(unsafe { Box::from_raw(program.read()) });
    SUCCESS
}
