//! Standard output carries results and nothing else; complaints go to standard error.

use std::io::{self, ErrorKind, Write};
use std::{panic, thread};

use serde::Serialize;

use crate::failure::Failure;

/// Prints a result, and ends its last line. A reader that has gone away is no failure.
///
/// # Errors
///
/// [`Failure::Failed`] when standard output cannot be written, because a disk is full.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.trim_end_matches('\n').as_bytes());
    match written.and_then(|()| stdout.write_all(b"\n")).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints exactly one JSON object.
///
/// # Errors
///
/// As [`print()`].
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    print(&json(value)?)
}

/// A result as one JSON object.
///
/// # Errors
///
/// [`Failure::Failed`] when it has a form that JSON cannot express.
pub(crate) fn json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(value)
        .map_err(|error| Failure::failed(format!("cannot write the result as JSON: {error}")))
}

/// Tells a person of something to look at, which stops nothing.
pub(crate) fn warn(text: &str) {
    // Nobody is left to be told that standard error is gone.
    let _ = writeln!(io::stderr().lock(), "warning: {text}");
}

/// Tells a person what went wrong.
pub(crate) fn complain(failure: &Failure) {
    // Nobody is left to be told that standard error is gone.
    let _ = writeln!(io::stderr().lock(), "error: {failure}");
}

/// Lets a panic on a fleet's worker take one line on standard error. It is a kernel's program that
/// panics there: the fleet catches it and the report tells it, so a backtrace would only take time
/// from the step.
pub(crate) fn keep_panics_of_kernels_short() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let thread = thread::current();
        match thread.name() {
            Some(name) if name.starts_with("hopwise-") => {
                let text = panic.to_string().replace('\n', " ");
                let _ = writeln!(io::stderr().lock(), "{name}: {text}");
            }
            _ => usual(panic),
        }
    }));
}
