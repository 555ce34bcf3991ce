//! Runs the built command with a time limit, so that a hang is a failure.
#![allow(dead_code, reason = "every test file uses its own part")]

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a run may take before it counts as hanging.
const LIMIT: Duration = Duration::from_secs(120);

/// What a run left.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// The JSON object on standard output.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        let value = serde_json::from_str(&self.stdout);
        let value: serde_json::Value = value.unwrap_or_else(|error| panic!("{error}: {self:?}"));
        assert!(value.is_object(), "{self:?}");
        value
    }

    /// Fails unless the run ended with this code and said these words on standard error, and
    /// nothing on standard output.
    #[track_caller]
    pub(crate) fn assert_refused(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "{:?} does not say {word:?}", self.stderr);
        }
    }
}

/// Runs `hopwise` in a folder with these words, separated by spaces.
#[track_caller]
pub(crate) fn hopwise(folder: &Path, words: &str) -> Ended {
    hopwise_with(folder, words, &[])
}

/// Runs `hopwise` with these variables, too.
#[track_caller]
pub(crate) fn hopwise_with(folder: &Path, words: &str, variables: &[(&str, &str)]) -> Ended {
    let mut child = Command::new(env!("CARGO_BIN_EXE_hopwise"))
        .args(words.split_whitespace())
        .current_dir(folder)
        // Mesa's layer that selects devices complains of a missing desktop on standard error.
        .env("NODEVICE_SELECT", "1")
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the built command can be started");
    let stdout = collect(child.stdout.take().expect("it was piped"));
    let stderr = collect(child.stderr.take().expect("it was piped"));
    let code = wait(&mut child, words);
    let text = |thread: JoinHandle<String>| thread.join().expect("reading does not panic");
    Ended { code, stdout: text(stdout), stderr: text(stderr) }
}

fn collect(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut text = String::new();
        from.read_to_string(&mut text).expect("the command prints UTF-8");
        text
    })
}

#[track_caller]
fn wait(child: &mut Child, words: &str) -> Option<i32> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            return status.code();
        }
        if begun.elapsed() > LIMIT {
            child.kill().expect("it is our child");
            panic!("`hopwise {words}` did not end within {LIMIT:?}");
        }
        thread::sleep(Duration::from_millis(5));
    }
}
