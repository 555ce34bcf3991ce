//! `hopwise route`: which way, how long, why, and what else.

use std::fs;

use tempfile::{TempDir, tempdir};

#[path = "support/command.rs"]
mod command;

use command::hopwise;

/// 0 and 2 are joined by a slow link with little latency, and by two fast links through 1.
fn machine() -> TempDir {
    let link = |ends: &str, links: u32, gb_per_s: f64, latency_us: f64| {
        format!(
            r#"{{ {ends}, "both_ways": true, "kind": {{ "nvlink": {{ "links": {links} }} }},
                "bandwidth_gb_per_s": {{ "value": {gb_per_s}, "measured_at_unix_seconds": 1 }},
                "latency_us": {{ "value": {latency_us}, "measured_at_unix_seconds": 1 }} }}"#
        )
    };
    let links = [
        link(r#""from": 0, "to": 1"#, 12, 300.0, 2.0),
        link(r#""from": 1, "to": 2"#, 12, 300.0, 2.0),
        link(r#""from": 0, "to": 2"#, 1, 25.0, 1.0),
    ];
    let folder = tempdir().expect("a temporary folder");
    let text = format!(
        r#"{{ "format": "hopwise-topology", "version": 1,
              "devices": [{{ "index": 0 }}, {{ "index": 1 }}, {{ "index": 2 }}],
              "connections": [{}] }}"#,
        links.join(",")
    );
    fs::write(folder.path().join("t.json"), text).expect("it can be written");
    folder
}

#[test]
fn small_and_large_messages_go_different_ways() {
    let folder = machine();
    let small = hopwise(folder.path(), "route t.json 0 2 --bytes 1kB --json").json();
    assert_eq!(small["path"], serde_json::json!([0, 2]));
    assert_eq!((&small["class"], &small["kind"]), (&"NV1".into(), &"direct".into()));
    let large = hopwise(folder.path(), "route t.json GPU0 gpu2 --bytes 1GB --json").json();
    assert_eq!(large["path"], serde_json::json!([0, 1, 2]));
    assert_eq!(large["class"], "NV12+NV12");
    assert_eq!((&large["gb_per_s"], &large["latency_us"]), (&300.0.into(), &4.0.into()));
    // 4 us, a GB at 300 GB/s, and one chunk of 256 KiB more for the second link.
    let expected = 4.0 + (1e9 + 262_144.0) / 300e3;
    assert!((large["time_us"].as_f64().unwrap() - expected).abs() < 1e-6, "{large}");
    assert_eq!(large["alternatives"][0]["path"], serde_json::json!([0, 2]));
    assert_eq!(large["alternatives"][1]["class"], "HOST");
    assert_eq!(large["failover"][0]["path"], serde_json::json!([0, 2]));
    assert_eq!(large["failover"][1]["class"], "HOST");
}

#[test]
fn a_person_reads_the_way_the_reason_and_the_alternatives() {
    let folder = machine();
    let told = hopwise(folder.path(), "route t.json 0 2 --bytes 1GiB");
    assert_eq!(told.code, Some(0), "{told:?}");
    for text in ["GPU0 -> GPU1 -> GPU2", "why: ", "next best (NV1)", "instead:", "GPU0 -> host"] {
        assert!(told.stdout.contains(text), "{text}: {told:?}");
    }
    let same = hopwise(folder.path(), "route t.json 1 1");
    assert!(same.stdout.contains("there already"), "{same:?}");
}

#[test]
fn wrong_gpus_and_sizes_are_refused() {
    let folder = machine();
    hopwise(folder.path(), "route t.json 0 7").assert_refused(2, &["no GPU 7", "GPU0, GPU1"]);
    hopwise(folder.path(), "route t.json 0 3b:00.0").assert_refused(2, &["no GPU 3b:00.0"]);
    hopwise(folder.path(), "route t.json 0 1 --bytes many").assert_refused(2, &["not a size"]);
    hopwise(folder.path(), "route t.json 0 1 --bytes 99999999999GiB").assert_refused(2, &["more"]);
    hopwise(folder.path(), "route none.json 0 1").assert_refused(1, &["cannot read none.json"]);
}
