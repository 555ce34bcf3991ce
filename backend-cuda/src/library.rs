//! Which shared libraries are looked for, and opening the first one that fits.

use std::env;
use std::error::Error;
use std::fmt;
use std::path::Path;

use libloading::Library;

#[cfg(test)]
mod tests;

/// The names under which the three libraries are looked for, in the order in which they are tried.
///
/// A bare name is looked up by the system's own rules (`LD_LIBRARY_PATH` and the linker's cache, or
/// `PATH`); a path is opened as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Libraries {
    pub(crate) driver: Vec<String>,
    pub(crate) nvrtc: Vec<String>,
    pub(crate) nvml: Vec<String>,
}

impl Libraries {
    /// The usual names on this operating system, and those below `CUDA_PATH` or `CUDA_HOME`.
    #[must_use]
    pub fn system() -> Self {
        let toolkit = ["CUDA_PATH", "CUDA_HOME"].iter().find_map(|name| env::var(name).ok());
        if cfg!(windows) {
            Self::windows(toolkit.as_deref())
        } else {
            Self::unix(toolkit.as_deref())
        }
    }

    /// Other names, for a machine that keeps the libraries elsewhere, and for tests.
    ///
    /// # Safety
    ///
    /// Opening a library runs its initialisers. Every library that is found under one of the names
    /// must be sound to load, and whatever it exports under a name of the CUDA driver API, NVRTC or
    /// NVML must have the signature that NVIDIA documents.
    #[must_use]
    pub unsafe fn custom(driver: Vec<String>, nvrtc: Vec<String>, nvml: Vec<String>) -> Self {
        Self { driver, nvrtc, nvml }
    }

    fn unix(toolkit: Option<&str>) -> Self {
        let toolkit = toolkit.unwrap_or("/usr/local/cuda");
        let nvrtc = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"]
            .map(String::from)
            .into_iter()
            .chain([in_folder(toolkit, "lib64/libnvrtc.so")]);
        Self {
            // WSL keeps the driver in a folder that is not always in the linker's cache.
            driver: ["libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1"]
                .map(String::from)
                .to_vec(),
            nvrtc: nvrtc.collect(),
            nvml: ["libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"]
                .map(String::from)
                .to_vec(),
        }
    }

    fn windows(toolkit: Option<&str>) -> Self {
        let names = ["nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "nvrtc64_112_0.dll"];
        let mut nvrtc = names.map(String::from).to_vec();
        for folder in toolkit.into_iter() {
            nvrtc.extend(names.map(|name| in_folder(folder, &format!("bin/x64/{name}"))));
            nvrtc.extend(names.map(|name| in_folder(folder, &format!("bin/{name}"))));
        }
        Self { driver: vec!["nvcuda.dll".into()], nvrtc, nvml: vec!["nvml.dll".into()] }
    }
}

fn in_folder(folder: &str, name: &str) -> String {
    Path::new(folder).join(name).display().to_string()
}

/// Whether a library is there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LibraryOutcome {
    /// It could be opened and exports what it should.
    Found {
        /// The name or path under which it was opened.
        name: String,
    },
    /// No name led to a library that fits.
    Missing {
        /// What was tried, in order, and why each failed.
        attempts: Vec<Attempt>,
    },
}

impl LibraryOutcome {
    /// Whether no library was found.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing { .. })
    }
}

impl fmt::Display for LibraryOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found { name } => write!(f, "found as {name}"),
            Self::Missing { attempts } => write_attempts(f, attempts),
        }
    }
}

/// Writes "missing" and what was tried; names that failed alike share a line.
pub(crate) fn write_attempts(f: &mut fmt::Formatter<'_>, attempts: &[Attempt]) -> fmt::Result {
    f.write_str("missing")?;
    for alike in attempts.chunk_by(|one, next| one.error == next.error) {
        let names: Vec<&str> = alike.iter().map(|attempt| attempt.name.as_str()).collect();
        write!(f, "\n  tried {}: {}", names.join(", "), alike[0].error)?;
    }
    Ok(())
}

/// Where the system looked first for a bare name; `None` where the user set nothing.
pub(crate) fn search_path() -> Option<String> {
    let path = env::var("LD_LIBRARY_PATH").ok()?;
    (cfg!(unix) && !path.is_empty()).then(|| format!("LD_LIBRARY_PATH is {path}"))
}

/// One name that was tried in vain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// The name or path that was tried.
    pub name: String,
    /// What the system said, or which symbol the library lacks.
    pub error: String,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.error)
    }
}

/// A library that was opened, with the name that led to it.
pub(crate) struct Opened {
    pub(crate) name: String,
    pub(crate) library: Library,
}

impl From<Result<Opened, Vec<Attempt>>> for LibraryOutcome {
    fn from(opened: Result<Opened, Vec<Attempt>>) -> Self {
        match opened {
            Ok(opened) => Self::Found { name: opened.name },
            Err(attempts) => Self::Missing { attempts },
        }
    }
}

/// Opens the first of `names` that exists and exports all of `symbols`.
pub(crate) fn open(names: &[String], symbols: &[&str]) -> Result<Opened, Vec<Attempt>> {
    let mut attempts = Vec::new();
    for name in names {
        match open_one(name, symbols) {
            Ok(library) => return Ok(Opened { name: name.clone(), library }),
            Err(error) => attempts.push(Attempt { name: name.clone(), error }),
        }
    }
    Err(attempts)
}

fn open_one(name: &str, symbols: &[&str]) -> Result<Library, String> {
    // SAFETY: the name is one of NVIDIA's, whose initialisers may run in any process, or the caller
    // of `Libraries::custom` vouched for it.
    let library = unsafe { Library::new(name) }.map_err(|error| cause(name, &error))?;
    for symbol in symbols {
        // SAFETY: the symbol is only looked up, never called or read, so its type does not matter.
        let found = unsafe { library.get::<*const ()>(*symbol) };
        if let Err(error) = found {
            return Err(format!("it lacks the symbol {symbol} ({})", cause(name, &error)));
        }
    }
    Ok(library)
}

/// The error's own words are "dlopen failed"; what the system said is its source, which mostly begins
/// with the library's name.
fn cause(name: &str, error: &libloading::Error) -> String {
    let text = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    let without_name = text.strip_prefix(name).and_then(|rest| rest.strip_prefix(": "));
    without_name.map_or_else(|| text.clone(), String::from)
}
