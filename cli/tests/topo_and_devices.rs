//! `hopwise topo` and `hopwise devices`, and what all commands do alike.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use tempfile::tempdir;

#[path = "support/command.rs"]
mod command;

use command::hopwise;

const TOPOLOGY: &str = r#"{
  "format": "hopwise-topology", "version": 1,
  "devices": [{ "index": 0 }, { "index": 1 }],
  "connections": [{
    "from": 0, "to": 1, "both_ways": true, "kind": { "nvlink": { "links": 4 } },
    "bandwidth_gb_per_s": { "value": 100, "reported_by": "a test" }
  }]
}"#;

#[test]
fn a_topology_is_shown_as_a_table_and_as_json() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("t.json"), TOPOLOGY).unwrap();
    let table = hopwise(folder.path(), "topo t.json");
    assert_eq!(table.code, Some(0), "{table:?}");
    assert!(table.stdout.contains("NV4") && table.stdout.contains("GPU1"), "{table:?}");
    let json = hopwise(folder.path(), "topo t.json --json");
    assert_eq!(json.json()["devices"].as_array().unwrap().len(), 2);
    assert_eq!(json.stdout, hopwise(folder.path(), "topo t.json --format json").stdout);
    fs::write(folder.path().join("again.json"), &json.stdout).unwrap();
    assert_eq!(hopwise(folder.path(), "topo again.json").stdout, table.stdout);
}

#[test]
fn a_topology_is_read_from_standard_input() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_hopwise"))
        .args(["topo", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(TOPOLOGY.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8(output.stdout).unwrap().contains("NV4"));
}

#[test]
fn bad_topologies_are_told_with_file_line_and_column() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("t.json");
    let cases = [
        (TOPOLOGY.replace("\"to\": 1", "\"to\": 7"), ["line 4", "device 7"]),
        (TOPOLOGY.replace("\"value\": 100", "\"value\": -1"), ["figure -1", "positive"]),
        (TOPOLOGY.replace("\"devices\"", "\"gpus\""), ["line 3", "gpus"]),
        ("[]".to_owned(), ["line 1, column", "docs/topology-json.md"]),
        (String::new(), ["line 1, column", "docs/topology-json.md"]),
    ];
    for (text, told) in cases {
        fs::write(&file, text).unwrap();
        let ended = hopwise(folder.path(), "topo t.json");
        ended.assert_refused(1, &["t.json: line"]);
        ended.assert_refused(1, &told);
    }
    fs::write(&file, [0xff, 0xfe]).unwrap();
    hopwise(folder.path(), "topo t.json").assert_refused(1, &["cannot read t.json"]);
    hopwise(folder.path(), "topo none.json").assert_refused(1, &["cannot read none.json"]);
    hopwise(folder.path(), "topo").assert_refused(2, &["FILE"]);
    hopwise(folder.path(), "topo t.json --format svg").assert_refused(2, &["table, json"]);
}

#[test]
fn devices_answers_on_any_machine() {
    let folder = tempdir().unwrap();
    let text = hopwise(folder.path(), "devices");
    assert_eq!(text.code, Some(0), "{text:?}");
    for backend in ["host: ", "\nwgpu:\n", "\ncuda:\n"] {
        assert!(text.stdout.contains(backend), "{text:?}");
    }
    let json = hopwise(folder.path(), "devices --json").json();
    assert!(json["host"]["threads"].as_u64().unwrap() >= 1);
    // What is not there is explained, and what is there is counted.
    let missing = json["cuda"]["missing"].as_array().unwrap();
    assert!(json["cuda"]["device_count"].as_u64().unwrap() > 0 || !missing.is_empty());
    let adapters = json["wgpu"]["adapters"].as_array().unwrap();
    let missing = json["wgpu"]["missing"].as_array().unwrap();
    for adapter in adapters {
        for key in ["index", "memory_bytes", "max_state_bytes", "max_workgroup_invocations"] {
            assert!(adapter[key].is_u64(), "{key}: {adapter}");
        }
        assert!(adapter["memory_is_estimated"].is_boolean(), "{adapter}");
        let told = text.stdout.contains(adapter["name"].as_str().unwrap());
        assert!(told, "{adapter}");
    }
    assert!(!adapters.is_empty() || missing.iter().all(|gap| gap["explanation"].is_string()));
}

#[test]
fn help_is_a_result_and_no_command_is_wrong_usage() {
    let folder = tempdir().unwrap();
    let help = hopwise(folder.path(), "--help");
    assert_eq!(help.code, Some(0));
    for command in ["devices", "topo", "run", "demo"] {
        assert!(help.stdout.contains(command), "{help:?}");
    }
    hopwise(folder.path(), "").assert_refused(2, &["Usage"]);
    hopwise(folder.path(), "fly").assert_refused(2, &["fly"]);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("t.json"), TOPOLOGY).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_hopwise"))
        .args(["topo", "t.json"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
