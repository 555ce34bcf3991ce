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
    let json = hopwise(folder.path(), "topo t.json --format json");
    assert_eq!(json.json()["format"], "hopwise-machine");
    fs::write(folder.path().join("again.json"), &json.stdout).unwrap();
    assert_eq!(hopwise(folder.path(), "topo again.json").stdout, table.stdout);
    let written = hopwise(folder.path(), "topo t.json --format json --output out.json");
    assert_eq!(written.stdout, "");
    assert_eq!(fs::read_to_string(folder.path().join("out.json")).unwrap(), json.stdout);
}

#[test]
fn the_report_for_programs_has_counts_classes_and_links() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("t.json"), TOPOLOGY).unwrap();
    let report = hopwise(folder.path(), "topo t.json --json").json();
    assert_eq!(
        (&report["format"], &report["gpus"], &report["nics"]),
        (&"json".into(), &2.into(), &0.into())
    );
    assert_eq!(report["classes"], serde_json::json!([["X", "NV4"], ["NV4", "X"]]));
    assert_eq!(report["numa"], serde_json::json!([null, null]));
    assert_eq!(report["peer_access"], serde_json::json!([[true, true], [true, true]]));
    let link = &report["links"][0];
    assert_eq!(
        (&link["from"], &link["to"], &link["count"]),
        (&"GPU0".into(), &"GPU1".into(), &4.into())
    );
    assert_eq!(link["gb_per_s"], 100.0);
    assert_eq!(link["gb_per_s_source"], "reported by a test");
    assert!(report["warnings"].as_array().unwrap().is_empty());
}

#[test]
fn several_files_are_joined_only_on_request() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("a.json"), TOPOLOGY).unwrap();
    let other = TOPOLOGY.replace("\"links\": 4", "\"links\": 2");
    fs::write(folder.path().join("b.json"), other).unwrap();
    hopwise(folder.path(), "topo a.json b.json").assert_refused(2, &["--merge"]);
    let merged = hopwise(folder.path(), "topo --merge a.json b.json --json").json();
    assert_eq!(merged["gpus"], 2);
    let warnings = merged["warnings"].to_string();
    assert!(warnings.contains("links: 4") && warnings.contains("links: 2"), "{warnings}");
    let turned = hopwise(folder.path(), "topo --merge b.json a.json --json").json();
    assert_eq!(turned, merged);
}

#[test]
fn this_machine_is_looked_at_without_a_file() {
    let folder = tempdir().unwrap();
    let report = hopwise(folder.path(), "topo --json");
    assert_eq!(report.code, Some(0), "{report:?}");
    assert!(report.json()["gpus"].is_u64());
}

#[test]
fn transfers_between_devices_are_measured() {
    let folder = tempdir().unwrap();
    let measure = "topo --measure --devices host:2 --bytes 64KiB";
    let table = hopwise(folder.path(), measure);
    assert_eq!(table.code, Some(0), "{table:?}");
    for part in ["to host GB/s", "host 1", "peer copy", "65536 bytes", "4096 bytes"] {
        assert!(table.stdout.contains(part), "{part}: {table:?}");
    }
    let report = hopwise(folder.path(), &format!("{measure} --json")).json();
    let measurement = &report["measurement"];
    assert_eq!(measurement["is_complete"], true);
    let pairs = measurement["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 2);
    for pair in pairs {
        assert_eq!(pair["way"], "peer_copy");
        let sizes = pair["outcome"]["measured"]["sizes"].as_array().unwrap();
        assert_eq!(sizes.len(), 2);
        assert!(sizes.iter().all(|size| size["median_us"].as_f64().unwrap() > 0.0));
    }
    let links = report["links"].as_array().unwrap();
    let measured = |link: &&serde_json::Value| {
        let source = link["gb_per_s_source"].as_str().unwrap_or_default();
        source.starts_with("measured at ")
    };
    assert_eq!(links.iter().filter(measured).count(), 4, "each device, to the host and back");
}

#[test]
fn a_measured_machine_can_be_kept_and_read_again() {
    let folder = tempdir().unwrap();
    let measure = "topo --measure --devices host:2 --bytes 64KiB --format json --output m.json";
    let written = hopwise(folder.path(), measure);
    assert_eq!((written.code, written.stdout.as_str()), (Some(0), ""), "{written:?}");
    let route = hopwise(folder.path(), "route m.json 0 1 --json").json();
    assert_eq!((&route["class"], &route["quality"]), (&"MEM".into(), &"measured".into()));
    assert!(route["gb_per_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn only_this_machine_can_be_measured() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("t.json"), TOPOLOGY).unwrap();
    hopwise(folder.path(), "topo t.json --measure").assert_refused(2, &["--measure"]);
    hopwise(folder.path(), "topo --devices host:2").assert_refused(2, &["--measure"]);
    let small = "topo --measure --devices host:2 --bytes 1KiB";
    hopwise(folder.path(), small).assert_refused(2, &["64KiB to 4GiB"]);
    let unknown = "topo --measure --devices tpu:2";
    hopwise(folder.path(), unknown).assert_refused(2, &["tpu"]);
}

#[test]
fn a_link_that_came_up_narrower_fails_the_diff() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("old.json"), TOPOLOGY).unwrap();
    let narrower = TOPOLOGY.replace("\"links\": 4", "\"links\": 3");
    fs::write(folder.path().join("new.json"), narrower).unwrap();
    let same = hopwise(folder.path(), "topo diff old.json old.json");
    assert_eq!((same.code, same.stdout.trim()), (Some(0), "nothing changed"));
    let worse = hopwise(folder.path(), "topo diff old.json new.json");
    assert_eq!(worse.code, Some(1));
    assert!(worse.stdout.contains("ALARM GPU0 - GPU1: was NV4, is NV3"), "{worse:?}");
    let better = hopwise(folder.path(), "topo diff new.json old.json --json");
    assert_eq!(better.code, Some(0));
    assert_eq!(better.json()["notes"][0]["subject"], "GPU0 - GPU1");
    hopwise(folder.path(), "topo diff old.json none.json").assert_refused(1, &["none.json"]);
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
    ];
    for (text, told) in cases {
        fs::write(&file, text).unwrap();
        let ended = hopwise(folder.path(), "topo t.json");
        ended.assert_refused(1, &["t.json: json: line"]);
        ended.assert_refused(1, &told);
    }
    fs::write(&file, "[]").unwrap();
    hopwise(folder.path(), "topo t.json")
        .assert_refused(1, &["begins with `[]`", "name its format"]);
    hopwise(folder.path(), "topo t.json --from json")
        .assert_refused(1, &["line 1", "docs/machine-json.md"]);
    fs::write(&file, "").unwrap();
    hopwise(folder.path(), "topo t.json").assert_refused(1, &["empty"]);
    hopwise(folder.path(), "topo none.json").assert_refused(1, &["cannot read none.json"]);
    hopwise(folder.path(), "topo t.json --from nothing").assert_refused(2, &["nvidia-smi-topo"]);
    hopwise(folder.path(), "topo t.json --format png").assert_refused(2, &["svg"]);
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
    for command in ["devices", "topo", "route", "run", "demo"] {
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
