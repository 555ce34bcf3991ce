//! `hopwise` on wgpu devices: whatever adapter the machine has, and two software drivers at once
//! where both are there.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hopwise_backend_wgpu::{WgpuBackend, WgpuOptions};
use hopwise_core::coordinator::LaunchOptions;
use hopwise_core::device::Device;
use hopwise_core::digest::state_digests;
use hopwise_core::fleet::{Fleet, KernelSpec, MessageTotals};
use hopwise_core::host::{HostBackend, HostOptions};
use hopwise_core::message::Message;
use hopwise_core::programs::counter;
use hopwise_migrate::KernelMigrator;
use serde_json::Value;
use tempfile::tempdir;

#[path = "support/command.rs"]
mod command;
#[path = "../../backend-wgpu/tests/support/drivers.rs"]
mod drivers;

use command::{hopwise, hopwise_with};

/// Small enough for a software driver and a build without optimisation.
const SMALL: &str = "--iterations 24 --kernels 6 --output o.png";

/// Says so and answers `false` where the machine has no adapter.
fn has_adapter(test: &str) -> bool {
    let found = !hopwise_backend_wgpu::probe().adapters().is_empty();
    if !found {
        eprintln!("{test} was skipped: this machine has no adapter for wgpu");
    }
    found
}

#[track_caller]
fn assert_clean(report: &Value) {
    assert_eq!(report["verified"], true, "{report}");
    assert_eq!(report["failures"].as_array().map(Vec::len), Some(0), "{report}");
    let messages = &report["messages"];
    assert_eq!(messages["sent"], messages["delivered"], "{report}");
    assert_eq!((&messages["duplicated"], &messages["lost"]), (&0.into(), &0.into()), "{report}");
}

/// The devices that kernels moved between, by backend.
fn moves(report: &Value) -> Vec<(String, String)> {
    let backend = |device: &Value| {
        let index = usize::try_from(device.as_u64().expect("an index")).expect("a small one");
        report["devices"][index]["backend"].as_str().expect("a name").to_owned()
    };
    let moves = report["migrations"].as_array().expect("a list");
    moves.iter().map(|one| (backend(&one["from"]), backend(&one["to"]))).collect()
}

#[test]
fn transfers_from_wgpu_to_the_host_and_back_are_measured() {
    if !has_adapter("transfers_from_wgpu_to_the_host_and_back_are_measured") {
        return;
    }
    let folder = tempdir().unwrap();
    let measure = "topo --measure --devices wgpu:1,host:1 --bytes 64KiB --json";
    let ended = hopwise(folder.path(), measure);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report = ended.json();
    let pairs = report["measurement"]["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 2);
    for pair in pairs {
        assert_eq!(pair["way"], "through_host", "two backends have no copy between them");
        assert!(pair["outcome"]["measured"].is_object(), "{pair}");
    }
}

#[test]
fn kernels_move_from_wgpu_to_the_host_and_back() {
    if !has_adapter("kernels_move_from_wgpu_to_the_host_and_back") {
        return;
    }
    let folder = tempdir().unwrap();
    let words = format!("demo --devices wgpu:2,host:1 --drain 0@6 --drain 2@14 {SMALL} --json");
    let ended = hopwise(folder.path(), &words);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report = ended.json();
    assert_clean(&report);
    let moves = moves(&report);
    for (from, to) in [("wgpu", "host"), ("host", "wgpu")] {
        assert!(moves.contains(&(from.into(), to.into())), "{from} to {to}: {moves:?}");
    }
}

#[test]
fn a_lost_adapter_takes_its_kernels_and_nobody_else() {
    if !has_adapter("a_lost_adapter_takes_its_kernels_and_nobody_else") {
        return;
    }
    let folder = tempdir().unwrap();
    let words = format!("demo --devices host:1,wgpu:2 --lose 1@5 {SMALL} --json");
    let ended = hopwise(folder.path(), &words);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let report = ended.json();
    let phases: Vec<_> = report["kernels"].as_array().unwrap().iter().collect();
    for kernel in phases {
        let is_on_host = kernel["device_at_end"] == 0;
        assert_eq!(kernel["phase"], if is_on_host { "ready" } else { "lost" }, "{kernel}");
        assert!(kernel["since_last_step_ms"].is_u64(), "{kernel}");
    }
    let failures = report["failures"].to_string();
    assert!(failures.contains("destroyed on purpose after iteration 5"), "{failures}");
    assert!(failures.contains("its last state is that of step"), "{failures}");
    assert!(failures.contains("no result from"), "{failures}");
    assert_eq!(report["messages"]["lost"], 0, "{report}");
    assert_eq!(report["messages"]["duplicated"], 0, "{report}");
}

/// Not a line for each kernel.
#[test]
fn what_is_lost_is_told_by_device() {
    if !has_adapter("what_is_lost_is_told_by_device") {
        return;
    }
    let folder = tempdir().unwrap();
    let words = "demo --iterations 60 --kernels 48 --output o.png";
    let ended = hopwise(folder.path(), &format!("{words} --devices wgpu:1,host:1 --lose 0@5"));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let lost = "FAILED: 24 kernels on device 0 are lost: ";
    assert_eq!(ended.stdout.matches(lost).count(), 1, "{ended:?}");
    assert!(ended.stdout.contains("strip-00, strip-01, strip-02, ... (--json"), "{ended:?}");
    assert!(ended.stdout.contains(" more (--json has all)\n"), "{ended:?}");
    for (words, count) in [("FAILED: ", 2), ("no result from", 0), ("waits for", 3)] {
        assert_eq!(ended.stdout.matches(words).count(), count, "{words}: {ended:?}");
    }
}

/// Devices that were asked for by other names for the same adapter.
#[test]
fn a_lost_adapter_takes_every_device_on_it_whatever_named_it() {
    let probe = hopwise_backend_wgpu::probe();
    let Some(adapter) = probe.adapters().first() else {
        eprintln!(
            "a_lost_adapter_takes_every_device_on_it_whatever_named_it was skipped: this machine \
             has no adapter for wgpu"
        );
        return;
    };
    let name = adapter.name.split_whitespace().next().expect("a name has a word");
    let folder = tempdir().unwrap();
    let devices = format!("--devices wgpu[0]:1,wgpu[{name}]:1,host:1");
    let ended = hopwise(folder.path(), &format!("demo {devices} --lose 0@5 {SMALL} --json"));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let report = ended.json();
    let lost: Vec<_> = (0..3).map(|device| report["devices"][device]["lost"].is_string()).collect();
    assert_eq!(lost, [true, true, false], "{report}");
    for kernel in report["kernels"].as_array().unwrap() {
        let is_on_host = kernel["device_at_end"] == 2;
        assert_eq!(kernel["phase"], if is_on_host { "ready" } else { "lost" }, "{kernel}");
    }
}

#[test]
fn an_adapter_is_found_by_name_or_the_error_names_what_there_is() {
    if !has_adapter("an_adapter_is_found_by_name_or_the_error_names_what_there_is") {
        return;
    }
    let folder = tempdir().unwrap();
    let ended = hopwise(folder.path(), &format!("demo --devices wgpu[0]:1,host:1 {SMALL} --json"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let name = ended.json()["devices"][0]["name"].as_str().unwrap().to_owned();
    let ended = hopwise(folder.path(), "demo --devices wgpu[no-such-card]:1");
    ended.assert_refused(1, &["called `no-such-card`", &name]);
}

/// What makes the loader of Vulkan take a driver beside those that it takes anyway.
fn with_driver(manifest: &Path) -> (&'static str, String) {
    let manifest = manifest.display();
    match std::env::var("VK_DRIVER_FILES") {
        Ok(named) => ("VK_DRIVER_FILES", format!("{named}:{manifest}")),
        Err(_) => ("VK_ADD_DRIVER_FILES", manifest.to_string()),
    }
}

/// From this machine's own driver to `SwiftShader`, which is added to it.
#[test]
fn kernels_move_from_one_driver_to_another() {
    let Some(swiftshader) = drivers::swiftshader() else { return };
    let folder = tempdir().unwrap();
    let (variable, drivers) = with_driver(&swiftshader);
    let hopwise = |words: &str| hopwise_with(folder.path(), words, &[(variable, &drivers)]);
    let machine = hopwise("devices --json").json();
    let adapters = machine["wgpu"]["adapters"].as_array().unwrap();
    let is_second = |adapter: &Value| adapter["name"].as_str().unwrap().contains("SwiftShader");
    let place = |second| adapters.iter().position(|adapter| is_second(adapter) == second);
    let to = place(true).unwrap_or_else(|| panic!("SwiftShader is not listed: {machine}"));
    let Some(from) = place(false) else {
        eprintln!("kernels_move_from_one_driver_to_another was skipped: no driver but SwiftShader");
        return;
    };
    let devices = format!("--devices wgpu[{from}]:1,wgpu[{to}]:1");
    let ended = hopwise(&format!("demo {devices} --drain 0@6 {SMALL} --json"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report = ended.json();
    assert_clean(&report);
    let names = [0, 1].map(|device| is_second(&report["devices"][device]));
    assert_eq!(names, [false, true], "{report}");
    assert_eq!(report["migrations"].as_array().unwrap().len(), 3, "{report}");
}

#[test]
fn a_scenario_names_adapters() {
    if !has_adapter("a_scenario_names_adapters") {
        return;
    }
    let folder = tempdir().unwrap();
    let text = r#"
        device = [{ kind = "wgpu[0]", memory_bytes = 1048576 }, { kind = "host" }]
        kernel = [{ name = "sum", program = "counter", state_words = 4, device = 0 }]
        endpoint = [{ name = "totals", capacity = 64 }]
        channel = [{ from = "sum.total", to = "totals" }]
        send = [{ to = "sum.add", words = [5], count = 20 }]
        event = [{ after = { endpoint = "totals", messages = 10 }, migrate = "sum", to = 1 }]
    "#;
    std::fs::write(folder.path().join("s.toml"), text).unwrap();
    let ended = hopwise(folder.path(), "run s.toml --json");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report = ended.json();
    assert_eq!(report["kernels"][0]["first_words"][0], 100, "{report}");
    assert_eq!(report["kernels"][0]["device_at_end"], 1, "{report}");
}

/// A kernel with 256 MiB of state goes from wgpu to the host and back while messages come.
#[test]
fn a_large_kernel_moves_there_and_back_under_traffic() {
    const STATE_BYTES: usize = 256 << 20;
    if !has_adapter("a_large_kernel_moves_there_and_back_under_traffic") {
        return;
    }
    let adapter = WgpuBackend::new(WgpuOptions::new().with_memory_bytes(1 << 30));
    let host = HostBackend::new(HostOptions::new(1).with_workers(1));
    let fleet = Fleet::builder()
        .device(adapter.open_wgpu(0).unwrap() as Arc<dyn Device>)
        .backend(&host)
        .unwrap()
        .build()
        .unwrap();
    // The counter uses the first words; the rest is ballast whose every bit must arrive.
    let mut words: Vec<u32> = (0..STATE_BYTES / 4)
        .map(|at| u32::try_from(at).unwrap().wrapping_mul(0x9e37_79b9))
        .collect();
    words[..4].fill(0);
    let state = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let spec = KernelSpec::new("large", counter(), 0)
        .with_state(state)
        .with_options(LaunchOptions::new().with_preferred_devices([0]));
    let kernel = fleet.launch(spec).unwrap();
    let totals = fleet.endpoint("totals", 1 << 20);
    fleet.connect_endpoint(&kernel, "total", &totals).unwrap();
    let sender = fleet.sender("test", &kernel, "add").unwrap();
    let done = AtomicBool::new(false);
    let mut sent = 0;
    std::thread::scope(|scope| {
        let traffic = scope.spawn(|| {
            let mut sent = 0u64;
            while !done.load(Ordering::Relaxed) {
                sender.send(Message::from_words(0, &[1, 0])).unwrap();
                sent += 1;
                std::thread::sleep(Duration::from_millis(1));
            }
            sent
        });
        let migrator = KernelMigrator::new(&fleet);
        for target in [1, 0] {
            let report = migrator.migrate(&kernel, target).unwrap();
            assert_eq!(report.bytes, STATE_BYTES as u64);
        }
        done.store(true, Ordering::Relaxed);
        sent = traffic.join().unwrap();
    });
    fleet.wait_idle(Duration::from_secs(60)).unwrap();
    for count in 1..=sent {
        let total = totals.try_recv().unwrap();
        assert_eq!(total.message.payload.as_bytes(), count.to_le_bytes());
    }
    assert!(MessageTotals::of(&fleet.ledgers()).is_clean());
    let held = fleet.hold(&kernel, Duration::from_secs(60)).unwrap();
    assert_eq!(held.device(), 0);
    let digests = held.instance().chunk_digests(1 << 20).unwrap();
    words[0] = u32::try_from(sent).unwrap();
    words[2] = u32::try_from(sent).unwrap();
    assert_eq!(digests[1..], state_digests(&words, 1 << 20)[1..]);
    assert_eq!(digests[0], state_digests(&words, 1 << 20)[0], "sum and count of {sent} messages");
}
