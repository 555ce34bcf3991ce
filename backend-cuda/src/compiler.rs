//! Compiles programs for an architecture, each once, and says what is wrong in their own lines.

use std::collections::HashMap;
use std::sync::Arc;

use hopwise_core::device_info::{BackendKind, ComputeCapability};
use hopwise_core::error::{CompileError, DeviceError};
use hopwise_core::program::Program;
use parking_lot::Mutex;

use crate::library::Attempt;
use crate::nvrtc::{Failure, Nvrtc, Target};
use crate::prelude::{self, PRELUDE_FILE, PROGRAM_FILE};

#[cfg(test)]
mod tests;

/// What the driver loads: machine code, or PTX with a zero at its end.
pub(crate) type Image = Arc<[u8]>;

/// The compiler of all devices of a backend, and what it has compiled.
#[derive(Debug)]
pub(crate) struct Compiler {
    nvrtc: Result<Nvrtc, Vec<Attempt>>,
    /// By the whole source and the architecture; options are always the same.
    images: Mutex<HashMap<(String, ComputeCapability), Image>>,
}

impl Compiler {
    /// Opens NVRTC under one of `names`. Without it only programs that carry PTX can be run.
    pub(crate) fn new(names: &[String]) -> Self {
        Self { nvrtc: Nvrtc::open(names), images: Mutex::default() }
    }

    /// What a device of this capability loads for a program.
    pub(crate) fn program(
        &self,
        program: &Program,
        capability: ComputeCapability,
    ) -> Result<Image, CompileError> {
        match (program.cuda_c(), program.ptx()) {
            (Some(_), Some(ptx)) if self.nvrtc.is_err() => Ok(image_of_ptx(ptx)),
            (Some(source), _) => {
                let source = prelude::assemble(program, source);
                self.compile(&source, capability).map_err(|failure| match failure {
                    Failure::Source(log) => source_error(program.name(), &log),
                    Failure::Call(message) => DeviceError::Driver { message }.into(),
                })
            }
            (None, Some(ptx)) => Ok(image_of_ptx(ptx)),
            (None, None) => Err(CompileError::NoForm {
                program: program.name().to_owned(),
                backend: BackendKind::Cuda,
                forms: program.forms(),
            }),
        }
    }

    /// A program's code for a kernel that stays on the GPU; `None` where it cannot be compiled, which
    /// is no error: the kernel is launched for each step then.
    pub(crate) fn resident(
        &self,
        program: &Program,
        capability: ComputeCapability,
    ) -> Option<Image> {
        let source = prelude::assemble_resident(program, program.cuda_c()?);
        self.compile(&source, capability).ok()
    }

    /// The digester's own code, which needs no NVRTC.
    pub(crate) fn digest(&self, capability: ComputeCapability) -> Result<Image, DeviceError> {
        let can_compile = self.nvrtc.as_ref().is_ok_and(|nvrtc| target(nvrtc, capability).is_ok());
        if !can_compile {
            return Ok(image_of_ptx(include_str!("digest.ptx")));
        }
        let source = include_str!("digest.cu");
        self.compile(source, capability).map_err(|failure| match failure {
            Failure::Source(message) | Failure::Call(message) => DeviceError::Driver { message },
        })
    }

    fn compile(&self, source: &str, capability: ComputeCapability) -> Result<Image, Failure> {
        let nvrtc = self.nvrtc.as_ref().map_err(|attempts| Failure::Call(missing(attempts)))?;
        let key = (source.to_owned(), capability);
        if let Some(known) = self.images.lock().get(&key) {
            return Ok(Arc::clone(known));
        }
        // Two threads may compile the same; the first to end has its work kept.
        let target = target(nvrtc, capability)?;
        let image: Image = nvrtc.compile(source, PROGRAM_FILE, target)?.into();
        Ok(Arc::clone(self.images.lock().entry(key).or_insert(image)))
    }
}

/// The text of a program that was compiled ahead of time, as the driver wants it.
fn image_of_ptx(ptx: &str) -> Image {
    let mut bytes = ptx.as_bytes().to_vec();
    bytes.push(0);
    bytes.into()
}

fn missing(attempts: &[Attempt]) -> String {
    let tried: Vec<_> = attempts.iter().map(ToString::to_string).collect();
    format!(
        "NVRTC, which compiles CUDA C, is missing ({}); install the CUDA toolkit's NVRTC, or give \
         the program a PTX form",
        tried.join("; ")
    )
}

/// Machine code where NVRTC knows the generation, since no version of the driver can be too old for
/// its PTX then; else PTX of the newest architecture that the device can run.
fn target(nvrtc: &Nvrtc, capability: ComputeCapability) -> Result<Target, Failure> {
    let wanted = capability.major * 10 + capability.minor;
    let known = nvrtc.architectures();
    let Some(newest) = known.iter().copied().filter(|known| *known <= wanted).max() else {
        return Err(Failure::Call(format!(
            "{} does not compile for compute capability {capability}; it can for sm_{} and newer: \
             install an older NVRTC",
            nvrtc.name(),
            known.first().copied().unwrap_or(0)
        )));
    };
    let is_same_generation = newest / 10 == capability.major;
    Ok(if is_same_generation { Target::Cubin(newest) } else { Target::Ptx(newest) })
}

/// The first error of a log that lies in the program's own text, with its line and column, and what
/// else was found there.
fn source_error(program: &str, log: &str) -> CompileError {
    let errors: Vec<_> = LogEntry::all(log).filter(|entry| entry.is_error).collect();
    let at_end = end_of_source(log);
    let own = errors.iter().find(|entry| entry.file == PROGRAM_FILE).or(at_end.as_ref());
    let Some(first) = own.or(errors.first()) else {
        return CompileError::Source {
            program: program.to_owned(),
            file: PROGRAM_FILE.to_owned(),
            line: 1,
            column: 1,
            message: log.trim().to_owned(),
        };
    };
    let mut message = first.message.clone();
    if errors.len() > 1 {
        message = format!("{message} (the first of {} errors)", errors.len());
    }
    if own.is_none() {
        message = format!(
            "{message}; found in {}, which stands in front of the program: use no names that begin \
             with hw_ or HW_",
            if first.file.is_empty() { PRELUDE_FILE } else { &first.file }
        );
    }
    CompileError::Source {
        program: program.to_owned(),
        file: first.file.clone(),
        line: first.line,
        column: first.column,
        message: format!(
            "{message}; correct the CUDA C here; docs/kernel-abi.md has what the prelude offers"
        ),
    }
}

/// An error at the end of the source, such as a bracket that was never closed. It has no place of its
/// own; a note behind it says which bracket that was.
fn end_of_source(log: &str) -> Option<LogEntry> {
    let message = log.lines().find_map(|line| line.strip_prefix("At end of source: error: "))?;
    let note = LogEntry::all(log).find(|entry| !entry.is_error && entry.file == PROGRAM_FILE)?;
    let message = format!("{message} ({})", note.message);
    Some(LogEntry { is_error: true, message, ..note })
}

/// An entry of NVRTC's log: `program.cu(3): error: what is wrong`, then the line, indented by two,
/// then a caret below the place.
#[derive(Debug, PartialEq, Eq)]
struct LogEntry {
    file: String,
    line: u32,
    column: u32,
    is_error: bool,
    message: String,
}

impl LogEntry {
    fn all(log: &str) -> impl Iterator<Item = Self> {
        let lines: Vec<_> = log.lines().collect();
        (0..lines.len()).filter_map(move |at| Self::read(&lines[at..]))
    }

    fn read(lines: &[&str]) -> Option<Self> {
        let (place, rest) = lines[0].split_once("): ")?;
        let (file, line) = place.rsplit_once('(')?;
        let line = line.parse().ok()?;
        let (severity, message) = rest.split_once(": ")?;
        let is_error = severity.ends_with("error");
        let caret = lines.iter().skip(1).take(3).find_map(|line| {
            let before = line.strip_suffix('^')?;
            before.trim().is_empty().then(|| before.chars().count())
        });
        let column = caret.map_or(1, |before| before.saturating_sub(2) + 1);
        Some(Self {
            file: file.to_owned(),
            line,
            column: u32::try_from(column).unwrap_or(1),
            is_error,
            message: message.to_owned(),
        })
    }
}
