//! `hopwise demo`: verified results with drains, faults that show, bad input that is told.

use std::fs::{self, File};
use std::path::Path;

use serde_json::Value;
use tempfile::{TempDir, tempdir};

#[path = "support/command.rs"]
mod command;

use command::hopwise;

/// A folder with a noisy image of 60 x 48 pixels, small enough for a build without optimisation.
fn folder_with_image() -> TempDir {
    let folder = tempdir().expect("a temporary folder can be made");
    let pixels: Vec<u8> =
        (0..60 * 48u32).map(|at| (at.wrapping_mul(2_654_435_769) >> 24) as u8 / 4 + 90).collect();
    write_png(&folder.path().join("small.png"), 60, 48, &pixels);
    folder
}

fn write_png(path: &Path, width: u32, height: u32, pixels: &[u8]) {
    let file = File::create(path).expect("the folder is ours");
    let mut encoder = png::Encoder::new(file, width, height);
    encoder.set_color(png::ColorType::Grayscale);
    let mut writer = encoder.write_header().expect("the size is right");
    writer.write_image_data(pixels).expect("the pixels fit the size");
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

#[track_caller]
fn assert_clean(report: &Value) {
    let messages = &report["messages"];
    assert_eq!(report["verified"], true, "{report}");
    assert_eq!(report["failures"].as_array().map(Vec::len), Some(0), "{report}");
    assert!(number(&messages["sent"]) > 0, "{report}");
    assert_eq!(messages["sent"], messages["delivered"], "{report}");
    for key in ["duplicated", "lost", "out_of_order", "dead_lettered", "waiting"] {
        assert_eq!(messages[key], 0, "{key}: {report}");
    }
}

#[test]
fn the_demo_verifies_drains_midway_and_writes_the_image() {
    let folder = folder_with_image();
    let ended = hopwise(folder.path(), "demo --image small.png --kernels 6 --iterations 60");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("\nverified: all 2880 pixels equal"), "{ended:?}");
    assert!(ended.stdout.contains("migration   from   to"), "{ended:?}");
    assert_eq!(ended.stderr, "");
    let decoder = png::Decoder::new(std::io::BufReader::new(
        File::open(folder.path().join("hopwise-demo.png")).unwrap(),
    ));
    assert_eq!(decoder.read_info().unwrap().info().size(), (60, 48));
}

#[test]
fn json_is_one_object_with_the_keys_that_programs_read() {
    let folder = folder_with_image();
    let words =
        "demo --image small.png --kernels 6 --iterations 60 --drain 1@20 --output o.png --json";
    let ended = hopwise(folder.path(), words);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report = ended.json();
    assert_clean(&report);
    // 6 strips exchange 5 x 2 rows and report 6 times in each of 60 iterations.
    assert_eq!(report["messages"]["sent"], 60 * (10 + 6));
    assert_eq!(report["iterations"], 60);
    assert_eq!(report["output"], "o.png");
    assert_eq!(report["image"]["width"], 60);
    assert_eq!(report["kernels"].as_array().unwrap().len(), 6);
    let kernels_at_end: Vec<_> = report["devices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|device| number(&device["kernels_at_end"]))
        .collect();
    assert_eq!(kernels_at_end.iter().sum::<u64>(), 6);
    assert_eq!(kernels_at_end[1], 0);
    let migrations = report["migrations"].as_array().unwrap();
    assert_eq!(migrations.len(), 2);
    for migration in migrations {
        assert!(migration["kernel"].as_str().unwrap().starts_with("strip-"));
        assert_eq!(migration["from"], 1);
        assert_ne!(migration["to"], 1);
        assert!(number(&migration["bytes"]) > 8 * 60 * 8);
        assert!(number(&migration["hold_us"]) <= number(&migration["total_us"]));
        number(&migration["steps_elsewhere"]);
    }
}

#[test]
fn other_kernels_go_on_while_a_device_is_drained() {
    let folder = folder_with_image();
    let words = "demo --image small.png --kernels 24 --iterations 200 --drain 0@50 --json";
    // On a busy machine a drain can be over before others are given a processor at all; so it is
    // done again until two moves were seen beside steps of others.
    let moved_beside_steps = || {
        let report = hopwise(folder.path(), words).json();
        assert_clean(&report);
        let migrations = report["migrations"].as_array().unwrap();
        assert_eq!(migrations.len(), 8);
        let with_steps =
            migrations.iter().filter(|migration| number(&migration["steps_elsewhere"]) > 0);
        with_steps.count()
    };
    let mut seen = 0;
    for _ in 0..40 {
        seen += moved_beside_steps();
        if seen >= 2 {
            return;
        }
    }
    panic!("of 320 migrations {seen} had steps of others beside them");
}

#[test]
fn two_devices_are_drained_one_after_the_other() {
    let folder = folder_with_image();
    for drains in ["--drain 0@20 --drain 2@40", "--drain 1@30 --drain 0@30"] {
        let words = format!("demo --image small.png --kernels 9 --iterations 80 {drains} --json");
        let report = hopwise(folder.path(), &words).json();
        assert_clean(&report);
        assert!(report["migrations"].as_array().unwrap().len() >= 6, "{report}");
        let devices = report["devices"].as_array().unwrap();
        assert_eq!(devices.iter().filter(|device| device["kernels_at_end"] == 9).count(), 1);
    }
}

#[test]
fn one_kernel_on_one_device_and_a_kernel_a_row_are_verified() {
    let folder = folder_with_image();
    for words in ["--kernels 1 --devices host:1", "--kernels 48 --devices host:2,host:1"] {
        let words = format!("demo --image small.png --iterations 12 --json {words}");
        assert_clean(&hopwise(folder.path(), &words).json());
    }
}

#[test]
fn an_injected_fault_shows_in_the_figures_and_in_the_exit_code() {
    let folder = folder_with_image();
    for (fault, key) in [("lose", "lost"), ("duplicate", "duplicated"), ("reorder", "out_of_order")]
    {
        let words = format!(
            "demo --image small.png --kernels 6 --iterations 60 --json --inject {fault}@100"
        );
        let ended = hopwise(folder.path(), &words);
        let report = ended.json();
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert_eq!(report["messages"][key], 1, "{ended:?}");
        let failures = report["failures"].to_string();
        assert!(failures.contains("1 of"), "{ended:?}");
        assert!(ended.stderr.starts_with("error: the result is"), "{ended:?}");
    }
}

#[test]
fn a_fault_that_is_never_due_is_a_failure() {
    let folder = folder_with_image();
    let words = "demo --image small.png --iterations 5 --kernels 2 --inject lose@100000 --json";
    let ended = hopwise(folder.path(), words);
    assert_eq!(ended.code, Some(1));
    assert!(ended.json()["failures"][0].as_str().unwrap().contains("nothing was done"));
}

#[test]
fn a_standstill_ends_and_says_who_waits_for_whom() {
    // The first message lost is the first row that strip 0 sends: strip 1 never has all it needs.
    let folder = folder_with_image();
    let words =
        "demo --image small.png --kernels 2 --iterations 9 --devices host:1 --inject lose@1";
    let ended = hopwise(folder.path(), words);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for words in [
        "FAILED: messages lost: 1 of",
        "FAILED: standstill: 2 of 2",
        "waits for a row of strip-0",
        "NOT VERIFIED",
    ] {
        assert!(ended.stdout.contains(words), "{words}: {ended:?}");
    }
}

#[test]
fn wrong_usage_is_told_with_what_is_allowed() {
    let folder = folder_with_image();
    let cases = [
        ("--devices metal:2", "allowed: host, wgpu"),
        ("--devices wgpu[x]", "as in host:3"),
        ("--lose 3@1", "there is no device 3"),
        ("--devices host:0", "from 1 to 256"),
        ("--devices host", "as in host:3"),
        ("--drain 3@10", "the devices are 0 to 2"),
        ("--drain 0@400", "iteration 0 to 399"),
        ("--drain zero", "as in 0@40"),
        ("--drain 0@1 --drain 1@1 --drain 2@1", "leave at least one"),
        ("--image small.png --kernels 49", "ask for 1 to 48"),
        ("--kernels 0", "0 is not in 1.."),
        ("--iterations 0", "0 is not in 1..="),
        ("--inject steal@4", "lose@N, duplicate@N or reorder@N"),
        ("--contrast 300", "1 to 255"),
        ("--step-limit-ms 0", "0 is not in 1..="),
        ("--no-such-option", "unexpected argument"),
    ];
    for (words, told) in cases {
        hopwise(folder.path(), &format!("demo {words}")).assert_refused(2, &[told]);
    }
}

#[test]
fn bad_images_are_told_with_their_name() {
    let folder = folder_with_image();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("text.png"), "this is no image").unwrap();
    fs::write(path("empty.png"), "").unwrap();
    let whole = fs::read(path("small.png")).unwrap();
    fs::write(path("cut.png"), &whole[..whole.len() / 2]).unwrap();
    write_png(&path("wide.png"), 70_000, 1, &[0; 70_000]);
    for (name, told) in [
        ("missing.png", "cannot open it"),
        ("text.png", "no PNG"),
        ("empty.png", "no PNG"),
        ("cut.png", "ends too early"),
        ("wide.png", "scale it down"),
    ] {
        hopwise(folder.path(), &format!("demo --image {name}")).assert_refused(1, &[name, told]);
    }
}

#[test]
fn an_image_that_cannot_be_written_is_a_failure_beside_the_result() {
    let folder = folder_with_image();
    let words = "demo --image small.png --iterations 5 --kernels 3 --output no/where.png --json";
    let ended = hopwise(folder.path(), words);
    assert_eq!(ended.code, Some(1));
    let report = ended.json();
    assert_eq!((&report["verified"], &report["output"]), (&Value::Bool(true), &Value::Null));
    assert!(report["failures"][0].as_str().unwrap().contains("cannot write image no/where.png"));
}

#[test]
fn a_step_that_is_too_long_loses_its_kernel_and_the_demo_ends() {
    // No step of 2 million pixels ends within a millisecond, in whatever build.
    let folder = tempdir().unwrap();
    write_png(&folder.path().join("large.png"), 2000, 1000, &vec![77; 2_000_000]);
    let words =
        "demo --image large.png --kernels 1 --devices host:1 --iterations 1 --step-limit-ms 1";
    let ended = hopwise(folder.path(), words);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("kernel `strip-00` is lost"), "{ended:?}");
    assert!(ended.stdout.contains("NOT VERIFIED"), "{ended:?}");
}
