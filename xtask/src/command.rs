//! Running programs, in a form that can be printed for repetition.

use std::env;
use std::fmt;
use std::io::{BufRead, BufReader, IsTerminal, Read, Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, ExitStatus, Stdio};
use std::thread;

#[cfg(test)]
mod tests;

/// A program with its arguments; printed with `{}` it can be pasted into a shell.
#[derive(Debug, Clone)]
pub(crate) struct Command {
    program: String,
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
    folder: PathBuf,
}

impl Command {
    /// A program that is run in `folder`.
    pub(crate) fn new(program: &str, arguments: &[&str], folder: &Path) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.iter().map(ToString::to_string).collect(),
            environment: Vec::new(),
            folder: folder.into(),
        }
    }

    /// Cargo, in `folder`.
    pub(crate) fn cargo(arguments: &[&str], folder: &Path) -> Self {
        Self::new("cargo", arguments, folder)
    }

    /// Sets a variable of the environment.
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    fn process(&self) -> Process {
        // The cargo that runs this tool names itself, so that its tool chain is used on.
        let program = match self.program.as_str() {
            "cargo" => env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
            program => program.into(),
        };
        let mut process = Process::new(program);
        process.args(&self.arguments).current_dir(&self.folder);
        process.envs(self.environment.iter().map(|(name, value)| (name, value)));
        process
    }

    fn start(&self, process: &mut Process) -> Result<Child, String> {
        process.spawn().map_err(|error| format!("cannot start `{self}`: {error}"))
    }

    fn check(&self, status: ExitStatus) -> Result<(), String> {
        if status.success() { Ok(()) } else { Err(format!("`{self}` failed: {status}")) }
    }

    /// Runs it with this terminal.
    pub(crate) fn run(&self) -> Result<(), String> {
        let mut child = self.start(&mut self.process())?;
        self.check(child.wait().map_err(|error| format!("cannot wait for `{self}`: {error}"))?)
    }

    /// Runs it and returns what it prints; its errors go to this terminal.
    pub(crate) fn output(&self) -> Result<String, String> {
        let mut process = self.process();
        process.stdin(Stdio::null()).stderr(Stdio::inherit());
        let output = process.output().map_err(|error| format!("cannot start `{self}`: {error}"))?;
        self.check(output.status)?;
        String::from_utf8(output.stdout)
            .map_err(|error| format!("`{self}` printed no UTF-8: {error}"))
    }

    /// Whether it can be run and succeeds; what it prints is dropped.
    pub(crate) fn succeeds(&self) -> bool {
        let mut process = self.process();
        process.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        process.status().is_ok_and(|status| status.success())
    }

    /// Runs it, passes on what it prints line by line, and returns all of it.
    ///
    /// The text is returned with a failure too: the count of failed tests is in it.
    pub(crate) fn run_and_read(&self) -> (String, Result<(), String>) {
        let mut process = self.process();
        process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if stdout().is_terminal() {
            process.env("CARGO_TERM_COLOR", "always");
        }
        let mut child = match self.start(&mut process) {
            Ok(child) => child,
            Err(message) => return (String::new(), Err(message)),
        };
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let text = thread::scope(|scope| {
            let err = scope.spawn(|| pass_on(err, stderr()));
            let mut text = pass_on(out, stdout());
            text.push_str(&err.join().expect("passing lines on does not panic"));
            text
        });
        let status = child.wait().map_err(|error| format!("cannot wait for `{self}`: {error}"));
        (text, status.and_then(|status| self.check(status)))
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.environment {
            write!(f, "{name}={} ", quoted(value))?;
        }
        f.write_str(&self.program)?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {}", quoted(argument)))
    }
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Copies lines as they come, and keeps them. A reader that is gone does not stop the program.
fn pass_on(from: Option<impl Read>, mut to: impl Write) -> String {
    let mut text = String::new();
    let Some(from) = from else { return text };
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
        let _ = to.write_all(&line).and_then(|()| to.flush());
        text.push_str(&String::from_utf8_lossy(&line));
        line.clear();
    }
    text
}
