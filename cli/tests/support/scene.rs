//! A counter on one of two devices, whose every call can fail while it moves to the other.
#![allow(dead_code, reason = "every test file uses its own part")]

use std::sync::Arc;
use std::time::Duration;

use hopwise_core::backend::Backend;
use hopwise_core::coordinator::LaunchOptions;
use hopwise_core::fault::{FaultAction, FaultPlan, FaultRule, FaultyBackend, Operation};
use hopwise_core::fleet::{Endpoint, Fleet, HostSender, KernelPhase, KernelSpec, MessageTotals};
use hopwise_core::id::KernelId;
use hopwise_core::message::Message;
use hopwise_core::programs::counter;
use hopwise_migrate::{KernelMigrator, MigrationOptions};

const PATIENCE: Duration = Duration::from_secs(60);

/// Every call that a migration can make.
const OPERATIONS: [Operation; 6] = [
    Operation::Compile,
    Operation::CreateInstance,
    Operation::ReadState,
    Operation::WriteState,
    Operation::Digests,
    Operation::PeerCopy,
];

/// Makes the two backends, or none where one of them finds no device.
pub(crate) type Pair<'a> = &'a dyn Fn() -> Option<[Opened; 2]>;

/// A backend and which of its devices is meant.
pub(crate) type Opened = (Arc<dyn Backend>, usize);

/// A fleet of two devices with a counter on one of them.
pub(crate) struct Scene {
    pub(crate) fleet: Fleet,
    /// The plans of both devices.
    plans: [Arc<FaultPlan>; 2],
    pub(crate) kernel: KernelId,
    sender: HostSender,
    totals: Endpoint,
    source: usize,
}

impl Scene {
    /// `None` where a device is missing.
    pub(crate) fn new(pair: Pair<'_>, source: usize) -> Option<Self> {
        let backends = pair()?;
        let plans = [FaultPlan::new(), FaultPlan::new()];
        let open = |(backend, ordinal): Opened, plan: &Arc<FaultPlan>| {
            FaultyBackend::new(backend, Arc::clone(plan)).open(ordinal).expect("it opens")
        };
        let [first, second] = backends;
        let fleet = Fleet::builder()
            .device(open(first, &plans[0]))
            .device(open(second, &plans[1]))
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

    pub(crate) fn migrate(&self) -> bool {
        let options = MigrationOptions::new().with_chunk_bytes(1024);
        let migrator = KernelMigrator::new(&self.fleet).with_options(options);
        migrator.migrate(&self.kernel, 1 - self.source).is_ok()
    }

    /// The kernel adds ten ones to what it had.
    pub(crate) fn check_adds(&self, before: u64) {
        for count in 1..=10 {
            self.sender.send(Message::from_words(0, &[1, 0])).expect("it runs");
            let total = self.totals.recv_timeout(PATIENCE).expect("one for each message");
            assert_eq!(total.message.payload.as_bytes(), (before + count).to_le_bytes());
        }
    }

    /// One owner, nothing reserved, nothing held.
    pub(crate) fn check_owner(&self, owner: usize) {
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
fn calls(pair: Pair<'_>, source: usize) -> Option<Vec<(Operation, usize, u64)>> {
    let scene = Scene::new(pair, source)?;
    assert!(scene.migrate(), "no fault is armed");
    scene.check_owner(1 - source);
    let mut calls = Vec::new();
    for operation in OPERATIONS {
        for device in [0, 1] {
            let count = scene.plans[device].calls(Some(operation), None);
            calls.extend((1..=count).map(|number| (operation, device, number)));
        }
    }
    assert!(calls.len() >= 5, "{calls:?}");
    Some(calls)
}

/// Runs a migration for every call, with the action at that call; `lost` says which device it loses.
pub(crate) fn at_every_call(pair: Pair<'_>, action: &dyn Fn() -> FaultAction, loses: bool) {
    for source in [0, 1] {
        let Some(calls) = calls(pair, source) else {
            eprintln!("the faults were skipped: this machine has no adapter");
            return;
        };
        for (operation, device, number) in calls {
            let scene = Scene::new(pair, source).expect("there was an adapter a moment ago");
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
