//! Requests to migrate: reserved on the target, then completed or cancelled, each once.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::placement::Record;
use super::slot::DeviceSlot;
use super::{
    Caller, CoordinatorError, CoordinatorEvent, KernelMigrationPlan, KernelPriority, MigrationEnd,
    MigrationRequest, MultiGpuCoordinator, Result, StaleReason,
};
use crate::id::KernelId;

/// The last request for a kernel.
pub(super) struct Pending {
    pub(super) request: MigrationRequest,
    pub(super) target: Arc<DeviceSlot>,
}

impl MultiGpuCoordinator {
    /// Reserves room and memory for a kernel on another device. The kernel's mapping does not change
    /// before [`complete_migration`](Self::complete_migration). An earlier request for the same
    /// kernel ends with it.
    ///
    /// # Errors
    ///
    /// [`CoordinatorError::UnknownDevice`], [`CoordinatorError::UnknownKernel`],
    /// [`CoordinatorError::SameDevice`]; [`CoordinatorError::DeviceRefused`] when the target is
    /// full, lacks the memory promised to the kernel, or takes no kernels;
    /// [`CoordinatorError::ManagedByFleet`]. An earlier request stays as it is.
    pub fn request_migration(
        &self,
        kernel_id: &KernelId,
        target_device: usize,
    ) -> Result<MigrationRequest> {
        let target = self.registry.known_slot(target_device)?;
        self.request_as(Caller::Direct, kernel_id, &target, None)
    }

    /// Requests a planned move, unless the world has changed since the plan was made.
    ///
    /// # Errors
    ///
    /// [`CoordinatorError::StaleRequest`] when the kernel is not on the planned source any more, or
    /// the target was registered anew; and the errors of
    /// [`request_migration`](Self::request_migration).
    pub fn request_planned_migration(
        &self,
        plan: &KernelMigrationPlan,
    ) -> Result<MigrationRequest> {
        let target = self.registry.known_slot(plan.target)?;
        self.request_as(Caller::Direct, &plan.kernel, &target, Some(plan))
    }

    pub(super) fn request_as(
        &self,
        caller: Caller,
        kernel_id: &KernelId,
        target: &Arc<DeviceSlot>,
        plan: Option<&KernelMigrationPlan>,
    ) -> Result<MigrationRequest> {
        let kernel = *kernel_id;
        let (request, replaced) = {
            let mut entry = self
                .kernels
                .get_mut(kernel_id)
                .ok_or(CoordinatorError::UnknownKernel { kernel })?;
            let record = entry.value_mut();
            record.check_owner(caller, kernel)?;
            check_plan(record, target, plan)?;
            if Arc::ptr_eq(&record.slot, target) {
                return Err(CoordinatorError::SameDevice { kernel, device: target.index });
            }
            let request = MigrationRequest {
                id: self.next_request.fetch_add(1, Ordering::Relaxed),
                kernel,
                source: record.slot.index,
                source_incarnation: record.slot.incarnation,
                target: target.index,
                target_incarnation: target.incarnation,
            };
            let replaced = reserve(record, &request, target)?;
            record.pending = Some(Box::new(Pending { request, target: Arc::clone(target) }));
            (request, replaced)
        };
        if let Some(request_id) = replaced {
            self.tell_end(request_id, kernel, MigrationEnd::Replaced);
        }
        self.observers.tell(&CoordinatorEvent::MigrationRequested(request));
        Ok(request)
    }

    /// The handover: from now on the kernel is mapped to the target, on the room reserved there.
    ///
    /// # Errors
    ///
    /// [`CoordinatorError::StaleRequest`] if the request has ended in whatever way;
    /// [`CoordinatorError::ManagedByFleet`]. Nothing has changed then.
    pub fn complete_migration(&self, request: &MigrationRequest) -> Result<()> {
        self.complete_as(Caller::Direct, request)
    }

    pub(super) fn complete_as(&self, caller: Caller, request: &MigrationRequest) -> Result<()> {
        let kernel = request.kernel;
        let (from, to, is_retired) = {
            let mut entry = self.kernels.get_mut(&kernel).ok_or_else(|| gone(request))?;
            let record = entry.value_mut();
            record.check_owner(caller, kernel)?;
            let to = pending_target(record, request)?;
            let (mut source, mut target) = DeviceSlot::lock_pair(&record.slot, &to);
            let (position, promise) = target
                .admit_reserved(request.id)
                .ok_or_else(|| stale(request, StaleReason::TargetChanged))?;
            let is_retired = source.remove(&kernel, record.position, record.promise);
            drop((source, target));
            record.position = position;
            record.promise = promise;
            record.pending = None;
            (std::mem::replace(&mut record.slot, Arc::clone(&to)), to, is_retired)
        };
        self.tell_end(request.id, kernel, MigrationEnd::Completed);
        self.kernel_moved(kernel, &from, &to, is_retired);
        Ok(())
    }

    /// Gives a migration up: the reservation is released, the kernel stays where it is.
    ///
    /// # Errors
    ///
    /// [`CoordinatorError::StaleRequest`] if the request has ended already;
    /// [`CoordinatorError::ManagedByFleet`].
    pub fn cancel_migration(&self, request: &MigrationRequest) -> Result<()> {
        self.cancel_as(Caller::Direct, request)
    }

    pub(super) fn cancel_as(&self, caller: Caller, request: &MigrationRequest) -> Result<()> {
        let kernel = request.kernel;
        {
            let mut entry = self.kernels.get_mut(&kernel).ok_or_else(|| gone(request))?;
            let record = entry.value_mut();
            record.check_owner(caller, kernel)?;
            let target = pending_target(record, request)?;
            record.pending = None;
            if !target.lock().release(request.id) {
                return Err(stale(request, StaleReason::TargetChanged));
            }
        }
        self.tell_end(request.id, kernel, MigrationEnd::Cancelled);
        Ok(())
    }

    /// Declares how important a kernel is, for the order in which kernels leave a device.
    ///
    /// # Errors
    ///
    /// [`CoordinatorError::UnknownKernel`], [`CoordinatorError::ManagedByFleet`].
    pub fn set_kernel_priority(
        &self,
        kernel_id: &KernelId,
        priority: KernelPriority,
    ) -> Result<()> {
        let kernel = *kernel_id;
        let mut entry =
            self.kernels.get_mut(kernel_id).ok_or(CoordinatorError::UnknownKernel { kernel })?;
        entry.check_owner(Caller::Direct, kernel)?;
        entry.priority = priority;
        Ok(())
    }

    pub(super) fn tell_end(&self, request_id: u64, kernel: KernelId, end: MigrationEnd) {
        self.observers.tell(&CoordinatorEvent::MigrationEnded { request_id, kernel, end });
    }
}

/// Reserves room on the target and ends the reservation of the kernel's earlier request in the same
/// instant; returns the number of that one if it was held.
fn reserve(
    record: &Record,
    request: &MigrationRequest,
    target: &DeviceSlot,
) -> Result<Option<u64>> {
    let kernel = request.kernel;
    let bytes = record.promise.bytes;
    let refused =
        |reason| Err(CoordinatorError::DeviceRefused { index: target.index, kernel, reason });
    let Some(earlier) = record.pending.as_deref() else {
        let mut guard = target.lock();
        if let Some(reason) = guard.obstacle(bytes) {
            return refused(reason);
        }
        guard.reserve(request.id, kernel, bytes);
        return Ok(None);
    };
    let earlier_id = earlier.request.id;
    if earlier.request.target_incarnation == target.incarnation {
        let mut guard = target.lock();
        if guard.renumber(earlier_id, request.id) {
            return Ok(Some(earlier_id));
        }
        if let Some(reason) = guard.obstacle(bytes) {
            return refused(reason);
        }
        guard.reserve(request.id, kernel, bytes);
        return Ok(None);
    }
    let (mut before, mut now) = DeviceSlot::lock_pair(&earlier.target, target);
    if let Some(reason) = now.obstacle(bytes) {
        return refused(reason);
    }
    now.reserve(request.id, kernel, bytes);
    Ok(before.release(earlier_id).then_some(earlier_id))
}

/// The target of exactly this request, if it is the kernel's last one.
fn pending_target(record: &Record, request: &MigrationRequest) -> Result<Arc<DeviceSlot>> {
    if record.slot.incarnation != request.source_incarnation {
        return Err(stale(request, StaleReason::SourceChanged));
    }
    match record.pending.as_deref() {
        Some(pending) if pending.request == *request => Ok(Arc::clone(&pending.target)),
        _ => Err(stale(request, StaleReason::Ended)),
    }
}

fn check_plan(
    record: &Record,
    target: &DeviceSlot,
    plan: Option<&KernelMigrationPlan>,
) -> Result<()> {
    let Some(plan) = plan else { return Ok(()) };
    let reason = if record.slot.incarnation != plan.source_incarnation {
        StaleReason::SourceChanged
    } else if target.incarnation != plan.target_incarnation {
        StaleReason::TargetChanged
    } else {
        return Ok(());
    };
    Err(CoordinatorError::StaleRequest { kernel: plan.kernel, target: plan.target, reason })
}

fn stale(request: &MigrationRequest, reason: StaleReason) -> CoordinatorError {
    CoordinatorError::StaleRequest { kernel: request.kernel, target: request.target, reason }
}

fn gone(request: &MigrationRequest) -> CoordinatorError {
    stale(request, StaleReason::KernelGone)
}
