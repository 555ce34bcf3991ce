//! Runs a part of a test in a process of its own, with an environment of its own.
#![allow(dead_code, reason = "every test file uses its own part")]

use std::env;
use std::process::{Command, Stdio};

/// Says which part a child is to run.
const PART: &str = "HOPWISE_TEST_PART";

/// Whether this process is the child that runs `part`.
pub(crate) fn is(part: &str) -> bool {
    env::var(PART).is_ok_and(|wanted| wanted == part)
}

/// Whether this process is some test's child.
pub(crate) fn is_any() -> bool {
    env::var_os(PART).is_some()
}

/// Runs `test` of this program again, as the child that runs `part`, and fails unless it ends well.
pub(crate) fn run(test: &str, part: &str, environment: &[(&str, &str)]) {
    let program = env::current_exe().expect("a test knows its program");
    let output = Command::new(program)
        .args(["--exact", test, "--nocapture"])
        .env(PART, part)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("this program can be started");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the child that runs `{part}` failed: {text}");
}
