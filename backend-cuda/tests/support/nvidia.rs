//! NVIDIA's own compilers: NVRTC, opened at a path, and ptxas. Neither needs a driver or a GPU.

use std::env;
use std::ffi::{CString, c_char, c_int, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;

use libloading::Library;

/// Where the compilers are.
#[derive(Debug)]
pub(crate) struct Compilers {
    pub(crate) nvrtc: PathBuf,
    ptxas: PathBuf,
}

/// Finds the compilers by the variables that `cargo xtask test` sets. Says so where they are missing,
/// and fails where they are required.
pub(crate) fn compilers() -> Option<Compilers> {
    let file = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_file());
    let (nvrtc, ptxas) = (file("HOPWISE_NVRTC"), file("HOPWISE_PTXAS"));
    if let (Some(nvrtc), Some(ptxas)) = (nvrtc, ptxas) {
        return Some(Compilers { nvrtc, ptxas });
    }
    let missing = "HOPWISE_NVRTC and HOPWISE_PTXAS name no files; `cargo xtask test` fetches both";
    let are_required = env::var_os("HOPWISE_REQUIRE_NVIDIA_COMPILERS").is_some();
    assert!(!are_required, "NVIDIA's compilers are required: {missing}");
    eprintln!("skipped: {missing}");
    None
}

/// What ptxas says of one kernel.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) kernel: String,
    pub(crate) stack_bytes: u32,
    pub(crate) spill_bytes: u32,
}

impl Compilers {
    /// Assembles PTX and reads what each kernel takes.
    pub(crate) fn assemble(&self, ptx: &[u8], architecture: u32, name: &str) -> Vec<Usage> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let file = folder.join(format!("{name}-{architecture}-{}.ptx", std::process::id()));
        fs::write(&file, ptx).expect("the target folder can be written");
        let output = Command::new(&self.ptxas)
            .args(["-v", &format!("-arch=sm_{architecture}"), "-o", "/dev/null"])
            .arg(&file)
            .output()
            .expect("ptxas can be started");
        fs::remove_file(&file).expect("the file is ours");
        let report = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name} for sm_{architecture}: {report}");
        usages(&report)
    }
}

/// Reads lines such as `Compiling entry function 'count' for 'sm_90'`, and behind each of them `0 bytes
/// stack frame, 0 bytes spill stores, 0 bytes spill loads`.
pub(crate) fn usages(report: &str) -> Vec<Usage> {
    let mut usages: Vec<Usage> = Vec::new();
    for line in report.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let kernel = rest.split('\'').next().unwrap_or_default().to_owned();
            // What a line does not tell counts as too much.
            let most = u32::MAX;
            usages.push(Usage { kernel, stack_bytes: most, spill_bytes: most });
        }
        let Some(usage) = usages.last_mut() else { continue };
        let before = |word: &str| {
            let (number, _) = line.split_once(word)?;
            number.split_whitespace().last()?.parse::<u32>().ok()
        };
        if let Some(bytes) = before(" bytes stack frame") {
            usage.stack_bytes = bytes;
        }
        let spills = (before(" bytes spill stores"), before(" bytes spill loads"));
        if let (Some(stores), Some(loads)) = spills {
            usage.spill_bytes = stores + loads;
        }
    }
    usages
}

/// What NVRTC 12.9 says of sm_70 whatever the source is.
const OLD: &str = "Architectures prior to '<compute/sm>_75' are deprecated";

type Program = *mut c_void;
type Create = unsafe extern "C" fn(
    *mut Program,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type Get = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;

/// NVRTC, by the few functions of `nvrtc.h` that a test needs.
pub(crate) struct Nvrtc {
    library: Library,
}

impl Nvrtc {
    pub(crate) fn open(path: &Path) -> Self {
        // SAFETY: the library is NVIDIA's compiler, which the set-up checked by its digest, or which
        // the person who runs the tests named.
        let library = unsafe { Library::new(path) }.expect("NVRTC can be loaded");
        Self { library }
    }

    /// Compiles to PTX with the backend's options. Gives the log where that says anything, be it a
    /// warning.
    pub(crate) fn ptx(&self, source: &str, architecture: u32) -> Result<Vec<u8>, String> {
        let text = |text: &str| CString::new(text).expect("a source has no zero byte");
        let (source, name) = (text(source), text("program.cu"));
        let architecture = format!("--gpu-architecture=compute_{architecture}");
        let quiet = "--diag-suppress=177";
        let options = [&architecture, "--std=c++17", "--generate-line-info", quiet].map(text);
        let options = options.each_ref().map(|option| option.as_ptr());
        let count = c_int::try_from(options.len()).expect("options are few");
        let mut program = ptr::null_mut();
        // SAFETY: the types are those of nvrtc.h; the texts end with a zero and live until the calls
        // return; the program is used between its creation and its end only.
        unsafe {
            let (create, compile) =
                (self.find::<Create>("nvrtcCreateProgram"), "nvrtcCompileProgram");
            let (source, name) = (source.as_ptr(), name.as_ptr());
            let made = create(&raw mut program, source, name, 0, ptr::null(), ptr::null());
            assert_eq!(made, 0, "NVRTC takes any source");
            let status = self.find::<Compile>(compile)(program, count, options.as_ptr());
            let log = self.text(program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog");
            let log = String::from_utf8_lossy(&log);
            let told: Vec<_> = log.lines().filter(|line| !line.contains(OLD)).collect();
            let ptx = if status == 0 && told.is_empty() {
                Ok(self.text(program, "nvrtcGetPTXSize", "nvrtcGetPTX"))
            } else {
                Err(format!("status {status}: {}", told.join("\n")))
            };
            self.find::<Destroy>("nvrtcDestroyProgram")(&raw mut program);
            ptx
        }
    }

    /// # Safety
    ///
    /// The program must be one of NVRTC's, and the functions a size and the text of this size.
    unsafe fn text(&self, program: Program, size: &str, get: &str) -> Vec<u8> {
        let mut length = 0;
        // SAFETY: as the caller promises; the text is as long as NVRTC said, with a zero at its end.
        unsafe {
            assert_eq!(self.find::<Size>(size)(program, &raw mut length), 0, "{size}");
            let mut bytes = vec![0_u8; length];
            assert_eq!(self.find::<Get>(get)(program, bytes.as_mut_ptr().cast()), 0, "{get}");
            bytes.truncate(length.saturating_sub(1));
            bytes
        }
    }

    /// # Safety
    ///
    /// `T` must be the type that nvrtc.h gives the function.
    unsafe fn find<T: Copy>(&self, name: &str) -> T {
        // SAFETY: as the caller promises.
        let found = unsafe { self.library.get::<T>(name) };
        *found.unwrap_or_else(|error| panic!("NVRTC lacks {name}: {error}"))
    }
}
