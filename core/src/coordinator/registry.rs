//! The devices: registering them, their states and their memory reports.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

use super::slot::DeviceSlot;
use super::{
    CoordinatorError, CoordinatorEvent, DeviceState, Incarnation, MigrationEnd,
    MultiGpuCoordinator, Result,
};
use crate::device_info::DeviceInfo;

/// Slots by ascending index. Those that left and are empty may remain until the next change, and
/// count as absent.
type Table = Arc<Vec<Arc<DeviceSlot>>>;

/// The table of devices: readers copy a pointer, writers put a new table in its place.
#[derive(Default)]
pub(super) struct Registry {
    table: RwLock<Table>,
    incarnations: AtomicU64,
}

impl Registry {
    pub(super) fn table(&self) -> Table {
        Arc::clone(&self.table.read())
    }

    pub(super) fn slot(&self, index: usize) -> Option<Arc<DeviceSlot>> {
        let table = self.table.read();
        let position = table.binary_search_by_key(&index, |slot| slot.index).ok()?;
        Some(Arc::clone(&table[position])).filter(|slot| !slot.is_retired())
    }

    /// The slot, or an error that names the indices in use.
    pub(super) fn known_slot(&self, index: usize) -> Result<Arc<DeviceSlot>> {
        self.slot(index)
            .ok_or_else(|| CoordinatorError::UnknownDevice { index, known: self.indices() })
    }

    pub(super) fn indices(&self) -> Vec<usize> {
        let table = self.table();
        table.iter().filter(|slot| !slot.is_retired()).map(|slot| slot.index).collect()
    }

    fn insert(&self, info: DeviceInfo, capacity: usize) -> Result<Arc<DeviceSlot>> {
        let mut table = self.table.write();
        if let Ok(position) = table.binary_search_by_key(&info.index, |slot| slot.index)
            && let Some(view) = table[position].view()
        {
            return Err(match view.state {
                DeviceState::Leaving => {
                    CoordinatorError::IndexLeaving { index: info.index, kernels: view.kernels }
                }
                _ => CoordinatorError::IndexInUse {
                    index: info.index,
                    name: table[position].facts.name.clone(),
                },
            });
        }
        let incarnation = Incarnation(self.incarnations.fetch_add(1, Ordering::Relaxed) + 1);
        let slot = Arc::new(DeviceSlot::new(info, incarnation, capacity));
        let mut next: Vec<_> = table.iter().filter(|slot| !slot.is_retired()).cloned().collect();
        let position = next.partition_point(|other| other.index < slot.index);
        next.insert(position, Arc::clone(&slot));
        *table = Arc::new(next);
        Ok(slot)
    }

    /// Drops the slots that left and are empty.
    fn sweep(&self) {
        let mut table = self.table.write();
        let next: Vec<_> = table.iter().filter(|slot| !slot.is_retired()).cloned().collect();
        *table = Arc::new(next);
    }
}

impl DeviceSlot {
    /// Whether the device is registered and not leaving.
    pub(super) fn is_staying(&self) -> bool {
        self.view().is_some_and(|view| view.state != DeviceState::Leaving)
    }
}

impl MultiGpuCoordinator {
    /// Registers a device under `device.index`. It is active at once.
    ///
    /// # Errors
    ///
    /// [`CoordinatorError::IndexInUse`], [`CoordinatorError::IndexLeaving`] while kernels remain on
    /// an earlier device of this index, [`CoordinatorError::MemoryExceedsTotal`] when more memory
    /// is available than the device has.
    pub fn register_device(&self, device: DeviceInfo) -> Result<()> {
        check_memory(&device, device.available_memory_bytes)?;
        let slot = self.registry.insert(device, self.config.max_kernels_per_device)?;
        self.topology.outdate();
        self.observers.tell(&CoordinatorEvent::DeviceRegistered {
            index: slot.index,
            incarnation: slot.incarnation,
        });
        Ok(())
    }

    /// Reports how many bytes of a device's memory are free now.
    ///
    /// What was promised to kernels before is taken to be in the report: report after they have
    /// allocated. In no case more than the device's total memory is promised.
    ///
    /// # Errors
    ///
    /// [`CoordinatorError::UnknownDevice`], and [`CoordinatorError::MemoryExceedsTotal`].
    pub fn update_device_memory(&self, device_index: usize, available_memory: u64) -> Result<()> {
        let slot = self.registry.known_slot(device_index)?;
        check_memory(&slot.facts, available_memory)?;
        slot.lock().report_memory(available_memory);
        Ok(())
    }

    /// Reports a device's health. Where the new state takes no kernels, all migrations to the device
    /// end; its own kernels stay mapped. Reporting the present state changes nothing.
    ///
    /// # Errors
    ///
    /// [`CoordinatorError::UnknownDevice`]; [`CoordinatorError::InvalidTransition`] where
    /// [`DeviceState::may_become`] says no: a loss is followed by probation and only then by
    /// active, and a leaving device stays leaving.
    pub fn set_device_state(&self, index: usize, state: DeviceState) -> Result<()> {
        let slot = self.registry.known_slot(index)?;
        let (from, ended) = {
            let mut guard = slot.lock();
            let from = guard.state();
            if !from.may_become(state) {
                return Err(CoordinatorError::InvalidTransition { index, from, to: state });
            }
            if from == state {
                return Ok(());
            }
            (from, guard.set_state(state))
        };
        self.topology.outdate();
        self.observers.tell(&CoordinatorEvent::DeviceStateChanged { index, from, to: state });
        for (request_id, reservation) in ended {
            self.tell_end(request_id, reservation.kernel, MigrationEnd::TargetLost);
        }
        Ok(())
    }

    /// Follows the removal of the last kernel of a leaving device.
    pub(super) fn device_gone(&self, slot: &DeviceSlot) {
        self.registry.sweep();
        self.topology.outdate();
        self.observers.tell(&CoordinatorEvent::DeviceGone {
            index: slot.index,
            incarnation: slot.incarnation,
        });
    }
}

fn check_memory(facts: &DeviceInfo, available_bytes: u64) -> Result<()> {
    let total_bytes = facts.total_memory_bytes;
    if total_bytes > 0 && available_bytes > total_bytes {
        let index = facts.index;
        return Err(CoordinatorError::MemoryExceedsTotal { index, available_bytes, total_bytes });
    }
    Ok(())
}
