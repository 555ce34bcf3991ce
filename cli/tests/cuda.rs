//! `hopwise` on CUDA devices of a stand-in driver: kernels move between CUDA, wgpu and the host, and
//! every call fails once meanwhile. The stand-in proves calls and error handling, not a GPU.

#[path = "support/command.rs"]
mod command;
#[path = "support/scene.rs"]
mod scene;
#[path = "../../backend-cuda/tests/support/stand_in.rs"]
mod stand_in;

use std::sync::Arc;
use std::time::{Duration, Instant};

use command::{Ended, hopwise_with};
use hopwise_backend_cuda::{CudaOptions, DRIVER_SYMBOLS};
use hopwise_backend_wgpu::{WgpuBackend, WgpuOptions};
use hopwise_core::backend::Backend;
use hopwise_core::error::DeviceError;
use hopwise_core::fault::FaultAction;
use hopwise_core::fleet::{KernelPhase, MessageTotals};
use hopwise_core::host::{HostBackend, HostOptions};
use scene::{Opened, Scene, at_every_call};
use serde_json::Value;
use stand_in::StandIn;
use tempfile::tempdir;

const MACHINE: &str = "
    gpu memory_mib=256
    gpu memory_mib=256
    peers all
";

const PATIENCE: Duration = Duration::from_secs(60);

/// Small enough for a software driver and a build without optimisation.
const SMALL: &str = "--iterations 24 --kernels 6 --output o.png";

fn gpu(ordinal: usize) -> Opened {
    let backend = StandIn::with_machine(MACHINE).backend(CudaOptions::new());
    (Arc::new(backend) as Arc<dyn Backend>, ordinal)
}

fn host() -> Opened {
    (Arc::new(HostBackend::new(HostOptions::new(1).with_workers(1))), 0)
}

fn two_gpus() -> Option<[Opened; 2]> {
    let (backend, _) = gpu(0);
    Some([(Arc::clone(&backend), 0), (backend, 1)])
}

fn gpu_and_host() -> Option<[Opened; 2]> {
    Some([gpu(0), host()])
}

fn gpu_and_adapter() -> Option<[Opened; 2]> {
    let adapter = WgpuBackend::new(WgpuOptions::new().with_memory_bytes(64 << 20));
    adapter.enumerate().ok()?;
    Some([gpu(0), (Arc::new(adapter), 0)])
}

/// Runs the command against the stand-in.
fn hopwise(folder: &std::path::Path, words: &str) -> Ended {
    let libraries = StandIn::build().folder.display().to_string();
    let environment = [
        ("LD_LIBRARY_PATH", libraries.as_str()),
        ("HOPWISE_STAND_IN_FOLDER", libraries.as_str()),
        ("HOPWISE_STAND_IN", MACHINE),
    ];
    hopwise_with(folder, words, &environment)
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

#[track_caller]
fn assert_verified(ended: &Ended) -> Value {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report = ended.json();
    assert_eq!(report["verified"], true, "{report}");
    let messages = &report["messages"];
    assert_eq!(messages["sent"], messages["delivered"], "{report}");
    report
}

#[test]
fn kernels_move_from_cuda_to_wgpu_to_the_host_and_back() {
    let _alone = stand_in::alone();
    let folder = tempdir().unwrap();
    if hopwise_backend_wgpu::probe().adapters().is_empty() {
        eprintln!("kernels_move_from_cuda_to_wgpu_to_the_host_and_back was skipped: no adapter");
        return;
    }
    let drains = "--drain 0@4 --drain 2@9 --drain 3@14";
    let many = "--iterations 24 --kernels 12 --output o.png";
    let words = format!("demo --devices cuda:2,wgpu:1,host:1 {drains} {many} --json");
    let report = assert_verified(&hopwise(folder.path(), &words));
    let moves = moves(&report);
    for (from, to) in [("cuda", "wgpu"), ("cuda", "host"), ("wgpu", "host"), ("host", "cuda")] {
        assert!(moves.contains(&(from.into(), to.into())), "{from} to {to}: {moves:?}");
    }
}

#[test]
fn kernels_move_between_gpus_and_the_host() {
    let _alone = stand_in::alone();
    let folder = tempdir().unwrap();
    let words = format!("demo --devices cuda:2,host:1 --drain 0@6 --drain 2@14 {SMALL} --json");
    let moves = moves(&assert_verified(&hopwise(folder.path(), &words)));
    for (from, to) in [("cuda", "cuda"), ("cuda", "host"), ("host", "cuda")] {
        assert!(moves.contains(&(from.into(), to.into())), "{from} to {to}: {moves:?}");
    }
}

#[test]
fn a_lost_gpu_takes_its_kernels_and_nobody_else() {
    let _alone = stand_in::alone();
    let folder = tempdir().unwrap();
    let words = format!("demo --devices cuda:2,host:1 --lose 1@5 {SMALL} --json");
    let ended = hopwise(folder.path(), &words);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let report = ended.json();
    for kernel in report["kernels"].as_array().unwrap() {
        let is_lost = kernel["device_at_end"] == 1;
        assert_eq!(kernel["phase"], if is_lost { "lost" } else { "ready" }, "{kernel}");
    }
}

#[test]
fn without_a_driver_the_error_names_what_is_missing() {
    let _alone = stand_in::alone();
    let folder = tempdir().unwrap();
    if hopwise_backend_cuda::probe().device_count() > 0 {
        eprintln!("without_a_driver_the_error_names_what_is_missing was skipped: a GPU is here");
        return;
    }
    let ended = hopwise_with(folder.path(), "demo --devices cuda:1,host:1", &[]);
    ended.assert_refused(1, &["no CUDA device can be used", "libcuda.so.1", "remedy: "]);
}

#[test]
fn a_failed_call_leaves_the_kernel_running() {
    let _alone = stand_in::alone();
    let busy = || FaultAction::Fail(DeviceError::Driver { message: "busy".to_owned() });
    at_every_call(&two_gpus, &busy, false);
    at_every_call(&gpu_and_host, &busy, false);
    at_every_call(&gpu_and_adapter, &busy, false);
}

#[test]
fn a_corrupted_transfer_is_never_taken_for_the_state() {
    let _alone = stand_in::alone();
    at_every_call(&two_gpus, &|| FaultAction::Corrupt, false);
    at_every_call(&gpu_and_host, &|| FaultAction::Corrupt, false);
}

#[test]
fn a_loss_of_the_target_leaves_the_kernel_running_one_of_the_source_leaves_it_lost() {
    let _alone = stand_in::alone();
    let lose = || FaultAction::Lose { cause: "pulled out".to_owned() };
    at_every_call(&two_gpus, &lose, true);
    at_every_call(&gpu_and_host, &lose, true);
}

/// How often each call of the driver is made by a migration from GPU 0 to GPU 1.
fn driver_calls(stand_in: &StandIn) -> Vec<(&'static str, u64)> {
    let scene = Scene::new(&two_gpus, 0).expect("the stand-in is there");
    let counts = || DRIVER_SYMBOLS.iter().map(|call| stand_in.count(call)).collect::<Vec<_>>();
    let before = counts();
    assert!(scene.migrate(), "no fault is armed");
    let made = counts().into_iter().zip(before).map(|(after, before)| after - before);
    DRIVER_SYMBOLS.iter().copied().zip(made).filter(|(_, made)| *made > 0).collect()
}

/// The fault is in the driver, below everything of ours.
#[test]
fn a_migration_survives_a_fault_at_every_call_of_the_driver() {
    let _alone = stand_in::alone();
    let stand_in = StandIn::with_machine(MACHINE);
    for (call, count) in driver_calls(stand_in) {
        // Polling is made as often as it takes; its first calls stand for all.
        for at in 1..=count.min(12) {
            for code in [1, 719] {
                let scene = Scene::new(&two_gpus, 0).expect("the stand-in is there");
                stand_in.control(&format!("fail {call} {code} {at}"));
                let moved = scene.migrate();
                stand_in.control("heal");
                let case = format!("call {at} of {call} gave {code}");
                scene.fleet.wait_idle(PATIENCE).expect("nothing hangs");
                let owner = scene.fleet.device(usize::from(moved)).expect("it is of the fleet");
                let phase = || scene.fleet.status(&scene.kernel).expect("nobody removes it").phase;
                if owner.health().is_working() {
                    assert_eq!(phase(), KernelPhase::Ready, "{case}");
                    scene.check_owner(usize::from(moved));
                    scene.check_adds(10);
                } else {
                    assert_eq!(code, 719, "{case}: only a loss loses a kernel");
                    let deadline = Instant::now() + PATIENCE;
                    while !matches!(phase(), KernelPhase::Lost { .. }) {
                        assert!(Instant::now() < deadline, "{case}: the loss is not heard of");
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
                let totals = MessageTotals::of(&scene.fleet.ledgers());
                assert!(totals.is_clean(), "{case}: {totals:?}");
            }
        }
    }
}

#[test]
fn devices_are_listed_with_their_health_and_pairs_are_checked() {
    let _alone = stand_in::alone();
    let folder = tempdir().unwrap();
    let ended = hopwise(folder.path(), "devices --verify-peers --json");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let cuda = &ended.json()["cuda"];
    assert_eq!(cuda["gpus"].as_array().map(Vec::len), Some(2), "{cuda}");
    assert!(cuda["gpus"][0]["uuid"].as_str().unwrap().starts_with("GPU-57575757"), "{cuda}");
    let verdicts = cuda["peers"].as_array().unwrap().iter().map(|peer| peer["verdict"].as_str());
    assert_eq!(verdicts.collect::<Vec<_>>(), [Some("sound"), Some("sound")], "{cuda}");
    let text = hopwise(folder.path(), "devices").stdout;
    assert!(text.contains("cuda[1]: Stand-in, compute capability 9.0"), "{text}");
    assert!(!text.contains("peer copies"), "only when asked for: {text}");
}
