//! `hopwise gpu-check` against the stand-in for the CUDA driver: all calls are made, and what comes
//! out says that no GPU was there.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::OnceLock;

use tempfile::tempdir;

#[path = "support/command.rs"]
mod command;
#[path = "../../backend-cuda/tests/support/stand_in.rs"]
mod stand_in;

use command::{Ended, hopwise_with};
use stand_in::StandIn;

/// Two GPUs that reach each other.
const MACHINE: &str = "
    gpu memory_mib=512
    gpu memory_mib=512 capability=8.0
    peers all
";

/// The stand-in, built by one test for all.
fn ready() -> &'static StandIn {
    static READY: OnceLock<StandIn> = OnceLock::new();
    READY.get_or_init(StandIn::build)
}

/// Runs the command on a machine whose driver is the stand-in.
fn on_stand_in(machine: &str, words: &str) -> Ended {
    let folder = ready().folder.to_str().unwrap();
    let here = tempdir().unwrap();
    let variables = [
        ("LD_LIBRARY_PATH", folder),
        ("HOPWISE_STAND_IN", machine),
        ("HOPWISE_STAND_IN_FOLDER", folder),
    ];
    hopwise_with(here.path(), &format!("gpu-check --quick {words}"), &variables)
}

#[test]
fn the_whole_check_passes_and_no_table_comes_out() {
    let ended = on_stand_in(MACHINE, "--devices cuda:2 --json");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report = ended.json();
    let topics = report["conformance"]["topics"].as_array().unwrap();
    assert_eq!(topics.len(), 2 * hopwise_core::conformance::TOPICS.len());
    assert!(topics.iter().all(|topic| topic["outcome"] == "passed"), "{report}");
    assert_eq!(report["demo"]["verified"], true, "{report}");
    let moves = report["demo"]["moves"].to_string();
    assert!(moves.contains(r#""from":"host""#) && moves.contains(r#""from":"cuda""#), "{report}");
    let figures = report["measured"]["figures"].to_string();
    for what in [
        "steps in batches of 1",
        "steps in batches of 16",
        "as a CUDA graph",
        "between two kernels of one device",
        "between two kernels of two devices",
        "write, ",
        "read, ",
        "digests of 2 MiB",
        "copy from device to device",
        "live move of 1 MiB: held",
    ] {
        assert!(figures.contains(what), "{what}: {report}");
    }
    assert!(report["table_for_docs"].is_null(), "{report}");
    let reason = report["no_table_because"].as_str().unwrap();
    assert!(reason.contains("a test's stand-in: no GPU"), "{reason}");
}

#[test]
fn one_gpu_is_taken_twice_with_a_host_device() {
    let ended = on_stand_in("gpu memory_mib=512", "--only demo --json");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let demo = ended.json();
    assert_eq!(demo["verified"], true, "{demo}");
    assert_eq!(demo["failures"].as_array().map(Vec::len), Some(0), "{demo}");
}

#[test]
fn a_person_is_told_that_it_is_no_gpu() {
    let ended = on_stand_in("gpu memory_mib=512", "--only measure");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("is a test's stand-in: no GPU"), "{ended:?}");
}

/// As on a machine with a driver and nothing else.
#[test]
fn without_nvrtc_topics_fail_and_name_it() {
    let here = tempdir().unwrap();
    let driver = ready().folder.join("libcuda.so");
    std::fs::copy(&driver, here.path().join("libcuda.so")).unwrap();
    let folder = here.path().to_str().unwrap();
    let variables = [("LD_LIBRARY_PATH", folder), ("HOPWISE_STAND_IN", "gpu memory_mib=512")];
    let words = "gpu-check --quick --only conformance --devices cuda:1";
    let ended = hopwise_with(here.path(), words, &variables);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("NVRTC, which compiles CUDA C, is missing"), "{ended:?}");
    assert!(ended.stdout.contains("FAILED"), "{ended:?}");
}

/// A driver that takes the process with it: each part tells so, and the check goes on to its end.
#[test]
fn a_driver_that_crashes_takes_one_part_after_the_other() {
    let ended = on_stand_in("nonsense", "--devices cuda:1 --json");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let report = ended.json();
    for (key, part) in [("conformance", "conformance"), ("demo", "demo"), ("measured", "measure")] {
        let died = report[key]["died"].as_str().unwrap_or_else(|| panic!("{key}: {report}"));
        assert!(died.contains(&format!("`{part}` ended early")), "{died}");
    }
    assert_eq!(report["failures"].as_array().map(Vec::len), Some(3), "{report}");
}
