//! Starts a part of the check in a process of its own, with a time limit.

use std::env;
use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use super::arguments::{Arguments, Part};
use super::devices::Chosen;

/// How often a process is asked whether it has ended.
const LOOK: Duration = Duration::from_millis(20);

/// What a process left.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) stdout: String,
}

/// Runs a part and reads what it found. A part that found failures has told them in its object.
///
/// # Errors
///
/// What became of the process, when it left no object.
pub(super) fn run_part<T: DeserializeOwned>(
    part: Part,
    arguments: &Arguments,
    chosen: &Chosen,
) -> Result<T, String> {
    let name = part.name();
    let words = words_of(part, arguments, chosen, arguments.topic_limit_s);
    let ended = run(own_path()?.as_ref(), &words, part.limit())
        .map_err(|reason| format!("the part `{name}`: {reason}"))?;
    serde_json::from_str(&ended.stdout).map_err(|_| {
        format!(
            "the part `{name}` ended early ({}): standard error has its last words; `hopwise \
             gpu-check --only {name}` repeats it",
            ended.status
        )
    })
}

/// What is typed to run a part.
pub(super) fn words_of(
    part: Part,
    arguments: &Arguments,
    chosen: &Chosen,
    topic_limit_s: u64,
) -> Vec<OsString> {
    let (devices, limit) = (chosen.typed(), topic_limit_s.to_string());
    let mut words = vec!["gpu-check", "--only", part.name(), "--json", "--devices", &devices];
    words.extend(["--topic-limit-s", &limit]);
    words.extend(arguments.quick.then_some("--quick"));
    words.into_iter().map(OsString::from).collect()
}

/// Where this program is.
pub(super) fn own_path() -> Result<OsString, String> {
    env::current_exe()
        .map(OsString::from)
        .map_err(|error| format!("cannot find this program's own file: {error}"))
}

/// Runs a program to its end, or ends it when its time is up.
pub(super) fn run(program: &Path, words: &[OsString], limit: Duration) -> Result<Ended, String> {
    let mut child = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
    let mut pipe = child.stdout.take().expect("it was piped");
    let reader = thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes); // what cannot be read is missed by whoever parses it
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let status = wait(&mut child, limit)?;
    let stdout = reader.join().expect("reading does not panic");
    Ok(Ended { status, stdout })
}

fn wait(child: &mut Child, limit: Duration) -> Result<ExitStatus, String> {
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if begun.elapsed() < limit => thread::sleep(LOOK),
            Ok(None) => {
                let _ = child.kill(); // it may have ended this moment
                return Err(format!("not done within {limit:?}, and ended"));
            }
            Err(error) => return Err(format!("cannot wait for the process: {error}")),
        }
    }
}
