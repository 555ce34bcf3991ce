//! A fault at every device call of a migration between an adapter and the host, one at a time.

use std::sync::Arc;
use std::time::Duration;

use hopwise_backend_wgpu::{WgpuBackend, WgpuOptions};
use hopwise_core::backend::Backend;
use hopwise_core::coordinator::LaunchOptions;
use hopwise_core::error::DeviceError;
use hopwise_core::fault::{FaultAction, FaultPlan, FaultRule, FaultyBackend, Operation};
use hopwise_core::fleet::{Endpoint, Fleet, HostSender, KernelPhase, KernelSpec, MessageTotals};
use hopwise_core::host::{HostBackend, HostOptions};
use hopwise_core::id::KernelId;
use hopwise_core::message::Message;
use hopwise_core::programs::counter;
use hopwise_migrate::{KernelMigrator, MigrationOptions};

const PATIENCE: Duration = Duration::from_secs(60);

/// Every call that a migration can make.
const OPERATIONS: [Operation; 5] = [
    Operation::Compile,
    Operation::CreateInstance,
    Operation::ReadState,
    Operation::WriteState,
    Operation::Digests,
];

/// A counter on an adapter (device 0) or on the host (device 1), whose every call can fail.
struct Scene {
    fleet: Fleet,
    /// The plans of both devices.
    plans: [Arc<FaultPlan>; 2],
    kernel: KernelId,
    sender: HostSender,
    totals: Endpoint,
    source: usize,
}

impl Scene {
    /// `None` where there is no adapter.
    fn new(source: usize) -> Option<Self> {
        let adapter = WgpuBackend::new(WgpuOptions::new().with_memory_bytes(64 << 20));
        adapter.enumerate().ok()?;
        let host = HostBackend::new(HostOptions::new(1).with_workers(1));
        let plans = [FaultPlan::new(), FaultPlan::new()];
        let open = |backend: Arc<dyn Backend>, plan: &Arc<FaultPlan>| {
            FaultyBackend::new(backend, Arc::clone(plan)).open(0).expect("it opens")
        };
        let fleet = Fleet::builder()
            .device(open(Arc::new(adapter), &plans[0]))
            .device(open(Arc::new(host), &plans[1]))
            .build()
            .expect("two devices");
        let spec = KernelSpec::new("counter", counter(), 4096)
            .with_options(LaunchOptions::new().with_preferred_devices([source]));
        let kernel = fleet.launch(spec).expect("room");
        let totals = fleet.endpoint("totals", 64);
        fleet.connect_endpoint(&kernel, "total", &totals).expect("a port");
        let sender = fleet.sender("test", &kernel, "add").expect("a port");
        let scene = Self { fleet, plans, kernel, sender, totals, source };
        scene.check_adds(0);
        scene.plans.iter().for_each(|plan| plan.reset_counts());
        Some(scene)
    }

    fn migrate(&self) -> bool {
        let options = MigrationOptions::new().with_chunk_bytes(1024);
        let migrator = KernelMigrator::new(&self.fleet).with_options(options);
        migrator.migrate(&self.kernel, 1 - self.source).is_ok()
    }

    /// The kernel adds ten ones to what it had.
    fn check_adds(&self, before: u64) {
        for count in 1..=10 {
            self.sender.send(Message::from_words(0, &[1, 0])).expect("it runs");
            let total = self.totals.recv_timeout(PATIENCE).expect("one for each message");
            assert_eq!(total.message.payload.as_bytes(), (before + count).to_le_bytes());
        }
    }

    /// One owner, nothing reserved, nothing held.
    fn check_owner(&self, owner: usize) {
        let status = self.fleet.status(&self.kernel).expect("nobody removes it");
        assert_eq!((status.device, status.held), (owner, false));
        let coordinator = self.fleet.coordinator();
        assert_eq!(coordinator.get_kernel_device(&self.kernel), Some(owner));
        for device in coordinator.get_all_status() {
            let expected = (usize::from(device.index() == owner), 0);
            assert_eq!((device.kernel_count, device.reserved), expected);
        }
    }
}

/// Operation, device and number of every call that an undisturbed migration makes.
fn calls(source: usize) -> Option<Vec<(Operation, usize, u64)>> {
    let scene = Scene::new(source)?;
    assert!(scene.migrate(), "no fault is armed");
    scene.check_owner(1 - source);
    let mut calls = Vec::new();
    for operation in OPERATIONS {
        for device in [0, 1] {
            let count = scene.plans[device].calls(Some(operation), None);
            calls.extend((1..=count).map(|number| (operation, device, number)));
        }
    }
    assert!(calls.len() >= 10, "{calls:?}");
    Some(calls)
}

/// Runs a migration for every call, with the action at that call; `lost` says which device it loses.
fn at_every_call(action: &dyn Fn() -> FaultAction, loses: bool) {
    for source in [0, 1] {
        let Some(calls) = calls(source) else {
            eprintln!("the faults on wgpu were skipped: this machine has no adapter");
            return;
        };
        for (operation, device, number) in calls {
            let scene = Scene::new(source).expect("there was an adapter a moment ago");
            let plan = &scene.plans[device];
            plan.arm(FaultRule::new(action()).on(operation).at_call(number));
            let moved = scene.migrate();
            plan.disarm();
            assert_eq!(plan.fired(), 1, "{operation:?} {number} was not made");
            let phase = scene.fleet.status(&scene.kernel).expect("nobody removes it").phase;
            if loses && device == source {
                assert!(!moved && matches!(phase, KernelPhase::Lost { .. }), "{phase:?}");
                scene.check_owner(source);
                continue;
            }
            assert_eq!(phase, KernelPhase::Ready, "{operation:?} {number} on device {device}");
            scene.check_owner(if moved { 1 - source } else { source });
            scene.check_adds(10);
            let totals = MessageTotals::of(&scene.fleet.ledgers());
            assert!(totals.is_clean(), "{totals:?}");
        }
    }
}

#[test]
fn a_failed_call_leaves_the_kernel_running() {
    let busy = || FaultAction::Fail(DeviceError::Driver { message: "busy".to_owned() });
    at_every_call(&busy, false);
}

#[test]
fn a_corrupted_transfer_is_never_taken_for_the_state() {
    at_every_call(&|| FaultAction::Corrupt, false);
}

#[test]
fn a_loss_of_the_target_leaves_the_kernel_running_one_of_the_source_leaves_it_lost() {
    at_every_call(&|| FaultAction::Lose { cause: "pulled out".to_owned() }, true);
}
