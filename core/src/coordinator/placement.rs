//! Putting kernels on devices and taking them off.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use dashmap::Entry;

use super::memory::Promise;
use super::migration::Pending;
use super::slot::DeviceSlot;
use super::{
    Caller, CoordinatorError, CoordinatorEvent, KernelPriority, LaunchOptions, MigrationEnd,
    MultiGpuCoordinator, Placement, Result,
};
use crate::id::KernelId;

/// What is recorded of one kernel.
pub(super) struct Record {
    pub(super) slot: Arc<DeviceSlot>,
    /// Where the kernel is in the slot's list.
    pub(super) position: u32,
    /// Memory promised to it on that device.
    pub(super) promise: Promise,
    pub(super) priority: KernelPriority,
    pub(super) is_managed: bool,
    /// What the kernel asked of its device, where that was more than memory: plans heed it.
    pub(super) options: Option<Arc<LaunchOptions>>,
    /// The last request, whose reservation may have ended with its target.
    pub(super) pending: Option<Box<Pending>>,
}

impl Record {
    pub(super) fn check_owner(&self, caller: Caller, kernel: KernelId) -> Result<()> {
        match (caller, self.is_managed) {
            (Caller::Direct, true) => Err(CoordinatorError::ManagedByFleet { kernel }),
            (Caller::Fleet, false) => Err(CoordinatorError::NotManaged { kernel }),
            _ => Ok(()),
        }
    }

    /// Ends the pending request, if there is one; returns its number if its reservation was held.
    fn end_pending(&mut self) -> Option<u64> {
        let pending = self.pending.take()?;
        let id = pending.request.id;
        pending.target.lock().release(id).then_some(id)
    }
}

/// What `assign_kernel` has changed.
enum Assigned {
    Nothing,
    New,
    Moved { from: Arc<DeviceSlot>, is_retired: bool, ended: Option<u64> },
}

impl MultiGpuCoordinator {
    /// Chooses a device by the configured strategy and puts the kernel on it, in one step: between
    /// the choice and the record nobody else can take the room or the memory.
    ///
    /// `required_memory_bytes` are promised to the kernel until it is removed or moved. A device
    /// never promises more than the last report of its available memory (less what was promised
    /// since), nor more than its total memory where that is known.
    ///
    /// # Errors
    ///
    /// [`CoordinatorError::AlreadyPlaced`]; [`CoordinatorError::NoDevice`] with a reason for every
    /// device; with the strategy `Custom` also [`CoordinatorError::NoSelector`],
    /// [`CoordinatorError::SelectorPanicked`] and [`CoordinatorError::SelectorRefused`].
    pub fn place(&self, kernel_id: KernelId, options: &LaunchOptions) -> Result<Placement> {
        self.place_as(Caller::Direct, kernel_id, options)
    }

    pub(super) fn place_as(
        &self,
        caller: Caller,
        kernel: KernelId,
        options: &LaunchOptions,
    ) -> Result<Placement> {
        if let Some(device) = self.get_kernel_device(&kernel) {
            return Err(CoordinatorError::AlreadyPlaced { kernel, device });
        }
        // A device that fitted may be full a moment later, because another thread got what it
        // wanted. Then the choice is made again.
        let slot = loop {
            let slot = self.choose(options)?;
            if self.admit(caller, kernel, options, &slot)? {
                break slot;
            }
        };
        self.observers.tell(&CoordinatorEvent::KernelPlaced { kernel, device: slot.index });
        Ok(Placement { kernel, device: slot.index, incarnation: slot.incarnation })
    }

    /// Puts the kernel on the device if that still fits.
    fn admit(
        &self,
        caller: Caller,
        kernel: KernelId,
        options: &LaunchOptions,
        slot: &Arc<DeviceSlot>,
    ) -> Result<bool> {
        let bytes = options.required_memory_bytes;
        match self.kernels.entry(kernel) {
            Entry::Occupied(entry) => {
                Err(CoordinatorError::AlreadyPlaced { kernel, device: entry.get().slot.index })
            }
            Entry::Vacant(entry) => {
                let (position, promise) = {
                    let mut guard = slot.lock();
                    if !guard.state().is_selectable() || guard.obstacle(bytes).is_some() {
                        return Ok(false);
                    }
                    guard.add(kernel, bytes)
                };
                entry.insert(Record {
                    slot: Arc::clone(slot),
                    position,
                    promise,
                    priority: options.priority,
                    is_managed: caller == Caller::Fleet,
                    options: options.constrains_devices().then(|| Arc::new(options.clone())),
                    pending: None,
                });
                self.launched.fetch_add(1, Ordering::Relaxed);
                Ok(true)
            }
        }
    }

    /// Records that a kernel runs on a device. A kernel that is mapped elsewhere moves at once, and
    /// its pending migration ends; one that is on this device already stays as it is. Memory is not
    /// checked: the kernel is there. Prefer [`place`](Self::place) where the device is still to be
    /// chosen.
    ///
    /// # Errors
    ///
    /// [`CoordinatorError::UnknownDevice`]; [`CoordinatorError::DeviceRefused`] when the device is
    /// full, leaving, lost or on probation; [`CoordinatorError::ManagedByFleet`].
    pub fn assign_kernel(&self, kernel_id: KernelId, device_index: usize) -> Result<()> {
        let slot = self.registry.known_slot(device_index)?;
        match self.record_assignment(kernel_id, &slot)? {
            Assigned::Nothing => {}
            Assigned::New => {
                let event =
                    CoordinatorEvent::KernelPlaced { kernel: kernel_id, device: slot.index };
                self.observers.tell(&event);
            }
            Assigned::Moved { from, is_retired, ended } => {
                if let Some(request_id) = ended {
                    self.tell_end(request_id, kernel_id, MigrationEnd::KernelReassigned);
                }
                self.kernel_moved(kernel_id, &from, &slot, is_retired);
            }
        }
        Ok(())
    }

    fn record_assignment(&self, kernel: KernelId, slot: &Arc<DeviceSlot>) -> Result<Assigned> {
        match self.kernels.entry(kernel) {
            Entry::Vacant(entry) => {
                let (position, promise) = {
                    let mut guard = slot.lock();
                    if let Some(reason) = guard.obstacle(0) {
                        let index = slot.index;
                        return Err(CoordinatorError::DeviceRefused { index, kernel, reason });
                    }
                    guard.add(kernel, 0)
                };
                entry.insert(Record {
                    slot: Arc::clone(slot),
                    position,
                    promise,
                    priority: KernelPriority::default(),
                    is_managed: false,
                    options: None,
                    pending: None,
                });
                self.launched.fetch_add(1, Ordering::Relaxed);
                Ok(Assigned::New)
            }
            Entry::Occupied(mut entry) => {
                let record = entry.get_mut();
                record.check_owner(Caller::Direct, kernel)?;
                if Arc::ptr_eq(&record.slot, slot) {
                    return Ok(Assigned::Nothing);
                }
                reassign(record, kernel, slot)
            }
        }
    }

    /// Forgets a kernel. Its room and its promise of memory are free again, and its pending
    /// migration ends.
    ///
    /// # Errors
    ///
    /// [`CoordinatorError::UnknownKernel`], [`CoordinatorError::ManagedByFleet`].
    pub fn remove_kernel(&self, kernel_id: &KernelId) -> Result<()> {
        self.remove_as(Caller::Direct, kernel_id)
    }

    pub(super) fn remove_as(&self, caller: Caller, kernel_id: &KernelId) -> Result<()> {
        let kernel = *kernel_id;
        let (slot, is_retired, ended) = match self.kernels.entry(kernel) {
            Entry::Vacant(_) => return Err(CoordinatorError::UnknownKernel { kernel }),
            Entry::Occupied(mut entry) => {
                let record = entry.get_mut();
                record.check_owner(caller, kernel)?;
                let ended = record.end_pending();
                let is_retired =
                    record.slot.lock().remove(&kernel, record.position, record.promise);
                (entry.remove().slot, is_retired, ended)
            }
        };
        if let Some(request_id) = ended {
            self.tell_end(request_id, kernel, MigrationEnd::KernelRemoved);
        }
        self.observers.tell(&CoordinatorEvent::KernelRemoved { kernel, device: slot.index });
        if is_retired {
            self.device_gone(&slot);
        }
        Ok(())
    }

    /// Follows the change of a kernel's record from one device to another.
    pub(super) fn kernel_moved(
        &self,
        kernel: KernelId,
        from: &DeviceSlot,
        to: &DeviceSlot,
        is_retired: bool,
    ) {
        let event = CoordinatorEvent::KernelMoved { kernel, from: from.index, to: to.index };
        self.observers.tell(&event);
        if is_retired {
            self.device_gone(from);
        }
    }
}

/// Moves a record to another device. The caller holds the kernel's entry.
fn reassign(record: &mut Record, kernel: KernelId, slot: &Arc<DeviceSlot>) -> Result<Assigned> {
    let reservation =
        record.pending.as_deref().filter(|pending| Arc::ptr_eq(&pending.target, slot));
    let reservation = reservation.map(|pending| pending.request.id);
    let (mut old, mut new) = DeviceSlot::lock_pair(&record.slot, slot);
    let reserved = reservation.and_then(|id| new.admit_reserved(id));
    let (position, promise) = match reserved {
        Some(admitted) => admitted,
        None => {
            if let Some(reason) = new.obstacle(0) {
                let index = slot.index;
                return Err(CoordinatorError::DeviceRefused { index, kernel, reason });
            }
            new.add(kernel, record.promise.bytes)
        }
    };
    let is_retired = old.remove(&kernel, record.position, record.promise);
    drop((old, new));
    let ended = match reserved {
        Some(_) => {
            record.pending = None;
            reservation
        }
        None => record.end_pending(),
    };
    record.position = position;
    record.promise = promise;
    let from = std::mem::replace(&mut record.slot, Arc::clone(slot));
    Ok(Assigned::Moved { from, is_retired, ended })
}
