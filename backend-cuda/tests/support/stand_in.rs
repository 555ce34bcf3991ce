//! Builds the stand-in libraries, loads them, and controls them.
//!
//! The libraries live below the target folder's temporary part, and are compiled when their sources
//! have changed. What a machine has is fixed when the driver is loaded: one test binary, one machine.

#![allow(dead_code, reason = "every test file uses its own part")]

use std::collections::hash_map::DefaultHasher;
use std::env;
use std::ffi::{CString, c_char, c_int};
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, id};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use hopwise_backend_cuda::{CudaBackend, CudaOptions, Libraries};
use libloading::Library;

/// The libraries, ready to be loaded.
#[derive(Clone, Debug)]
pub(crate) struct StandIn {
    pub(crate) folder: PathBuf,
}

/// The stand-in's sources, and what each becomes.
const LIBRARIES: [(&str, &str, &[&str]); 3] = [
    ("cuda/lib.rs", "libcuda.so", &["libcuda.so.1"]),
    ("nvrtc.rs", "libnvrtc.so", &["libnvrtc.so.12"]),
    ("nvml.rs", "libnvidia-ml.so", &["libnvidia-ml.so.1"]),
];

/// Lets the tests of a binary take turns, where they count calls or make them fail: under `cargo test`
/// they share a process, and with it the stand-in.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    // A test that failed leaves nothing behind that this guards.
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StandIn {
    /// Describes the machine, for this process, and loads the driver. Every test of a binary names
    /// the same machine.
    pub(crate) fn with_machine(machine: &str) -> &'static Self {
        static READY: OnceLock<(StandIn, String)> = OnceLock::new();
        let (ready, described) = READY.get_or_init(|| {
            let ready = Self::build();
            // SAFETY: tests read the environment through the standard library only, whose lock this
            // call takes; the libraries are loaded after it, by whoever waits for this cell.
            unsafe {
                env::set_var("HOPWISE_STAND_IN", machine);
                env::set_var("HOPWISE_STAND_IN_FOLDER", &ready.folder);
            }
            (ready, machine.to_owned())
        });
        assert_eq!(described, machine, "a process has one machine");
        ready
    }

    /// Compiles the libraries unless that was done.
    pub(crate) fn build() -> Self {
        let sources =
            Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../backend-cuda/tests/stand_in"));
        let mut hasher = DefaultHasher::new();
        hash_files(sources, &mut hasher);
        hash_files(&sources.with_file_name("shim"), &mut hasher);
        let name = format!("stand-in-{:016x}", hasher.finish());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        if !folder.exists() {
            // Test processes start together: each compiles for itself, the first to end is kept.
            let own = folder.with_extension(id().to_string());
            fs::create_dir_all(&own).expect("the target folder can be written");
            for (source, library, names) in LIBRARIES {
                compile(&sources.join(source), &own.join(library));
                for name in names {
                    fs::copy(own.join(library), own.join(name)).expect("the folder can be written");
                }
            }
            if fs::rename(&own, &folder).is_err() {
                fs::remove_dir_all(&own).expect("the folder is ours");
            }
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Where the libraries are.
    pub(crate) fn libraries(&self) -> Libraries {
        let [driver, nvrtc, nvml] = ["libcuda.so", "libnvrtc.so", "libnvidia-ml.so.1"];
        let names = |name: &str| vec![self.path(name)];
        // SAFETY: the libraries were compiled here; their functions have the driver's signatures.
        unsafe { Libraries::custom(names(driver), names(nvrtc), names(nvml)) }
    }

    /// A backend on the stand-in.
    pub(crate) fn backend(&self, options: CudaOptions) -> CudaBackend {
        CudaBackend::with_libraries(options, &self.libraries())
    }

    /// Changes the machine; the commands are in `stand_in/cuda/faults.rs`.
    pub(crate) fn control(&self, command: &str) {
        let text = CString::new(command).expect("a command has no zero byte");
        type Control = unsafe extern "C" fn(*const c_char) -> c_int;
        let driver = self.driver();
        // SAFETY: the stand-in was compiled here, and its function has this signature.
        let control = unsafe { driver.get::<Control>("hw_stand_in_control") };
        // SAFETY: the text ends with a zero and lives until the call returns.
        let result = unsafe { control.expect("the stand-in can be controlled")(text.as_ptr()) };
        assert_eq!(result, 0, "the stand-in does not understand `{command}`");
    }

    /// How often a function was called, or how much of a kind is alive.
    pub(crate) fn count(&self, name: &str) -> u64 {
        let text = CString::new(name).expect("a name has no zero byte");
        type Count = unsafe extern "C" fn(*const c_char) -> u64;
        let driver = self.driver();
        // SAFETY: the stand-in was compiled here, and its function has this signature.
        let count = unsafe { driver.get::<Count>("hw_stand_in_count") };
        // SAFETY: the text ends with a zero and lives until the call returns.
        unsafe { count.expect("the stand-in counts")(text.as_ptr()) }
    }

    /// The driver, which stays loaded: what it knows would go with it.
    pub(crate) fn driver(&self) -> &'static Library {
        static LOADED: OnceLock<Library> = OnceLock::new();
        LOADED.get_or_init(|| {
            // SAFETY: the library was compiled here and has no initialisers.
            unsafe { Library::new(self.folder.join("libcuda.so")) }.expect("the stand-in is there")
        })
    }
}

fn compile(source: &Path, library: &Path) {
    let status = Command::new(env::var("RUSTC").unwrap_or_else(|_| "rustc".into()))
        .args(["--edition=2024", "--crate-type=cdylib", "-O", "-Cpanic=abort", "-Awarnings", "-o"])
        .args([library, source])
        .status()
        .expect("rustc can be started");
    assert!(status.success(), "{} does not compile", source.display());
}

fn hash_files(folder: &Path, hasher: &mut DefaultHasher) {
    let entries = fs::read_dir(folder).expect("the sources can be read");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("it is there").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            hash_files(&path, hasher);
        } else {
            fs::read(&path).expect("the sources can be read").hash(hasher);
        }
    }
}
