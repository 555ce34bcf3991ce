//! `hopwise run`: the scenarios that we ship, and what a run makes of programs that misbehave.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::tempdir;

#[path = "support/command.rs"]
mod command;

use command::{Ended, hopwise};

/// Runs a scenario that we ship.
fn shipped(name: &str) -> Ended {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    hopwise(&folder, &format!("run {name}.toml --json"))
}

/// Runs a scenario from its text.
fn run(text: &str) -> Ended {
    let folder = tempdir().expect("a temporary folder can be made");
    fs::write(folder.path().join("s.toml"), text).expect("the folder is ours");
    hopwise(folder.path(), "run s.toml --json")
}

#[track_caller]
fn assert_done(ended: &Ended) -> Value {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report = ended.json();
    assert_eq!(report["failures"].as_array().map(Vec::len), Some(0), "{ended:?}");
    assert_eq!(report["messages"]["sent"], report["messages"]["delivered"], "{ended:?}");
    report
}

#[track_caller]
fn assert_failed(ended: &Ended, words: &[&str]) -> Value {
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let report = ended.json();
    let failures = report["failures"].to_string();
    for word in words {
        assert!(failures.contains(word), "{failures} does not say {word:?}");
    }
    assert!(ended.stderr.contains("the report says"), "{ended:?}");
    report
}

fn kernel<'a>(report: &'a Value, name: &str) -> &'a Value {
    let kernels = report["kernels"].as_array().expect("a report lists its kernels");
    kernels.iter().find(|kernel| kernel["name"] == name).expect("the scenario has that kernel")
}

#[test]
fn the_token_ring_turns_while_kernels_move() {
    let report = assert_done(&shipped("token_ring"));
    assert_eq!(report["endpoints"][0]["messages"], 8);
    assert_eq!(kernel(&report, "ring-1")["device_at_end"], 2);
    assert_ne!(kernel(&report, "ring-0")["device_at_end"], 0);
    assert!(report["migrations"].as_array().unwrap().len() >= 2, "{report}");
    for index in 0..4 {
        // 8 tokens make 2,000 laps; two of them end at each kernel.
        let words = &kernel(&report, &format!("ring-{index}"))["first_words"];
        assert_eq!((&words[1], &words[4]), (&Value::from(16_000), &Value::from(2)), "{report}");
    }
    // What is computed does not depend on when kernels were moved.
    let again = assert_done(&shipped("token_ring"));
    assert_eq!(kernel(&report, "ring-0")["digest"], kernel(&again, "ring-0")["digest"]);
}

#[test]
fn the_counters_add_up_what_the_host_sends() {
    let report = assert_done(&shipped("counters"));
    assert_eq!(kernel(&report, "first")["first_words"], Value::from(vec![1000, 0, 1000, 0]));
    // 100 to begin with, and the running totals 1 to 1,000.
    assert_eq!(report["endpoints"][0]["last_words"], Value::from(vec![100 + 500_500, 0]));
    assert_eq!(report["endpoints"][0]["last_tag"], 7);
}

#[test]
fn a_kernel_is_parked_and_goes_on_answering() {
    let report = assert_done(&shipped("park"));
    assert_eq!(kernel(&report, "large")["device_at_end"], 1);
    assert_eq!(report["migrations"][0]["bytes"], 4 << 20);
    assert_eq!(report["endpoints"][0]["messages"], 20_000);
}

/// A kernel that misbehaves at its third message, beside a counter that does not.
fn misbehaving(program: &str) -> String {
    format!(
        r#"
        step_limit_ms = 400
        [[device]]
        kind = "host"
        workers = 2
        [[kernel]]
        name = "bad"
        program = "{program}"
        parameters = [2]
        state_words = 1
        [[kernel]]
        name = "good"
        program = "counter"
        state_words = 4
        [[endpoint]]
        name = "replies"
        [[channel]]
        from = "bad.out"
        to = "replies"
        [[channel]]
        from = "good.total"
        to = "replies"
        [[send]]
        to = "bad.in"
        count = 3
        [[send]]
        to = "good.add"
        words = [1]
        count = 500
        "#
    )
}

#[test]
fn a_kernel_that_misbehaves_is_told_and_harms_no_other() {
    for (program, phase, told) in [
        ("test-panic", "failed", "panicked"),
        ("test-loop", "lost", "limit of 400 ms"),
        ("test-overflow", "failed", "overflow"),
        ("test-equal-keys", "failed", "key 16"),
    ] {
        let report = assert_failed(&run(&misbehaving(program)), &["kernel `bad`", told]);
        assert_eq!(kernel(&report, "bad")["phase"], phase, "{report}");
        assert_eq!(kernel(&report, "good")["phase"], "ready", "{report}");
        assert_eq!(kernel(&report, "good")["first_words"][0], 500, "{report}");
        assert_eq!(report["messages"]["lost"], 0, "{report}");
    }
}

/// Two counters that answer each other for ever: every message is answered by one.
const PING_PONG: &str = r#"
    timeout_s = 1
    [[device]]
    kind = "host"
    count = 2
    [[kernel]]
    name = "ping"
    program = "counter"
    state_words = 4
    device = 0
    [[kernel]]
    name = "pong"
    program = "counter"
    state_words = 4
    device = 1
    [[channel]]
    from = "ping.total"
    to = "pong.add"
    [[channel]]
    from = "pong.total"
    to = "ping.add"
    [[send]]
    to = "ping.add"
    words = [1]
"#;

#[test]
fn a_run_without_end_ends_at_its_time_limit() {
    assert_failed(&run(PING_PONG), &["did not end within 1 s (timeout_s)"]);
}

#[test]
fn kernels_that_wait_for_each_other_are_named() {
    // Each answers every message with one, into mailboxes that the host's messages fill.
    let text = PING_PONG
        .replace("timeout_s = 1", "timeout_s = 100")
        .replace("state_words = 4", "state_words = 4\nmailbox = 1")
        .replace("words = [1]", "words = [1]\ncount = 9\n[[send]]\nto = \"pong.add\"\ncount = 9");
    let report = assert_failed(&run(&text), &["deadlock: ", "ping", "pong"]);
    assert!(report["waiting"].to_string().contains("waits for room at"), "{report}");
}

#[test]
fn a_lost_device_takes_its_kernels_and_no_others() {
    let event = "\n[[event]]\nafter = { kernel = \"pong\", steps = 5 }\nlose = 0\n";
    let report = assert_failed(&run(&format!("{PING_PONG}{event}")), &["kernel `ping` is lost"]);
    assert_eq!(kernel(&report, "ping")["phase"], "lost");
    assert_eq!(kernel(&report, "pong")["phase"], "ready");
    assert!(report["devices"][0]["lost"].is_string(), "{report}");
}

#[test]
fn messages_to_a_removed_kernel_are_dead_letters() {
    let event = "\n[[event]]\nafter = { kernel = \"pong\", steps = 5 }\nremove = \"ping\"\n";
    let ended = run(&format!("{PING_PONG}{event}"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report = ended.json();
    assert_eq!(kernel(&report, "ping")["phase"], "removed");
    assert_eq!(report["dead_letters"]["total"], 1, "{report}");
    assert!(report["dead_letters"]["reasons"].to_string().contains("was removed"), "{report}");
}

#[test]
fn an_event_whose_mark_is_never_reached_is_a_failure() {
    let event = "\n[[event]]\nafter = { kernel = \"first\", steps = 1000000 }\ndrain = 0\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/counters.toml");
    let text = fs::read_to_string(path).unwrap() + event;
    assert_failed(&run(&text), &["never reached: drain device 0 after 1000000 steps of first"]);
}

#[test]
fn an_event_that_cannot_be_carried_out_is_a_failure() {
    let event =
        "\n[[event]]\nafter = { kernel = \"first\", steps = 1 }\nmigrate = \"first\"\nto = 0\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/counters.toml");
    let text = fs::read_to_string(path).unwrap() + event;
    let report = assert_failed(&run(&text), &["first", "not moved"]);
    assert_eq!(kernel(&report, "first")["first_words"][0], 1000);
}

#[test]
fn what_does_not_fit_a_device_is_told() {
    let text = PING_PONG.replace("kind = \"host\"", "kind = \"host\"\nmemory_bytes = 8");
    run(&text).assert_refused(2, &["s.toml, line", "state_words = 4", "does not fit"]);
    // The state alone would fit, its block of parameters beside it does not.
    let text = PING_PONG.replace("kind = \"host\"", "kind = \"host\"\nmemory_bytes = 16");
    run(&text).assert_refused(1, &["kernel `ping` could not be placed", "16 are left"]);
}

#[test]
fn wrong_scenarios_are_told_before_anything_runs() {
    let cases: [(&str, &str, &[&str]); 7] = [
        ("device = 1", "device = 5", &["line 15", "device = 5", "0 to 1"]),
        ("\"ping.total\"", "\"ping.nowhere\"", &["line 17", "out-port `nowhere`", "total, report"]),
        ("\"pong.add\"", "\"nobody.add\"", &["line 18", "`nobody`", "ping, pong"]),
        ("\"ping.total\"", "\"ping.report\"", &["line 18", "up to 16 bytes", "takes 8"]),
        ("\"counter\"", "\"nothing\"", &["line 8", "`nothing`", "counter"]),
        ("words = [1]", "wrods = [1]", &["line 24", "unknown field `wrods`"]),
        ("words = [1]", "words = [1", &["line 24"]),
    ];
    for (from, to, told) in cases {
        run(&PING_PONG.replacen(from, to, 1)).assert_refused(2, told);
    }
    let folder = tempdir().unwrap();
    hopwise(folder.path(), "run no.toml").assert_refused(1, &["cannot read no.toml"]);
}

#[test]
fn the_report_for_a_person_has_the_same_figures() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    let ended = hopwise(&folder, "run counters.toml");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for words in ["500600 0", "host:totals", "messages sent   delivered", "done after"] {
        assert!(ended.stdout.contains(words), "{words}: {ended:?}");
    }
}

#[test]
fn the_example_of_the_documentation_runs() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/scenario.md");
    let text = fs::read_to_string(path).unwrap();
    let example = text.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let report = assert_done(&run(example));
    assert_eq!(report["endpoints"][0]["messages"], 1000 + 3);
    assert_eq!(kernel(&report, "sum")["first_words"][0], 5000);
    assert_eq!(report["devices"][1]["kernels_at_end"], 0, "{report}");
}
