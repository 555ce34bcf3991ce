//! `hopwise gpu-check` without a GPU: every part runs, what fails is told, and no figure of a
//! processor is taken for one of a GPU.
#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::Value;
use tempfile::tempdir;

#[path = "support/command.rs"]
mod command;

use command::{Ended, hopwise, hopwise_with};

/// A path where no driver is, so that a GPU of this machine has no part in a test.
const NO_GPU: [(&str, &str); 1] = [("CUDA_VISIBLE_DEVICES", "")];

#[track_caller]
fn checked(words: &str) -> Ended {
    let folder = tempdir().unwrap();
    hopwise_with(folder.path(), &format!("gpu-check --quick {words}"), &NO_GPU)
}

fn list<'a>(report: &'a Value, key: &str) -> &'a [Value] {
    report[key].as_array().map_or(&[], Vec::as_slice)
}

/// Devices of both kinds where the machine has an adapter.
fn devices() -> (&'static str, bool) {
    let has_adapter = !hopwise_backend_wgpu::probe().adapters().is_empty();
    if !has_adapter {
        eprintln!("only host devices are checked: this machine has no adapter for wgpu");
    }
    (if has_adapter { "host:2,wgpu:1" } else { "host:2" }, has_adapter)
}

#[test]
fn the_demo_is_verified_across_devices() {
    let (devices, has_adapter) = devices();
    let ended = checked(&format!("--only demo --devices {devices} --json"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let demo = ended.json();
    assert_eq!(demo["verified"], true, "{demo}");
    let backends = demo["moves"].to_string();
    assert!(!has_adapter || backends.contains("wgpu"), "{demo}");
}

#[test]
fn figures_stand_beside_their_limits() {
    let (devices, has_adapter) = devices();
    let ended = checked(&format!("--only measure --devices {devices} --json"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let measured = ended.json();
    let figures = list(&measured, "figures");
    let has = |what: &str, on: &str| {
        let is_it = |figure: &&Value| {
            figure["what"].as_str().unwrap().starts_with(what) && figure["on"] == on
        };
        figures.iter().find(is_it).unwrap_or_else(|| panic!("{what} on {on}: {measured}"))
    };
    for figure in figures {
        assert!(figure["ours"]["median_us"].as_f64().unwrap() > 0.0, "{figure}");
        assert!(figure["ours"]["runs"].as_u64().unwrap() >= 1, "{figure}");
    }
    has("steps in batches of 1", "0");
    assert!(has("read", "0")["limit"]["times"]["median_us"].is_number(), "{measured}");
    assert!(has("messages", "0 -> 1")["limit"].is_object(), "{measured}");
    if has_adapter {
        for what in ["steps in batches of 16", "write", "digests of 2 MiB", "messages"] {
            has(what, "2");
        }
        for (what, on) in [("live move of 1 MiB: held", "2 -> 0"), ("live move", "0 -> 2")] {
            assert!(has(what, on)["limit"].is_object(), "{measured}");
        }
    }
}

#[test]
fn every_topic_is_checked_on_a_host_device() {
    let ended = checked("--only conformance --devices host:1 --json");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let topics = list(&ended.json(), "topics").to_vec();
    assert_eq!(topics.len(), hopwise_core::conformance::TOPICS.len());
    for topic in &topics {
        assert_eq!(topic["outcome"], "passed", "{topic}");
    }
}

#[test]
fn all_parts_together_refuse_a_table_of_processors() {
    let ended = checked("--devices host:2");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for words in ["Conformance: ", "0 failed", "Demo: verified", "ratio"] {
        assert!(ended.stdout.contains(words), "{words}: {ended:?}");
    }
    assert!(ended.stdout.contains("no table for docs/performance.md: no GPU"), "{ended:?}");
    assert!(!ended.stdout.contains("|---|"), "{ended:?}");
}

#[test]
fn without_a_gpu_the_error_says_what_is_missing_and_what_can_be_named() {
    let ended = checked("");
    ended.assert_refused(1, &["CUDA driver", "--devices wgpu:1,host:1"]);
}

#[test]
fn a_sanitizer_that_is_not_there_is_a_failure() {
    let ended = checked("--devices host:1 --sanitizer no-such-sanitizer");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("cannot start no-such-sanitizer"), "{ended:?}");
    assert!(ended.stdout.contains("FAILED: compute-sanitizer: "), "{ended:?}");
}

/// A program in place of the sanitizer, which takes the same words and is none.
#[cfg(unix)]
fn in_place_of_the_sanitizer(script: &str) -> Ended {
    use std::fs::{Permissions, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;

    let folder = tempdir().unwrap();
    let program = folder.path().join("sanitizer.sh");
    write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let words = format!("--devices host:1 --sanitizer {} --json", program.display());
    checked(&words)
}

#[cfg(unix)]
#[test]
fn the_sanitizer_is_given_the_conformance_part() {
    let script = r#"[ "$1 $2 $4 $5 $6" = "--error-exitcode 9 gpu-check --only conformance" ] || exit 5
        shift 2; exec "$@""#;
    let ended = in_place_of_the_sanitizer(script);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.json()["sanitizer"]["is_clean"], true, "{ended:?}");
}

#[cfg(unix)]
#[test]
fn what_the_sanitizer_finds_is_a_failure() {
    let ended = in_place_of_the_sanitizer("exit 9");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.json()["sanitizer"]["is_clean"], false, "{ended:?}");
    assert!(ended.stderr.contains("compute-sanitizer: it found errors"), "{ended:?}");
}

#[test]
fn the_short_help_does_not_list_it_and_its_own_help_does() {
    let folder = tempdir().unwrap();
    let ended = hopwise(folder.path(), "--help");
    assert!(!ended.stdout.contains("gpu-check"), "{ended:?}");
    let ended = hopwise(folder.path(), "gpu-check --help");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("--sanitizer"), "{ended:?}");
}
