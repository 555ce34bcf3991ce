//! Taking a device out of service: it is leaving at once, and every kernel on it gets a plan or is
//! named an orphan.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::select::{Wish, capability_figure, turns_until};
use super::slot::{DeviceSlot, SlotView};
use super::{
    CoordinatorError, CoordinatorEvent, DeviceState, DeviceStatus, DeviceUnregisterResult,
    KernelActivity, KernelMigrationPlan, LaunchOptions, LoadBalancingStrategy, MigrationEnd,
    MigrationPriority, MultiGpuCoordinator, Result,
};
use crate::id::KernelId;

/// Size of the transfer for which links are compared, in bytes.
const TRANSFER_BYTES: u64 = 1 << 20;

/// A kernel that is to be moved, and what the plan must heed.
struct Passenger {
    kernel: KernelId,
    priority: MigrationPriority,
    options: Option<Arc<LaunchOptions>>,
    bytes: u64,
    /// Where its running migration goes: room is reserved there.
    underway: Option<Arc<DeviceSlot>>,
}

/// A device that may take kernels, with the moves planned so far counted in.
struct Berth {
    slot: Arc<DeviceSlot>,
    view: SlotView,
    /// Time of a transfer from the leaving device; infinite where it is unknown.
    link_us: f64,
}

impl Wish<'_> {
    fn fits(&self, berth: &Berth) -> bool {
        self.refuse(&berth.slot, berth.view).is_none()
    }
}

impl MultiGpuCoordinator {
    /// Takes a device out of service. At once it is *leaving*: it is not selected, takes nothing
    /// new, relays nothing, and every migration to it has ended. Its kernels stay mapped to it.
    ///
    /// For every kernel the answer holds a plan or names it as an orphan. Plans count one another, so
    /// together they fit; they follow the configured strategy, and where that does not care, the
    /// nearest device comes first; they heed what the kernel asked for when it was placed, but where
    /// no preferred device has room others will do. Nothing is reserved: call [`request_planned_migration`](Self::request_planned_migration) for each,
    /// which may be refused if the world has changed. A kernel whose migration is running is planned
    /// to where it goes.
    ///
    /// When the last kernel is gone the index is free. Calling again plans anew for what is still
    /// there, and says so in `already_leaving`.
    ///
    /// Costs O(kernels on the device x devices).
    pub fn unregister_device(&self, index: usize) -> DeviceUnregisterResult {
        let mut result = DeviceUnregisterResult {
            device_index: index,
            incarnation: None,
            already_leaving: false,
            plans: Vec::new(),
            orphans: Vec::new(),
            selector_error: None,
        };
        let Some(slot) = self.registry.slot(index) else { return result };
        let (kernels, ended) = {
            let mut guard = slot.lock();
            if guard.is_retired() {
                return result;
            }
            result.already_leaving = guard.state() == DeviceState::Leaving;
            (guard.kernels(), guard.set_state(DeviceState::Leaving))
        };
        result.incarnation = Some(slot.incarnation);
        if !result.already_leaving {
            self.topology.outdate();
            let incarnation = slot.incarnation;
            self.observers.tell(&CoordinatorEvent::DeviceLeaving { index, incarnation });
        }
        for (request_id, reservation) in ended {
            self.tell_end(request_id, reservation.kernel, MigrationEnd::TargetLost);
        }
        if kernels.is_empty() {
            self.device_gone(&slot);
        } else {
            self.plan_departure(&slot, &kernels, &mut result);
        }
        result
    }

    fn plan_departure(
        &self,
        source: &Arc<DeviceSlot>,
        kernels: &[KernelId],
        result: &mut DeviceUnregisterResult,
    ) {
        let mut passengers: Vec<_> =
            kernels.iter().filter_map(|kernel| self.passenger(source, kernel)).collect();
        passengers.sort_by_key(|passenger| std::cmp::Reverse(passenger.priority));
        let mut berths = self.berths(source);
        let mut statuses = match self.config.load_balancing {
            LoadBalancingStrategy::Custom => self.get_all_status(),
            _ => Vec::new(),
        };
        for passenger in passengers {
            let target = match &passenger.underway {
                Some(target) => Some(Arc::clone(target)),
                None if result.selector_error.is_some() => None,
                None => self.find_berth(&passenger, &mut berths, &mut statuses).unwrap_or_else(
                    |error| {
                        result.selector_error = Some(error);
                        None
                    },
                ),
            };
            match target {
                Some(target) => result.plans.push(KernelMigrationPlan {
                    kernel: passenger.kernel,
                    source: source.index,
                    source_incarnation: source.incarnation,
                    target: target.index,
                    target_incarnation: target.incarnation,
                    priority: passenger.priority,
                }),
                None => result.orphans.push(passenger.kernel),
            }
        }
    }

    /// What the plan must know of a kernel; `None` if it is not on the device any more.
    fn passenger(&self, source: &Arc<DeviceSlot>, kernel: &KernelId) -> Option<Passenger> {
        let mut passenger = {
            let record = self.kernels.get(kernel)?;
            if !Arc::ptr_eq(&record.slot, source) {
                return None;
            }
            let underway = record.pending.as_deref().and_then(|pending| {
                let is_held = pending.target.lock().holds(pending.request.id);
                is_held.then(|| Arc::clone(&pending.target))
            });
            Passenger {
                kernel: *kernel,
                priority: MigrationPriority::default(),
                options: record.options.clone(),
                bytes: record.promise.bytes,
                underway,
            }
        };
        // This calls user code, so the record must be let go first.
        passenger.priority = self.calculate_migration_priority(kernel);
        Some(passenger)
    }

    /// The devices that may take kernels, the nearest first.
    fn berths(&self, source: &DeviceSlot) -> Vec<Berth> {
        let routes = self.routes();
        let link_us = |index| {
            let route = routes.route(source.index, index, TRANSFER_BYTES);
            route.and_then(|route| route.time_us(TRANSFER_BYTES)).unwrap_or(f64::INFINITY)
        };
        let table = self.registry.table();
        let mut berths: Vec<_> = table
            .iter()
            .filter_map(|slot| {
                let view = slot.view().filter(|view| view.state.is_selectable())?;
                Some(Berth { slot: Arc::clone(slot), view, link_us: link_us(slot.index) })
            })
            .collect();
        berths.sort_by(|a, b| a.link_us.total_cmp(&b.link_us));
        berths
    }

    /// A device for the kernel, whose room and memory are then counted as used; `None` where
    /// nothing fits.
    fn find_berth(
        &self,
        passenger: &Passenger,
        berths: &mut [Berth],
        statuses: &mut [DeviceStatus],
    ) -> Result<Option<Arc<DeviceSlot>>> {
        let mut asked = passenger.options.as_deref().cloned().unwrap_or_default();
        asked.required_memory_bytes = passenger.bytes;
        let mut wish = self.wish(&asked);
        if !berths.iter().any(|berth| wish.fits(berth)) {
            wish = wish.without_preference();
        }
        let fits = |berth: &&Berth| wish.fits(berth);
        let index = if self.config.load_balancing == LoadBalancingStrategy::Custom {
            if !berths.iter().any(|berth| wish.fits(berth)) {
                return Ok(None);
            }
            let index = self.ask_selector(statuses, &asked)?;
            if !berths.iter().any(|berth| berth.slot.index == index && fits(&berth)) {
                let berth = berths.iter().find(|berth| berth.slot.index == index);
                let reason = berth.and_then(|berth| wish.refuse(&berth.slot, berth.view));
                return Err(CoordinatorError::SelectorRefused { index, reason });
            }
            Some(index)
        } else {
            let least = berths.iter().filter(fits).map(|berth| self.berth_figure(berth)).min();
            let equals: Vec<usize> = berths
                .iter()
                .filter(fits)
                .filter(|berth| Some(self.berth_figure(berth)) == least)
                .map(|berth| berth.slot.index)
                .collect();
            self.select_migration_target(&equals)
        };
        let Some(index) = index else { return Ok(None) };
        let taken = berths.iter_mut().find(|berth| berth.slot.index == index);
        let taken = taken.expect("the index is that of a berth");
        taken.view.kernels += 1;
        taken.view.available_bytes = taken.view.available_bytes.saturating_sub(passenger.bytes);
        if let Some(status) = statuses.iter_mut().find(|status| status.index() == index) {
            status.kernel_count = taken.view.kernels;
            status.available_memory_bytes = taken.view.available_bytes;
        }
        Ok(Some(Arc::clone(&taken.slot)))
    }

    /// What the strategy looks at, the least being best; equal where the strategy does not care.
    fn berth_figure(&self, berth: &Berth) -> (u64, usize) {
        let used = berth.view.kernels + berth.view.reserved;
        match self.config.load_balancing {
            LoadBalancingStrategy::FirstAvailable => (berth.slot.index as u64, 0),
            LoadBalancingStrategy::RoundRobin => (0, 0),
            LoadBalancingStrategy::LeastLoaded | LoadBalancingStrategy::Custom => (0, used),
            LoadBalancingStrategy::MemoryBased => (u64::MAX - berth.view.available_bytes, used),
            LoadBalancingStrategy::ComputeCapability => {
                (u64::MAX - capability_figure(&berth.slot), used)
            }
        }
    }

    /// One of the candidates, which the strategy holds for equally good and which are ordered by
    /// distance: the next in turn for round robin, else the nearest.
    fn select_migration_target(&self, candidates: &[usize]) -> Option<usize> {
        if self.config.load_balancing != LoadBalancingStrategy::RoundRobin {
            return candidates.first().copied();
        }
        let in_turn =
            |turn| candidates.iter().copied().min_by_key(|&candidate| turns_until(candidate, turn));
        let mut chosen = None;
        // The closure is called again until no other thread comes between.
        let _ = self.turn.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |turn| {
            chosen = in_turn(turn);
            chosen.map(|index| index.wrapping_add(1))
        });
        chosen
    }

    /// How urgently a kernel should move: from its declared priority, its mailbox depth and how
    /// long it has been idle, by the rule of [`MigrationPriority::from_activity`].
    fn calculate_migration_priority(&self, kernel_id: &KernelId) -> MigrationPriority {
        let source = self.activity_source.read().clone();
        let told = source.and_then(|source| self.observers.guarded(|| source(kernel_id)).flatten());
        let activity = told.unwrap_or_else(|| KernelActivity {
            priority: self.kernels.get(kernel_id).map(|record| record.priority).unwrap_or_default(),
            ..KernelActivity::default()
        });
        MigrationPriority::from_activity(&activity)
    }
}
