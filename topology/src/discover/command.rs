//! The only place that starts programs: with a time limit and bounded output.

use std::fmt;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{self, Child, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of output, at most. A topology of 72 GPUs prints some 100 KB.
const MOST_OUTPUT_BYTES: u64 = 8 * 1024 * 1024;

/// How often a program is looked after.
const PAUSE: Duration = Duration::from_millis(5);

/// A program to run.
pub(super) struct Command<'a> {
    pub(super) program: PathBuf,
    pub(super) arguments: &'a [&'a str],
    pub(super) limit: Duration,
}

/// How a program ended.
pub(super) enum Ended {
    /// It printed this on standard output, and ended well.
    Printed(String),
    /// What went wrong.
    Failed(String),
}

/// As it would be typed.
impl fmt::Display for Command<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.program.file_name().unwrap_or(self.program.as_os_str());
        write!(formatter, "{} {}", name.to_string_lossy(), self.arguments.join(" "))
    }
}

impl Command<'_> {
    /// Runs the program until it ends or its time is over.
    pub(super) fn run(&self) -> Ended {
        self.try_run().unwrap_or_else(|error| Ended::Failed(format!("cannot be run: {error}")))
    }

    fn try_run(&self) -> io::Result<Ended> {
        #[expect(clippy::disallowed_methods, reason = "this is the one place for it")]
        let mut child = process::Command::new(&self.program)
            .args(self.arguments)
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        // A program whose pipe is full waits for ever, so both are emptied beside it.
        let stdout = child.stdout.take().map(gather);
        let stderr = child.stderr.take().map(gather);
        let deadline = Instant::now() + self.limit;
        let Some(status) = wait(&mut child, deadline)? else {
            let limit = self.limit.as_secs_f64();
            return Ok(Ended::Failed(format!("did not answer within {limit} s, and was stopped")));
        };
        // A program that it started may hold the pipes open after its end.
        let stdout = stdout.and_then(|pipe| receive(&pipe, deadline));
        let stderr = stderr.and_then(|pipe| receive(&pipe, deadline));
        Ok(match stdout {
            None => Ended::Failed("ended, but its output did not within the time".to_owned()),
            Some(text) if status.success() => Ended::Printed(text),
            // Tools explain themselves on either.
            Some(text) => Ended::Failed(failure(status, &[stderr.unwrap_or_default(), text])),
        })
    }
}

/// Waits for the program's end; at the deadline it is killed, and nothing is returned.
fn wait(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(PAUSE);
    }
}

/// Reads a pipe to its end on a thread, and keeps the beginning.
fn gather(mut pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    // The thread ends with the pipe. One that is held open for ever costs this thread, which
    // beats a command that never ends.
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = pipe.by_ref().take(MOST_OUTPUT_BYTES).read_to_end(&mut bytes);
        if read.is_ok() {
            // Nobody may be left to listen.
            let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
        }
        let _ = io::copy(&mut pipe, &mut io::sink());
    });
    receiver
}

fn receive(pipe: &Receiver<String>, deadline: Instant) -> Option<String> {
    let left = deadline.saturating_duration_since(Instant::now()).max(PAUSE);
    pipe.recv_timeout(left).ok()
}

/// The status, and the first line that says something.
fn failure(status: ExitStatus, outputs: &[String]) -> String {
    let lines = outputs.iter().flat_map(|text| text.lines()).map(str::trim);
    match lines.clone().find(|line| !line.is_empty()) {
        Some(line) => format!("failed ({status}): {line}"),
        None => format!("failed ({status}) and said nothing"),
    }
}
