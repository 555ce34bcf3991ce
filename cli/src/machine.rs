//! A machine from the files that were named, from standard input, or from this machine itself.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use hopwise_topology::{
    DiscoverOptions, Format, Machine, Reading, discover, read_bytes, read_path,
};

use crate::failure::Failure;

mod drivers;

/// Bytes of standard input, at most; one more than a file may have, so that a longer one is told.
const MOST_INPUT_BYTES: u64 = (64 << 20) + 1;

/// A machine, and where it comes from.
pub(crate) struct Described {
    pub(crate) machine: Machine,
    /// The formats that were read, each once.
    pub(crate) formats: Vec<Format>,
    /// What went wrong on looking at this machine.
    pub(crate) problems: Vec<String>,
}

impl Described {
    fn new(readings: &[Reading], problems: Vec<String>) -> Self {
        let mut formats: Vec<Format> = readings.iter().map(|reading| reading.format).collect();
        formats.sort_unstable();
        formats.dedup();
        Self { machine: Machine::merge(readings), formats, problems }
    }

    /// The names of the formats, joined by `+`.
    pub(crate) fn format(&self) -> String {
        let names: Vec<_> = self.formats.iter().map(|format| format.name()).collect();
        names.join("+")
    }

    /// All that should be looked at, each with its line.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let read = self.machine.warnings().iter().map(ToString::to_string);
        self.problems.iter().cloned().chain(read).collect()
    }
}

/// Reads the files; looks at this machine if there are none.
pub(crate) fn read(files: &[PathBuf], format: Option<Format>) -> Result<Described, Failure> {
    if files.is_empty() {
        return Ok(this_machine(None));
    }
    let mut readings = Vec::new();
    for file in files {
        readings.extend(read_one(file, format)?);
    }
    Ok(Described::new(&readings, Vec::new()))
}

/// This machine, with what was measured on it.
pub(crate) fn read_with(measured: Reading) -> Described {
    this_machine(Some(measured))
}

fn this_machine(measured: Option<Reading>) -> Described {
    let mut found = discover(&DiscoverOptions::default());
    found.readings.extend(drivers::reading());
    match drivers::management_reading() {
        Ok(reading) => found.readings.extend(reading),
        Err(problem) => found.problems.push(problem),
    }
    found.readings.extend(measured);
    Described::new(&found.readings, found.problems)
}

fn read_one(file: &Path, format: Option<Format>) -> Result<Vec<Reading>, Failure> {
    if file != Path::new("-") {
        return read_path(file, format).map_err(|error| Failure::failed(error.to_string()));
    }
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .take(MOST_INPUT_BYTES)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::failed(format!("cannot read standard input: {error}")))?;
    read_bytes(&bytes, format).map_err(|error| Failure::failed(format!("standard input: {error}")))
}
