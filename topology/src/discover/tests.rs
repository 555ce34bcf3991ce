//! Discovery with tools of our own: right, failing, hanging, flooding, and no programs at all.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{DiscoverOptions, Discovery, discover};

fn tool(folder: &Path, name: &str, script: &str, mode: u32) {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
}

fn discovered(folder: &Path, limit: Duration) -> Discovery {
    discover(&DiscoverOptions {
        sysfs: folder.join("no-sysfs"),
        search_path: vec![folder.to_owned()],
        tool_limit: limit,
    })
}

const LONG: Duration = Duration::from_secs(20);

#[test]
fn a_machine_without_tools_is_no_problem() {
    let folder = tempfile::tempdir().unwrap();
    let found = discovered(folder.path(), LONG);
    assert!(found.readings.is_empty() && found.problems.is_empty(), "{found:?}");
    assert!(found.machine().gpus().is_empty());
}

#[test]
fn a_tool_that_fails_is_told_with_its_first_words() {
    let folder = tempfile::tempdir().unwrap();
    tool(folder.path(), "rocm-smi", "echo; echo cannot open /dev/kfd >&2; exit 3", 0o755);
    tool(folder.path(), "amd-smi", "exit 4", 0o755);
    let problems = discovered(folder.path(), LONG).problems;
    assert!(problems[0].contains("rocm-smi --showtopo: failed"), "{problems:?}");
    assert!(problems[0].contains("cannot open /dev/kfd"), "{problems:?}");
    assert!(problems[1].contains("said nothing"), "{problems:?}");
}

#[test]
fn a_tool_that_hangs_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    tool(folder.path(), "rocm-smi", "exec sleep 600", 0o755);
    // Its child keeps the pipe open after it has ended.
    tool(folder.path(), "amd-smi", "sleep 600 &\necho done", 0o755);
    let start = Instant::now();
    let problems = discovered(folder.path(), Duration::from_millis(300)).problems;
    assert!(
        problems[0].contains("rocm-smi --showtopo: did not answer within 0.3 s"),
        "{problems:?}"
    );
    assert!(problems[1].contains("amd-smi"), "{problems:?}");
    // Not a measurement: it would be ten minutes.
    assert!(start.elapsed() < Duration::from_secs(300));
}

#[test]
fn a_tool_that_floods_its_output_is_read_in_part() {
    let folder = tempfile::tempdir().unwrap();
    tool(
        folder.path(),
        "rocm-smi",
        "head -c 50000000 /dev/zero; head -c 50000000 /dev/zero >&2",
        0o755,
    );
    let problems = discovered(folder.path(), LONG).problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
}

#[test]
fn a_file_that_is_no_program_is_told() {
    let folder = tempfile::tempdir().unwrap();
    tool(folder.path(), "rocm-smi", "echo", 0o644);
    let problems = discovered(folder.path(), LONG).problems;
    assert!(problems[0].contains("cannot be run"), "{problems:?}");
}
