//! Choosing a device: who fits, who is best, and why the others do not fit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::events::panic_text;
use super::slot::{DeviceSlot, SlotView};
use super::topology::TopologyView;
use super::{
    Candidate, CoordinatorError, DeviceStatus, Explanation, LaunchOptions, LoadBalancingStrategy,
    MultiGpuCoordinator, Refusal, RefusalReason, Result, Selector,
};

/// What a kernel asks for, with everything that must be looked up once per choice.
pub(super) struct Wish<'a> {
    pub(super) options: &'a LaunchOptions,
    preferred: &'a [usize],
    /// Set where the options ask for peer access.
    peers: Option<Arc<TopologyView>>,
}

/// Orders devices that fit: the least comes first. The strategy's own figure, then kernels and
/// reservations, then the index.
type Rank = (u64, usize, usize);

/// A device that fits, and where it stands.
type Ranked = (Rank, Arc<DeviceSlot>, SlotView);

/// A look at every device.
struct Survey {
    /// Best first.
    ranked: Vec<Ranked>,
    /// By index.
    refusals: Vec<Refusal>,
}

impl Wish<'_> {
    /// The first obstacle, if the device does not fit.
    pub(super) fn refuse(&self, slot: &DeviceSlot, view: SlotView) -> Option<RefusalReason> {
        if !view.state.is_selectable() {
            return Some(RefusalReason::State(view.state));
        }
        if !self.preferred.is_empty() && !self.preferred.contains(&slot.index) {
            return Some(RefusalReason::NotPreferred);
        }
        if self.options.excluded_devices.contains(&slot.index) {
            return Some(RefusalReason::Excluded);
        }
        self.refuse_facts(slot).or_else(|| self.refuse_figures(slot, view))
    }

    /// The same wish for whatever device.
    pub(super) fn without_preference(self) -> Self {
        Self { preferred: &[], ..self }
    }

    fn refuse_facts(&self, slot: &DeviceSlot) -> Option<RefusalReason> {
        let found = slot.facts.backend;
        if let Some(wanted) = self.options.backend.filter(|&wanted| wanted != found) {
            return Some(RefusalReason::Backend { wanted, found });
        }
        let found = slot.facts.compute_capability;
        if let Some(wanted) = self.options.min_compute_capability
            && found.is_none_or(|found| found < wanted)
        {
            return Some(RefusalReason::ComputeCapability { wanted, found });
        }
        let with = self.options.peer_access_with?;
        let reaches = |view: &TopologyView| with == slot.index || view.can_access(slot.index, with);
        let refused = !self.peers.as_deref().is_some_and(reaches);
        refused.then_some(RefusalReason::NoPeerAccess { with })
    }

    fn refuse_figures(&self, slot: &DeviceSlot, view: SlotView) -> Option<RefusalReason> {
        let SlotView { kernels, reserved, available_bytes, .. } = view;
        if kernels + reserved >= slot.capacity {
            return Some(RefusalReason::Full { kernels, reserved, capacity: slot.capacity });
        }
        let required_bytes = self.options.required_memory_bytes;
        (required_bytes > available_bytes)
            .then_some(RefusalReason::Memory { required_bytes, available_bytes })
    }
}

impl MultiGpuCoordinator {
    /// Chooses a device by the configured strategy. Nothing is reserved: by the time the caller acts
    /// the device may be full. [`place`](Self::place) chooses and records in one step.
    /// Costs O(devices).
    ///
    /// # Errors
    ///
    /// [`CoordinatorError::NoDevice`] with a reason for every device; with the strategy `Custom`
    /// also [`CoordinatorError::NoSelector`], [`CoordinatorError::SelectorPanicked`] and
    /// [`CoordinatorError::SelectorRefused`].
    pub fn select_device(&self, options: &LaunchOptions) -> Result<usize> {
        self.choose(options).map(|slot| slot.index)
    }

    /// How a device would be chosen now: those that fit, best first, and why the others do not.
    /// Changes nothing; round robin does not go on. The custom selector is asked.
    #[must_use]
    pub fn explain(&self, options: &LaunchOptions) -> Explanation {
        let wish = self.wish(options);
        let turn = self.turn.load(Ordering::Relaxed);
        let Survey { mut ranked, refusals } = self.survey(&wish, turn);
        let mut selector_error = None;
        let mut chosen = None;
        if self.config.load_balancing == LoadBalancingStrategy::Custom && !ranked.is_empty() {
            match self.choose_custom(&wish) {
                Ok(slot) => chosen = Some(slot.index),
                Err(error) => selector_error = Some(error),
            }
            ranked.sort_by_key(|(_, slot, _)| Some(slot.index) != chosen);
        }
        let with_score = |(position, (_, slot, view)): (usize, &Ranked)| Candidate {
            device: slot.index,
            score: self.score(slot, *view, position, chosen),
        };
        let candidates = ranked.iter().enumerate().map(with_score).collect();
        Explanation { candidates, refusals, selector_error }
    }

    /// The best device of those that fit.
    pub(super) fn choose(&self, options: &LaunchOptions) -> Result<Arc<DeviceSlot>> {
        let wish = self.wish(options);
        match self.config.load_balancing {
            LoadBalancingStrategy::Custom => self.choose_custom(&wish),
            LoadBalancingStrategy::RoundRobin => self.choose_in_turn(&wish),
            _ => self.best(&wish, 0),
        }
    }

    pub(super) fn wish<'a>(&'a self, options: &'a LaunchOptions) -> Wish<'a> {
        let preferred = if options.preferred_devices.is_empty() {
            &self.config.preferred_devices
        } else {
            &options.preferred_devices
        };
        let peers = options.peer_access_with.map(|_| self.topology_view());
        Wish { options, preferred, peers }
    }

    /// The best device, or the refusals of all. Refusals cost memory, so they are collected only
    /// when nothing fits at first sight.
    fn best(&self, wish: &Wish<'_>, turn: usize) -> Result<Arc<DeviceSlot>> {
        let table = self.registry.table();
        let fitting = table.iter().filter_map(|slot| {
            let view = slot.view()?;
            let fits = wish.refuse(slot, view).is_none();
            fits.then(|| (self.rank(slot, view, turn), slot))
        });
        match fitting.min_by_key(|(rank, _)| *rank) {
            Some((_, slot)) => Ok(Arc::clone(slot)),
            None => self.best_or_refusals(wish, turn),
        }
    }

    fn best_or_refusals(&self, wish: &Wish<'_>, turn: usize) -> Result<Arc<DeviceSlot>> {
        let Survey { ranked, refusals } = self.survey(wish, turn);
        match ranked.into_iter().next() {
            Some((_, slot, _)) => Ok(slot),
            None => Err(CoordinatorError::NoDevice { refusals }),
        }
    }

    /// Looks at every device: those that fit, best first, and why the others do not.
    fn survey(&self, wish: &Wish<'_>, turn: usize) -> Survey {
        let table = self.registry.table();
        let mut survey = Survey { ranked: Vec::new(), refusals: Vec::new() };
        for slot in table.iter() {
            let Some(view) = slot.view() else { continue };
            match wish.refuse(slot, view) {
                Some(reason) => survey.refusals.push(Refusal { device: slot.index, reason }),
                None => survey.ranked.push((self.rank(slot, view, turn), Arc::clone(slot), view)),
            }
        }
        for &device in wish.preferred {
            if !table.iter().any(|slot| slot.index == device && !slot.is_retired()) {
                survey.refusals.push(Refusal { device, reason: RefusalReason::NotRegistered });
            }
        }
        survey.ranked.sort_unstable_by_key(|(rank, ..)| *rank);
        survey.refusals.sort_by_key(|refusal| refusal.device);
        survey.refusals.dedup();
        survey
    }

    fn choose_in_turn(&self, wish: &Wish<'_>) -> Result<Arc<DeviceSlot>> {
        let mut turn = self.turn.load(Ordering::Relaxed);
        loop {
            let slot = self.best(wish, turn)?;
            let next = slot.index.wrapping_add(1);
            // Another thread had this turn if the exchange fails; ours is the one after it.
            let exchange =
                self.turn.compare_exchange(turn, next, Ordering::Relaxed, Ordering::Relaxed);
            match exchange {
                Ok(_) => return Ok(slot),
                Err(present) => turn = present,
            }
        }
    }

    fn choose_custom(&self, wish: &Wish<'_>) -> Result<Arc<DeviceSlot>> {
        loop {
            // Where nothing fits the selector has no right answer to give.
            self.best(wish, 0)?;
            let statuses = self.get_all_status();
            let index = self.ask_selector(&statuses, wish.options)?;
            let Some(slot) = self.registry.slot(index) else {
                return Err(CoordinatorError::SelectorRefused { index, reason: None });
            };
            let Some(view) = slot.view() else { continue };
            let Some(reason) = wish.refuse(&slot, view) else { return Ok(slot) };
            // What fitted when the selector looked was taken meanwhile: it is asked again.
            let shown = statuses.iter().find(|shown| shown.incarnation == slot.incarnation);
            if shown.is_none_or(|shown| wish.refuse(&slot, SlotView::from(shown)).is_some()) {
                return Err(CoordinatorError::SelectorRefused { index, reason: Some(reason) });
            }
        }
    }

    /// Calls the custom selector, with no lock held.
    pub(super) fn ask_selector(
        &self,
        statuses: &[DeviceStatus],
        options: &LaunchOptions,
    ) -> Result<usize> {
        let selector: Selector =
            self.selector.read().clone().ok_or(CoordinatorError::NoSelector)?;
        catch_unwind(AssertUnwindSafe(|| selector(statuses, options))).map_err(|payload| {
            CoordinatorError::SelectorPanicked { message: panic_text(payload.as_ref()) }
        })
    }

    fn rank(&self, slot: &DeviceSlot, view: SlotView, turn: usize) -> Rank {
        let used = view.kernels + view.reserved;
        let figure = match self.config.load_balancing {
            LoadBalancingStrategy::FirstAvailable => slot.index as u64,
            LoadBalancingStrategy::LeastLoaded | LoadBalancingStrategy::Custom => used as u64,
            LoadBalancingStrategy::RoundRobin => turns_until(slot.index, turn),
            LoadBalancingStrategy::MemoryBased => u64::MAX - view.available_bytes,
            LoadBalancingStrategy::ComputeCapability => u64::MAX - capability_figure(slot),
        };
        (figure, used, slot.index)
    }

    #[expect(clippy::cast_precision_loss, reason = "a score is for people")]
    fn score(
        &self,
        slot: &DeviceSlot,
        view: SlotView,
        position: usize,
        chosen: Option<usize>,
    ) -> f64 {
        match self.config.load_balancing {
            LoadBalancingStrategy::FirstAvailable => -(slot.index as f64),
            LoadBalancingStrategy::LeastLoaded => {
                1.0 - (view.kernels + view.reserved) as f64 / slot.capacity as f64
            }
            LoadBalancingStrategy::RoundRobin => -(position as f64),
            LoadBalancingStrategy::MemoryBased => view.available_bytes as f64,
            LoadBalancingStrategy::ComputeCapability => match slot.facts.compute_capability {
                Some(found) => f64::from(found.major) + f64::from(found.minor) / 100.0,
                None => -1.0,
            },
            LoadBalancingStrategy::Custom => f64::from(u8::from(chosen == Some(slot.index))),
        }
    }
}

/// Larger for a higher compute capability; zero without one.
pub(super) fn capability_figure(slot: &DeviceSlot) -> u64 {
    slot.facts.compute_capability.map_or(0, |found| {
        (u64::from(found.major) << 32 | u64::from(found.minor)).saturating_add(1)
    })
}

/// Orders indices from `turn` on, and then those before it.
pub(super) fn turns_until(index: usize, turn: usize) -> u64 {
    index.wrapping_sub(turn) as u64
}
