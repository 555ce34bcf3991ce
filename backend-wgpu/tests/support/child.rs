//! Runs a part of a test in a process of its own, which may hang or run out of memory.

use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Says which part a child is to run.
const PART: &str = "HOPWISE_TEST_PART";

/// Longest life of a child.
const LIMIT: Duration = Duration::from_secs(120);

/// Whether this process is the child that runs `part`.
pub(crate) fn is(part: &str) -> bool {
    std::env::var(PART).is_ok_and(|wanted| wanted == part)
}

/// Runs `test` of this program again, as the child that runs it, and fails unless it ends well
/// within its time. `limits` are commands of a shell, such as `ulimit -v 1000000;`.
pub(crate) fn run(test: &str, limits: &str) {
    let program = std::env::current_exe().expect("a test knows its program");
    let mut child = Command::new("sh")
        .args(["-c", &format!("{limits} exec \"$0\" \"$@\"")])
        .arg(program)
        .args(["--exact", test, "--nocapture", "--test-threads=2"])
        .env(PART, test)
        .stdin(Stdio::null())
        .spawn()
        .expect("a shell can be started");
    let started = Instant::now();
    let status: ExitStatus = loop {
        if let Some(status) = child.try_wait().expect("the child can be asked") {
            break status;
        }
        if started.elapsed() > LIMIT {
            child.kill().expect("the child is ours");
            child.wait().expect("the child was killed");
            panic!("the child that runs `{test}` hangs");
        }
        thread::sleep(Duration::from_millis(20));
    };
    assert!(status.success(), "the child that runs `{test}` ended with {status}");
}
