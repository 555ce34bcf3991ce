//! Threads that launch, connect, send, move, remove and lose at random; then every law is checked.
//! `HOPWISE_STRESS_SECONDS` sets how long, 2 seconds if it is not set.

#[path = "support/fleet_programs.rs"]
mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hopwise_core::device::Device;
use hopwise_core::fleet::{Endpoint, Fleet, FleetError, KernelPhase, KernelSpec, MessageTotals};
use hopwise_core::host::{HostBackend, HostDevice, HostOptions};
use hopwise_core::id::KernelId;
use hopwise_core::message::Message;
use support::{PATIENCE, relay, within_time};

/// Kernels of a run at any time, about.
const KERNELS: usize = 24;

/// A xorshift generator (Marsaglia 2003): a run can be repeated but for the threads' timing.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit.max(1) as u64).expect("below a usize")
    }
}

/// What the threads share.
struct World {
    backend: HostBackend,
    fleet: Fleet,
    kernels: Mutex<Vec<KernelId>>,
    devices: Mutex<Vec<(usize, Arc<HostDevice>)>>,
    endpoints: Mutex<Vec<Arc<Endpoint>>>,
    moved: AtomicU64,
}

impl World {
    fn new() -> Self {
        let backend = HostBackend::new(HostOptions::new(4).with_workers(1));
        let devices: Vec<_> =
            (0..3).map(|ordinal| backend.open_host(ordinal).expect("it opens")).collect();
        let builder = devices.iter().fold(Fleet::builder(), |builder, device| {
            builder.device(Arc::clone(device) as Arc<dyn Device>)
        });
        let fleet = builder.build().expect("three devices");
        let devices = Mutex::new(devices.into_iter().enumerate().collect());
        let (kernels, endpoints) = (Mutex::default(), Mutex::default());
        Self { backend, fleet, kernels, devices, endpoints, moved: AtomicU64::new(0) }
    }

    fn any_kernel(&self, random: &mut Random) -> Option<KernelId> {
        let kernels = self.kernels.lock().expect("no thread panics");
        (!kernels.is_empty()).then(|| kernels[random.below(kernels.len())])
    }

    fn any_endpoint(&self, random: &mut Random) -> Option<Arc<Endpoint>> {
        let endpoints = self.endpoints.lock().expect("no thread panics");
        (!endpoints.is_empty()).then(|| Arc::clone(&endpoints[random.below(endpoints.len())]))
    }

    /// Does something. What is refused because another thread was faster is fine.
    fn act(&self, random: &mut Random, losses: bool) -> Option<()> {
        let fleet = &self.fleet;
        match random.below(100) {
            0..10 => self.launch(random),
            10..30 => {
                // Only to later kernels, so that no circle can stand still for ever.
                let (from, to) = (self.any_kernel(random)?, self.any_kernel(random)?);
                if from < to {
                    let _ = fleet.connect(&from, "out", &to, "in");
                }
            }
            30..35 => {
                let endpoint = Arc::new(fleet.endpoint("out", 1 + random.below(8)));
                let _ = fleet.connect_endpoint(&self.any_kernel(random)?, "out", &endpoint);
                let mut endpoints = self.endpoints.lock().expect("no thread panics");
                endpoints.push(endpoint);
                if endpoints.len() > 8 {
                    endpoints.swap_remove(random.below(8));
                }
            }
            35..65 => {
                let sender = fleet.sender("s", &self.any_kernel(random)?, "in").ok()?;
                for tag in 0..8 {
                    let _ = sender.try_send(Message::from_words(tag, &[tag]));
                }
            }
            65..75 => while self.any_endpoint(random)?.try_recv().is_ok() {},
            75..95 => self.migrate(random)?,
            95..97 => {
                let kernel = self.any_kernel(random)?;
                if fleet.remove(&kernel).is_ok() {
                    self.kernels.lock().expect("no thread panics").retain(|known| *known != kernel);
                }
            }
            97 if losses && random.below(20) == 0 => self.lose(random),
            _ => drop((fleet.statuses(), fleet.waiting(), fleet.wait_idle(Duration::ZERO))),
        }
        Some(())
    }

    fn launch(&self, random: &mut Random) {
        if self.kernels.lock().expect("no thread panics").len() < KERNELS {
            let spec = KernelSpec::new("k", relay(), 8);
            let capacity = 1 + random.below(6);
            if let Ok(kernel) = self.fleet.launch(spec.with_mailbox_capacity(capacity)) {
                self.kernels.lock().expect("no thread panics").push(kernel);
            }
        }
    }

    fn migrate(&self, random: &mut Random) -> Option<()> {
        let (fleet, kernel) = (&self.fleet, self.any_kernel(random)?);
        let devices = self.devices.lock().expect("no thread panics").clone();
        let request = fleet.request_migration(&kernel, devices[random.below(devices.len())].0);
        let request = request.ok()?;
        let moved = (|| -> Result<(), FleetError> {
            let twin = fleet.create_twin(&request)?;
            let held = fleet.hold(&kernel, PATIENCE)?;
            let mut state = [0; 8];
            held.instance().read_state(0, &mut state)?;
            twin.instance().write_state(0, &state)?;
            fleet.hand_over(held, twin, &request)
        })();
        match moved {
            Ok(()) => drop(self.moved.fetch_add(1, Ordering::Relaxed)),
            // It may have ended by itself: replaced, or its target lost.
            Err(_) => drop(fleet.cancel_migration(&request)),
        }
        Some(())
    }

    /// Loses a device, and opens another in its place.
    fn lose(&self, random: &mut Random) {
        let mut devices = self.devices.lock().expect("no thread panics");
        let at = random.below(devices.len());
        devices[at].1.lose("pulled out");
        let fresh = self.backend.open_host(random.below(4)).expect("it opens");
        if let Ok(index) = self.fleet.add_device(Arc::clone(&fresh) as Arc<dyn Device>) {
            devices[at] = (index, fresh);
        }
    }

    /// Lets everything run dry, then checks.
    fn check(&self) {
        for status in self.fleet.statuses() {
            if matches!(status.phase, KernelPhase::Lost { .. }) {
                self.fleet.remove(&status.kernel).expect("a lost kernel can be removed");
            }
        }
        let deadline = Instant::now() + PATIENCE;
        let mut idle = Err(());
        while idle.is_err() && Instant::now() < deadline {
            for endpoint in self.endpoints.lock().expect("no thread panics").iter() {
                while endpoint.try_recv().is_ok() {}
            }
            idle = self.fleet.wait_idle(Duration::from_millis(1)).map_err(drop);
        }
        assert!(idle.is_ok(), "{:?}", self.fleet.wait_idle(Duration::ZERO));
        for endpoint in self.endpoints.lock().expect("no thread panics").iter() {
            while endpoint.try_recv().is_ok() {}
        }
        let totals = MessageTotals::of(&self.fleet.ledgers());
        let odd = (totals.lost, totals.duplicated, totals.out_of_order, totals.waiting);
        assert_eq!(odd, (0, 0, 0, 0), "{totals:?}");
        assert_eq!(totals.sent, totals.delivered + totals.dead_lettered);
        let coordinator = self.fleet.coordinator();
        for status in self.fleet.statuses() {
            assert_eq!((&status.phase, status.held), (&KernelPhase::Ready, false), "{status:?}");
            assert_eq!(coordinator.get_kernel_device(&status.kernel), Some(status.device));
            let sender = self.fleet.sender("last", &status.kernel, "in").expect("a port");
            sender.send_timeout(Message::default(), PATIENCE).expect("it answers the host");
        }
        let reserved: usize = coordinator.get_all_status().iter().map(|one| one.reserved).sum();
        assert_eq!(reserved, 0, "no reservation outlives its migration");
        assert!(self.moved.load(Ordering::Relaxed) > 0, "nothing was moved");
    }
}

fn stress(seed: u64, losses: bool) {
    let seconds = std::env::var("HOPWISE_STRESS_SECONDS").ok().and_then(|text| text.parse().ok());
    let until = Instant::now() + Duration::from_secs(seconds.unwrap_or(2));
    within_time(move || {
        let (world, stop) = (World::new(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for thread in 0..8u64 {
                let (world, stop) = (&world, &stop);
                scope.spawn(move || {
                    let mut random =
                        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | (thread + 1));
                    while !stop.load(Ordering::Relaxed) {
                        let _ = world.act(&mut random, losses);
                    }
                });
            }
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
            stop.store(true, Ordering::Relaxed);
        });
        world.check();
        world.fleet.shutdown(Duration::ZERO);
    });
}

#[test]
fn moves_and_removals_at_random_keep_every_law() {
    stress(1, false);
}

#[test]
fn losses_at_random_keep_every_law() {
    stress(2, true);
}
