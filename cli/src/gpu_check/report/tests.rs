//! Tests of what becomes of the parts: the section for the docs, and when there is none.

use serde_json::{Value, json};

use super::*;

/// Figures as the part prints them, with one device of this name.
fn measured(name: &str, no_gpu: Option<&str>, quick: bool) -> Measured {
    let times = |us: f64| json!({"median_us": us, "lowest_us": us, "highest_us": us, "runs": 1});
    let device = |index: usize, name: &str, backend: &str, no_gpu: Option<&str>| {
        json!({"index": index, "name": name, "backend": backend, "failure_domain": null,
            "no_gpu": no_gpu})
    };
    let value = json!({
        "date": "2026-01-31",
        "driver": "driver 550.54.15 for CUDA 12.4",
        "quick": quick,
        "devices": [device(0, name, "cuda", no_gpu), device(1, "host 0", "host", Some("threads"))],
        "figures": [{"what": "live move of 64 MiB: held", "on": "0 -> 1", "quantity": "time",
            "ours": times(300.0), "limit": {"what": "read and write", "times": times(100.0)}}],
        "left_out": [],
        "failed": [],
    });
    serde_json::from_value(value).expect("it is what the part prints")
}

fn report(measured: Measured, demo: &Value) -> Report {
    let conformance = json!({"topics": [{"device": "cuda 0", "topic": "loss_is_final",
        "outcome": "passed", "time_ms": 3}], "not_listed": []});
    let mut report = Report {
        conformance: Found::Ended(serde_json::from_value(conformance).expect("as it is printed")),
        sanitizer: None,
        demo: Found::Ended(serde_json::from_value(demo.clone()).expect("as it is printed")),
        measured: Found::Ended(measured),
        failures: Vec::new(),
        table_for_docs: None,
        no_table_because: None,
    };
    report.conclude();
    report
}

fn demo(verified: bool) -> Value {
    json!({"verified": verified, "failures": [], "elapsed_ms": 5, "messages_delivered": 7,
        "moves": [{"from": "cuda", "to": "host", "kernels": 2}]})
}

#[test]
fn figures_of_a_gpu_become_a_section() {
    let report = report(measured("NVIDIA H100 PCIe", None, false), &demo(true));
    assert_eq!(report.failures(), [""; 0]);
    let expected = "\
### NVIDIA H100 PCIe

`cargo xtask gpu-check` on 2026-01-31, driver 550.54.15 for CUDA 12.4. Medians of several runs, the
shortest and the longest of them beside it. The devices:

- 0: NVIDIA H100 PCIe (cuda)
- 1: host 0 (host)

- Conformance: 1 topics passed, 0 failed, 0 had nothing to check.
- Demo: verified, 7 messages in 5 ms, moved from cuda to host: 2.

| what | on | ours | limit | ratio |
|---|---|---|---|---|
| live move of 64 MiB: held | 0 -> 1 | 300.0 us (300.0 us to 300.0 us) | 100.0 us: read and write | 3.00 |
";
    assert_eq!(report.to_string(), expected);
}

#[test]
fn there_is_no_section_without_a_gpu_or_with_a_failure() {
    let h100 = "NVIDIA H100 PCIe";
    for (measured, verified, reason) in [
        (measured("Stand-in", Some("a stand-in: no GPU"), false), true, "a stand-in: no GPU"),
        (measured(h100, None, true), true, "--quick runs too little"),
        (measured(h100, None, false), false, "something failed"),
    ] {
        let report = report(measured, &demo(verified));
        assert_eq!(report.table_for_docs, None, "{reason}");
        assert_eq!(report.no_table_because.as_deref(), Some(reason));
        assert!(!report.to_string().contains("|---|"), "{report}");
        assert_eq!(report.failures().is_empty(), verified);
    }
}
