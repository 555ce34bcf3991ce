//! NVRTC, the compiler of CUDA C: its functions, looked up before any is called.
//!
//! As in `driver/functions.rs`, types and declarations are cudarc's and the calls are our own.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;

use cudarc::nvrtc::sys;
use libloading::Library;

use crate::library::{Attempt, Opened, open};

/// Writes down the functions once: as a table, as the list of their symbols, and as a comparison
/// with cudarc's declarations.
macro_rules! functions {
    ($(fn $name:ident($($type:ty),* $(,)?);)*) => {
        /// Functions of an NVRTC that is loaded.
        #[expect(non_snake_case, reason = "the names are NVRTC's")]
        #[derive(Debug)]
        struct Functions {
            $($name: unsafe extern "C" fn($($type),*) -> c_int,)*
        }

        /// What NVRTC's library must export. One that lacks any of these is not used.
        pub const SYMBOLS: &[&str] = &[$(stringify!($name)),*];

        $(const _: unsafe fn($($type),*) -> sys::nvrtcResult = sys::$name;)*

        impl Functions {
            /// Takes the functions from a library that has been found to export [`SYMBOLS`].
            fn of(library: &Library) -> Option<Self> {
                Some(Self {
                    $($name: {
                        // SAFETY: whoever named the library vouched that what it exports under
                        // NVRTC's names has NVRTC's signatures, and those are cudarc's.
                        let symbol = unsafe {
                            library.get::<unsafe extern "C" fn($($type),*) -> c_int>(
                                stringify!($name),
                            )
                        };
                        *symbol.ok()?
                    },)*
                })
            }
        }
    };
}

functions! {
    fn nvrtcVersion(*mut c_int, *mut c_int);
    fn nvrtcGetNumSupportedArchs(*mut c_int);
    fn nvrtcGetSupportedArchs(*mut c_int);
    fn nvrtcCreateProgram(
        *mut sys::nvrtcProgram, *const c_char, *const c_char, c_int, *const *const c_char,
        *const *const c_char,
    );
    fn nvrtcCompileProgram(sys::nvrtcProgram, c_int, *const *const c_char);
    fn nvrtcGetProgramLogSize(sys::nvrtcProgram, *mut usize);
    fn nvrtcGetProgramLog(sys::nvrtcProgram, *mut c_char);
    fn nvrtcGetPTXSize(sys::nvrtcProgram, *mut usize);
    fn nvrtcGetPTX(sys::nvrtcProgram, *mut c_char);
    fn nvrtcGetCUBINSize(sys::nvrtcProgram, *mut usize);
    fn nvrtcGetCUBIN(sys::nvrtcProgram, *mut c_char);
    fn nvrtcDestroyProgram(*mut sys::nvrtcProgram);
}

/// What `nvrtcCompileProgram` returns for a wrong source: `NVRTC_ERROR_COMPILATION`.
const COMPILATION_FAILED: c_int = 6;

/// An NVRTC that is loaded.
#[derive(Debug)]
pub(crate) struct Nvrtc {
    functions: Functions,
    /// The architectures that it compiles for, as in `sm_90`, from the oldest.
    architectures: Vec<u32>,
    /// Where it was found, and its version.
    name: String,
}

/// What is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Machine code for this architecture.
    Cubin(u32),
    /// PTX for this architecture, which the driver compiles further.
    Ptx(u32),
}

/// Why there is no image.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The source is wrong: NVRTC's log.
    Source(String),
    /// A call failed for another reason.
    Call(String),
}

impl Nvrtc {
    /// Opens the first of `names` that is an NVRTC.
    pub(crate) fn open(names: &[String]) -> Result<Self, Vec<Attempt>> {
        let Opened { name, library } = open(names, SYMBOLS)?;
        let functions = Functions::of(&library).expect("opening NVRTC checked its symbols");
        std::mem::forget(library); // it has exit handlers of its own, so its code must stay
        let mut nvrtc = Self { functions, architectures: Vec::new(), name };
        match nvrtc.supported() {
            Ok((version, architectures)) => {
                nvrtc.architectures = architectures;
                nvrtc.name = format!("{} ({version})", nvrtc.name);
                Ok(nvrtc)
            }
            Err(error) => Err(vec![Attempt { name: nvrtc.name, error }]),
        }
    }

    /// Where it was found, and its version.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Architectures that it compiles for, from the oldest.
    pub(crate) fn architectures(&self) -> &[u32] {
        &self.architectures
    }

    fn supported(&self) -> Result<(String, Vec<u32>), String> {
        let (mut major, mut minor, mut count) = (0, 0, 0);
        // SAFETY: the numbers live until the calls return.
        check("nvrtcVersion", unsafe {
            (self.functions.nvrtcVersion)(&raw mut major, &raw mut minor)
        })?;
        // SAFETY: as above.
        check("nvrtcGetNumSupportedArchs", unsafe {
            (self.functions.nvrtcGetNumSupportedArchs)(&raw mut count)
        })?;
        let mut found = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: the function fills in as many numbers as it said before.
        check("nvrtcGetSupportedArchs", unsafe {
            (self.functions.nvrtcGetSupportedArchs)(found.as_mut_ptr())
        })?;
        let mut found: Vec<u32> = found.into_iter().filter_map(|n| u32::try_from(n).ok()).collect();
        found.sort_unstable();
        Ok((format!("{major}.{minor}"), found))
    }

    /// Compiles a source. Its file is called `name` in the log.
    pub(crate) fn compile(
        &self,
        source: &str,
        name: &str,
        target: Target,
    ) -> Result<Vec<u8>, Failure> {
        let text = |text: &str| {
            CString::new(text)
                .map_err(|_| Failure::Source(format!("{name}(1): error: a zero byte\n")))
        };
        let architecture = match target {
            Target::Cubin(number) => format!("--gpu-architecture=sm_{number}"),
            Target::Ptx(number) => format!("--gpu-architecture=compute_{number}"),
        };
        let (source, name) = (text(source)?, text(name)?);
        let options =
            [architecture.as_str(), "--std=c++17", "--generate-line-info", "--diag-suppress=177"];
        let options = options.map(text).into_iter().collect::<Result<Vec<_>, _>>()?;
        let options: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        let program = self.create(&source, &name)?;
        let count = c_int::try_from(options.len()).expect("options are few");
        // SAFETY: the program is valid, and the options live until the call returns.
        let status =
            unsafe { (self.functions.nvrtcCompileProgram)(program.raw, count, options.as_ptr()) };
        if status == COMPILATION_FAILED {
            return Err(Failure::Source(program.log()?));
        }
        check("nvrtcCompileProgram", status)?;
        match target {
            Target::Cubin(_) => program.image(
                "nvrtcGetCUBIN",
                self.functions.nvrtcGetCUBINSize,
                self.functions.nvrtcGetCUBIN,
            ),
            Target::Ptx(_) => program.image(
                "nvrtcGetPTX",
                self.functions.nvrtcGetPTXSize,
                self.functions.nvrtcGetPTX,
            ),
        }
    }

    fn create(&self, source: &CStr, name: &CStr) -> Result<Compilation<'_>, Failure> {
        let mut raw = ptr::null_mut();
        // SAFETY: the texts end with a zero and live until the call returns, as does `raw`.
        check("nvrtcCreateProgram", unsafe {
            (self.functions.nvrtcCreateProgram)(
                &raw mut raw,
                source.as_ptr(),
                name.as_ptr(),
                0,
                ptr::null(),
                ptr::null(),
            )
        })?;
        Ok(Compilation { functions: &self.functions, raw })
    }
}

/// A program of NVRTC's, destroyed when dropped.
struct Compilation<'a> {
    functions: &'a Functions,
    raw: sys::nvrtcProgram,
}

type SizeOf = unsafe extern "C" fn(sys::nvrtcProgram, *mut usize) -> c_int;
type Get = unsafe extern "C" fn(sys::nvrtcProgram, *mut c_char) -> c_int;

impl Compilation<'_> {
    fn log(&self) -> Result<String, Failure> {
        let (size, get) =
            (self.functions.nvrtcGetProgramLogSize, self.functions.nvrtcGetProgramLog);
        let bytes = self.image("nvrtcGetProgramLog", size, get)?;
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    fn image(&self, call: &str, size: SizeOf, get: Get) -> Result<Vec<u8>, Failure> {
        let mut length = 0;
        // SAFETY: the program is valid; `length` lives until the call returns.
        check(call, unsafe { size(self.raw, &raw mut length) })?;
        let mut bytes = vec![0_u8; length];
        // SAFETY: the function fills in as many bytes as it said before.
        check(call, unsafe { get(self.raw, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }
}

impl Drop for Compilation<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is valid and not used afterwards. Destroying fails only for one that
        // is not valid.
        unsafe { (self.functions.nvrtcDestroyProgram)(&raw mut self.raw) };
    }
}

fn check(call: &str, status: c_int) -> Result<(), String> {
    if status == 0 { Ok(()) } else { Err(format!("{call} failed: NVRTC error {status}")) }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Call(message)
    }
}
