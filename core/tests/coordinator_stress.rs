//! Many threads at once: no deadlock, no capacity exceeded, every reservation ended exactly once.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

#[path = "coordinator_support/machine.rs"]
mod machine;
#[path = "coordinator_support/watchdog.rs"]
mod watchdog;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use hopwise_core::{
    CoordinatorEvent, DeviceState, KernelId, LaunchOptions, LoadBalancingStrategy, MigrationEnd,
    MigrationRequest, MultiGpuConfig, MultiGpuCoordinator,
};
use machine::{gpu, machine};
use watchdog::within;

const CAPACITY: usize = 8;
const DEVICES: usize = 6;
const THREADS: usize = 8;
const GIB: u64 = 1 << 30;
const TOTAL_BYTES: u64 = 16 * GIB;
const STRESS: Duration = Duration::from_secs(2);
/// Far above what the slowest machine needs.
const LIMIT: Duration = Duration::from_secs(60);

/// A small generator of random numbers (xorshift64, Marsaglia 2003).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

/// What the observer counted.
#[derive(Default)]
struct Ledger {
    open: HashMap<u64, MigrationRequest>,
    /// Ends that were told before their request was: events of two threads may overtake.
    early_ends: HashMap<u64, usize>,
    ended: usize,
    leaving: usize,
    gone: usize,
}

impl Ledger {
    fn record(&mut self, event: &CoordinatorEvent) {
        match *event {
            CoordinatorEvent::MigrationRequested(request) => {
                if self.early_ends.remove(&request.id).is_some() {
                    self.ended += 1;
                } else {
                    assert!(self.open.insert(request.id, request).is_none());
                }
            }
            CoordinatorEvent::MigrationEnded { request_id, .. } => {
                if self.open.remove(&request_id).is_some() {
                    self.ended += 1;
                } else {
                    *self.early_ends.entry(request_id).or_default() += 1;
                }
            }
            CoordinatorEvent::DeviceLeaving { .. } => self.leaving += 1,
            CoordinatorEvent::DeviceGone { .. } => self.gone += 1,
            _ => {}
        }
    }
}

struct World {
    coordinator: Arc<MultiGpuCoordinator>,
    kernels: Vec<KernelId>,
    requests: Mutex<Vec<MigrationRequest>>,
    succeeded: AtomicUsize,
}

impl World {
    /// One random operation. Refusals are part of the game; hangs, panics and broken laws are not.
    fn step(&self, dice: &mut Dice) {
        let coordinator = &self.coordinator;
        let kernel = self.kernels[dice.roll(self.kernels.len())];
        let device = dice.roll(DEVICES);
        let done = match dice.roll(24) {
            0..=5 => {
                let bytes = [0, GIB, 3 * GIB][dice.roll(3)];
                let options = LaunchOptions::new().with_required_memory(bytes);
                coordinator.place(kernel, &options).is_ok()
            }
            6 | 7 => coordinator.assign_kernel(kernel, device).is_ok(),
            8 | 9 => coordinator.remove_kernel(&kernel).is_ok(),
            10..=13 => match coordinator.request_migration(&kernel, device) {
                Ok(request) => {
                    self.requests.lock().unwrap().push(request);
                    true
                }
                Err(_) => false,
            },
            14..=16 => self
                .some_request(dice)
                .is_some_and(|request| coordinator.complete_migration(&request).is_ok()),
            17 => self
                .some_request(dice)
                .is_some_and(|request| coordinator.cancel_migration(&request).is_ok()),
            18 => {
                let state = [DeviceState::Lost, DeviceState::Probation, DeviceState::Active];
                coordinator.set_device_state(device, state[dice.roll(3)]).is_ok()
            }
            19 => coordinator.register_device(gpu(device)).is_ok(),
            20 => self.drain(device),
            21 => coordinator.select_device(&LaunchOptions::new()).is_ok(),
            22 => coordinator.select_device_for_k2k(&kernel).is_ok(),
            _ => {
                let available = TOTAL_BYTES - dice.roll(4) as u64 * GIB;
                let _ = coordinator.can_p2p(device, 0);
                coordinator.update_device_memory(device, available).is_ok()
            }
        };
        self.succeeded.fetch_add(usize::from(done), Ordering::Relaxed);
    }

    fn some_request(&self, dice: &mut Dice) -> Option<MigrationRequest> {
        let mut requests = self.requests.lock().unwrap();
        let count = requests.len();
        (count > 0).then(|| requests.swap_remove(dice.roll(count)))
    }

    /// Unregisters a device and carries the plan out, as far as the others let it.
    fn drain(&self, device: usize) -> bool {
        let result = self.coordinator.unregister_device(device);
        for plan in &result.plans {
            assert_ne!(plan.source_incarnation, plan.target_incarnation);
            if let Ok(request) = self.coordinator.request_planned_migration(plan) {
                let _ = self.coordinator.complete_migration(&request);
            }
        }
        for orphan in &result.orphans {
            let _ = self.coordinator.remove_kernel(orphan);
        }
        result.incarnation.is_some()
    }

    /// What must hold at every instant.
    fn sample(&self) {
        for status in self.coordinator.get_all_status() {
            assert!(status.kernel_count + status.reserved <= CAPACITY, "{status:?}");
            assert!(status.available_memory_bytes <= TOTAL_BYTES, "{status:?}");
            let may_hold = matches!(status.state, DeviceState::Active | DeviceState::Degraded);
            assert!(may_hold || status.reserved == 0, "{status:?}");
            assert!(self.coordinator.kernels_on_device(status.index()).len() <= CAPACITY);
        }
        let stats = self.coordinator.stats();
        assert!(stats.mapped_kernels + stats.reserved <= CAPACITY * DEVICES, "{stats:?}");
    }

    /// Records, lists and counts agree while nothing changes.
    fn check_agreement(&self) {
        let mut listed = HashMap::new();
        for status in self.coordinator.get_all_status() {
            let kernels = self.coordinator.kernels_on_device(status.index());
            assert_eq!(kernels.len(), status.kernel_count);
            for kernel in kernels {
                assert!(listed.insert(kernel, status.index()).is_none(), "listed twice");
            }
        }
        for kernel in &self.kernels {
            assert_eq!(self.coordinator.get_kernel_device(kernel), listed.get(kernel).copied());
        }
        assert_eq!(self.coordinator.stats().mapped_kernels, listed.len());
    }

    /// After everything is removed nothing is used, and every request has ended once.
    fn check_empty(&self, ledger: &Mutex<Ledger>) {
        for kernel in &self.kernels {
            let _ = self.coordinator.remove_kernel(kernel);
        }
        for status in self.coordinator.get_all_status() {
            assert_eq!((status.kernel_count, status.reserved), (0, 0), "{status:?}");
            self.coordinator.update_device_memory(status.index(), TOTAL_BYTES).unwrap();
        }
        let free = |status: &hopwise_core::DeviceStatus| status.available_memory_bytes;
        let statuses = self.coordinator.get_all_status();
        assert!(statuses.iter().all(|status| free(status) == TOTAL_BYTES), "{statuses:?}");
        let ledger = ledger.lock().unwrap();
        assert!(ledger.open.is_empty(), "requests that never ended: {:?}", ledger.open);
        assert!(ledger.early_ends.is_empty(), "ended twice: {:?}", ledger.early_ends);
        assert!(ledger.ended > 0 && ledger.gone > 0, "the stress reached everything");
        assert_eq!(ledger.leaving, ledger.gone);
        assert_eq!(self.coordinator.stats().callback_panics, 0);
    }
}

fn stress(strategy: LoadBalancingStrategy) {
    let config =
        MultiGpuConfig::builder().load_balancing(strategy).max_kernels_per_device(CAPACITY).build();
    let coordinator = machine(DEVICES, config);
    coordinator.set_custom_selector(|statuses, _| {
        let best = statuses.iter().filter(|status| status.is_available());
        best.max_by_key(|status| status.room()).map_or(0, |status| status.index())
    });
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let record = Arc::clone(&ledger);
    coordinator.add_observer(move |event| record.lock().unwrap().record(event));
    let world = World {
        coordinator,
        kernels: (0..CAPACITY * DEVICES + 16).map(|_| KernelId::new("k")).collect(),
        requests: Mutex::new(Vec::new()),
        succeeded: AtomicUsize::new(0),
    };
    let stop = AtomicBool::new(false);
    let seeds = (1..).step_by(7919).take(THREADS);
    thread::scope(|scope| {
        let (world, stop) = (&world, &stop);
        for seed in seeds {
            scope.spawn(move || {
                let mut dice = Dice(seed);
                while !stop.load(Ordering::Relaxed) {
                    world.step(&mut dice);
                }
            });
        }
        let start = Instant::now();
        while start.elapsed() < STRESS {
            world.sample();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(world.succeeded.load(Ordering::Relaxed) > 1000);
    world.check_agreement();
    world.check_empty(&ledger);
}

#[test]
fn eight_threads_break_no_law() {
    within(LIMIT, || stress(LoadBalancingStrategy::LeastLoaded));
}

#[test]
fn eight_threads_and_a_selector_break_no_law() {
    within(LIMIT, || stress(LoadBalancingStrategy::Custom));
}

/// Runs a race many times: each thread does its part at the same moment.
fn race(rounds: usize, round: impl Fn(&Barrier)) {
    for _ in 0..rounds {
        round(&Barrier::new(2));
    }
}

#[test]
fn one_reservation_is_used_once() {
    within(LIMIT, || {
        let coordinator = machine(2, MultiGpuConfig::default());
        let kernel = KernelId::new("k");
        race(500, |start| {
            coordinator.assign_kernel(kernel, 0).unwrap();
            let request = coordinator.request_migration(&kernel, 1).unwrap();
            let (first, second) = thread::scope(|scope| {
                let complete = || {
                    start.wait();
                    coordinator.complete_migration(&request).is_ok()
                };
                let other = scope.spawn(complete);
                (complete(), other.join().unwrap())
            });
            assert!(first != second, "exactly one of two completions succeeds");
            assert_eq!(coordinator.stats().reserved, 0);
            assert_eq!(coordinator.kernels_on_device(1), [kernel]);
        });
    });
}

#[test]
fn completing_beside_the_loss_of_the_target_is_all_or_nothing() {
    within(LIMIT, || {
        let coordinator = machine(2, MultiGpuConfig::default());
        let ends = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&ends);
        coordinator.add_observer(move |event| {
            if let CoordinatorEvent::MigrationEnded { end, .. } = event {
                record.lock().unwrap().push(*end);
            }
        });
        let kernel = KernelId::new("k");
        race(500, |start| {
            coordinator.assign_kernel(kernel, 0).unwrap();
            let request = coordinator.request_migration(&kernel, 1).unwrap();
            let completed = thread::scope(|scope| {
                scope.spawn(|| {
                    start.wait();
                    coordinator.set_device_state(1, DeviceState::Lost).unwrap();
                });
                start.wait();
                coordinator.complete_migration(&request).is_ok()
            });
            let (device, end) = if completed {
                (1, MigrationEnd::Completed)
            } else {
                (0, MigrationEnd::TargetLost)
            };
            assert_eq!(coordinator.get_kernel_device(&kernel), Some(device));
            assert_eq!(*ends.lock().unwrap(), [end]);
            ends.lock().unwrap().clear();
            coordinator.remove_kernel(&kernel).unwrap();
            coordinator.set_device_state(1, DeviceState::Probation).unwrap();
            coordinator.set_device_state(1, DeviceState::Active).unwrap();
        });
    });
}

#[test]
fn memory_is_never_promised_twice() {
    within(LIMIT, || {
        race(100, |_| {
            let coordinator = machine(2, MultiGpuConfig::default());
            let start = Barrier::new(THREADS);
            let options = LaunchOptions::new().with_required_memory(5 * GIB);
            let placed: usize = thread::scope(|scope| {
                let place = || {
                    start.wait();
                    usize::from(coordinator.place(KernelId::new("k"), &options).is_ok())
                };
                let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(place)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).sum()
            });
            assert_eq!(placed, 6, "three times 5 GiB fit into 16 GiB, on each of two devices");
        });
    });
}

#[test]
fn moves_in_opposite_directions_do_not_deadlock() {
    within(LIMIT, || {
        let coordinator = machine(2, MultiGpuConfig::default());
        thread::scope(|scope| {
            for thread in 0..4 {
                let coordinator = &coordinator;
                scope.spawn(move || {
                    let kernels: Vec<_> = (0..8).map(|_| KernelId::new("k")).collect();
                    for round in 0..10_000 {
                        for &kernel in &kernels {
                            coordinator.assign_kernel(kernel, (round + thread) % 2).unwrap();
                        }
                    }
                });
            }
        });
        assert_eq!(coordinator.stats().mapped_kernels, 32);
    });
}
