//! Which kernel is on which device, and who has room.
//!
//! [`MultiGpuCoordinator`] keeps records; it runs nothing. People who run their kernels themselves
//! use it directly. A [`Fleet`](crate::fleet) runs kernels and keeps its records here; those kernels
//! are *managed*, and the direct mutators answer
//! [`ManagedByFleet`](CoordinatorError::ManagedByFleet) for them.
//!
//! # What always holds, under any number of threads
//!
//! - An index means one registered device. Registering it again, once the old device left and is
//!   empty, makes a new [`Incarnation`].
//! - Selection returns a device that fits, or for every device the reason why it does not.
//! - Kernels plus reservations never exceed `max_kernels_per_device`.
//! - Except by `assign_kernel`, a mapping changes only when a migration is completed. A kernel has
//!   at most one request; a request ends once, and its reservation with it.
//! - A device that was unregistered is *leaving*: nothing new comes to it, nothing passes through
//!   it, and its kernels stay mapped until they are moved or removed.
//! - Selectors, observers and activity sources are called with no lock held. They may call back, and
//!   may panic.
//!
//! # Locks
//!
//! A thread that holds a lock takes only locks of a higher rank, and none twice.
//!
//! | rank | lock | guards |
//! |---|---|---|
//! | 1 | entry of the kernel map | one kernel's record; whoever changes it holds the entry from beginning to end |
//! | 2 | device slot; two of them in order of incarnation | state, kernel list, reservations and memory of one registration |
//! | 1 | rebuild of the topology view | that one thread computes the routes of an epoch |
//! | 3 | device table, topology set by hand, topology view, facts, selector, source, observers | one pointer each, held for the length of a copy |
//!
//! The two locks of rank 1 are never held together. A kernel's record says on which slot the kernel
//! is, and the slot's list says which kernels it has. Both change under the locks of the entry and of
//! the slots concerned, so the record, the lists and the counts agree whenever these are free; room
//! is checked and taken under the slot's lock, so no race exceeds the capacity. A reservation lives
//! in the target's slot and nowhere else: when the target leaves or is lost all of its reservations
//! end in that instant, and a record that still names one finds it gone.
//!
//! Readers take no slot's lock: the figures of a slot are copied into atomic words whenever its lock
//! is released.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use dashmap::DashMap;
use parking_lot::RwLock;

use crate::device_info::DeviceInfo;
use crate::id::KernelId;

pub use config::{LoadBalancingStrategy, MultiGpuBuilder, MultiGpuConfig};
pub use error::{CoordinatorError, Result, StaleReason};
pub use events::{CoordinatorEvent, MigrationEnd};
pub use options::LaunchOptions;
pub use priority::{KernelActivity, KernelPriority, MigrationPriority};
pub use refusal::{Candidate, Explanation, Placement, Refusal, RefusalReason};
pub use request::{DeviceUnregisterResult, Incarnation, KernelMigrationPlan, MigrationRequest};
pub use state::DeviceState;
pub use stats::MultiGpuStats;
pub use status::DeviceStatus;

mod config;
mod options;

mod state;
mod stats;
mod status;

mod placement;
mod select;

mod migration;
mod priority;
mod request;
mod unregister;

mod k2k;
mod topology;

mod events;
mod managed;
mod registry;

mod kernel_list;
mod memory;
mod slot;

mod error;
mod refusal;

use events::Observers;
use placement::Record;
use registry::Registry;
use topology::TopologyCache;

/// The answer of a custom selector: a device's index.
type Selector = Arc<dyn Fn(&[DeviceStatus], &LaunchOptions) -> usize + Send + Sync>;

/// Tells what a kernel is doing; `None` for a kernel that it does not know.
pub type ActivitySource = Arc<dyn Fn(&KernelId) -> Option<KernelActivity> + Send + Sync>;

/// Keeps the records of kernels on the devices of one machine. See the [module](self) for what
/// holds.
///
/// ```
/// use hopwise_core::{
///     BackendKind, DeviceInfo, KernelId, LaunchOptions, MultiGpuConfig, MultiGpuCoordinator,
/// };
///
/// let coordinator = MultiGpuCoordinator::new(MultiGpuConfig::default());
/// coordinator.register_device(DeviceInfo::new(0, "first", BackendKind::Host))?;
/// coordinator.register_device(DeviceInfo::new(1, "second", BackendKind::Host))?;
///
/// let kernel = KernelId::new("strip-0");
/// let placement = coordinator.place(kernel, &LaunchOptions::new())?;
/// assert_eq!(coordinator.get_kernel_device(&kernel), Some(placement.device));
///
/// // Drain the device: the plan moves nothing yet.
/// let leaving = coordinator.unregister_device(placement.device);
/// let plan = leaving.plans[0];
/// assert_eq!(coordinator.get_kernel_device(&kernel), Some(plan.source));
/// let request = coordinator.request_planned_migration(&plan)?;
/// // ... move the kernel's state ...
/// coordinator.complete_migration(&request)?;
/// assert_eq!(coordinator.get_kernel_device(&kernel), Some(plan.target));
/// # Ok::<(), hopwise_core::CoordinatorError>(())
/// ```
pub struct MultiGpuCoordinator {
    config: MultiGpuConfig,
    registry: Registry,
    kernels: DashMap<KernelId, Record>,
    /// The index from which on round robin looks for a device.
    turn: AtomicUsize,
    launched: AtomicU64,
    next_request: AtomicU64,
    selector: RwLock<Option<Selector>>,
    activity_source: RwLock<Option<ActivitySource>>,
    topology: TopologyCache,
    observers: Observers,
}

/// On whose behalf a record is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    /// Whoever holds the coordinator.
    Direct,
    /// The fleet, which changes managed kernels only.
    Fleet,
}

impl MultiGpuCoordinator {
    /// A coordinator without devices.
    #[must_use]
    pub fn new(config: MultiGpuConfig) -> Arc<Self> {
        Arc::new(Self {
            config,
            registry: Registry::default(),
            kernels: DashMap::new(),
            turn: AtomicUsize::new(0),
            launched: AtomicU64::new(0),
            next_request: AtomicU64::new(1),
            selector: RwLock::new(None),
            activity_source: RwLock::new(None),
            topology: TopologyCache::default(),
            observers: Observers::default(),
        })
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &MultiGpuConfig {
        &self.config
    }

    /// The device of a kernel: the one that it runs on, also while it is being migrated or its
    /// device is leaving or lost. Costs O(1).
    #[must_use]
    pub fn get_kernel_device(&self, kernel_id: &KernelId) -> Option<usize> {
        self.kernels.get(kernel_id).map(|record| record.slot.index)
    }

    /// The kernels of a device, in order of arrival. Costs O(kernels on the device). Empty for an
    /// index that no device has.
    #[must_use]
    pub fn kernels_on_device(&self, device_index: usize) -> Vec<KernelId> {
        match self.registry.slot(device_index) {
            Some(slot) => slot.lock().kernels(),
            None => Vec::new(),
        }
    }

    /// All devices, those that are leaving but not yet empty among them, by index.
    /// Costs O(devices).
    #[must_use]
    pub fn get_all_status(&self) -> Vec<DeviceStatus> {
        self.registry.table().iter().filter_map(|slot| slot.status()).collect()
    }

    /// One device; also one that is leaving and not yet empty. Costs O(log devices).
    #[must_use]
    pub fn get_device_status(&self, device_index: usize) -> Option<DeviceStatus> {
        self.registry.slot(device_index)?.status()
    }

    /// Sums over all devices. Costs O(devices).
    #[must_use]
    pub fn stats(&self) -> MultiGpuStats {
        MultiGpuStats {
            total_kernels: self.launched.load(Ordering::Relaxed),
            callback_panics: self.observers.panics(),
            ..MultiGpuStats::sum(&self.get_all_status())
        }
    }

    /// The devices that are registered and not leaving, by index. Their `available_memory_bytes` is
    /// the last report.
    #[must_use]
    pub fn devices(&self) -> Vec<DeviceInfo> {
        let table = self.registry.table();
        let staying = table.iter().filter(|slot| slot.is_staying());
        staying.map(|slot| DeviceInfo::clone(&slot.info())).collect()
    }

    /// The facts about one device; `None` also if it is leaving.
    #[must_use]
    pub fn device(&self, index: usize) -> Option<DeviceInfo> {
        let slot = self.registry.slot(index).filter(|slot| slot.is_staying())?;
        Some(DeviceInfo::clone(&slot.info()))
    }

    /// How many devices are registered and not leaving.
    #[must_use]
    pub fn device_count(&self) -> usize {
        self.registry.table().iter().filter(|slot| slot.is_staying()).count()
    }

    /// Sets the selector that the strategy [`Custom`](LoadBalancingStrategy::Custom) asks. It gets
    /// the status of every device and the options, and answers with a device's index, which is
    /// checked. It is called with no lock held, may call back, and may panic: that is an error of
    /// the call that asked.
    pub fn set_custom_selector<F>(&self, selector: F)
    where
        F: Fn(&[DeviceStatus], &LaunchOptions) -> usize + Send + Sync + 'static,
    {
        let before = self.selector.write().replace(Arc::new(selector));
        // The old one is user code, too: it is dropped with no lock held.
        drop(before);
    }

    /// Sets who tells what kernels are doing, for migration priorities. It is called with no lock
    /// held, and may panic: then, or where it answers `None`, only the declared priority counts.
    pub fn set_activity_source(&self, source: ActivitySource) {
        let before = self.activity_source.write().replace(source);
        drop(before);
    }

    /// Adds an observer of everything that changes. It is called with no lock held, on the thread
    /// that made the change, and may call back. A panic in it is caught and counted
    /// ([`MultiGpuStats::callback_panics`]).
    pub fn add_observer(&self, observer: impl Fn(&CoordinatorEvent) + Send + Sync + 'static) {
        self.observers.add(Arc::new(observer));
    }
}

impl std::fmt::Debug for MultiGpuCoordinator {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("MultiGpuCoordinator")
            .field("config", &self.config)
            .field("devices", &self.get_all_status())
            .finish_non_exhaustive()
    }
}
