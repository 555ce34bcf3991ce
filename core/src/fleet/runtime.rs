//! What all threads of a fleet share, and the rules by which kernels become runnable.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, RwLock};

use super::channel::Channel;
use super::dead_letter::DeadLetters;
use super::error::{DeliveryReason, FleetError};
use super::inject::Injector;
use super::kernel::{KernelCell, KernelPhase, RunState};
use super::worker::DeviceRuntime;
use crate::coordinator::{DeviceState, KernelActivity, MultiGpuCoordinator};
use crate::error::{DeviceError, StepFault};
use crate::id::{ChannelId, KernelId};

/// The shared heart of a fleet.
#[derive(Debug)]
pub(crate) struct Runtime {
    pub(crate) coordinator: Arc<MultiGpuCoordinator>,
    pub(crate) devices: RwLock<Vec<Option<Arc<DeviceRuntime>>>>,
    pub(crate) kernels: RwLock<HashMap<KernelId, Arc<KernelCell>>>,
    pub(crate) channels: RwLock<Vec<Arc<Channel>>>,
    pub(crate) dead_letters: DeadLetters,
    pub(crate) injector: Option<Injector>,
    pub(crate) step_limit: Duration,
    pub(crate) started: Instant,
    pub(crate) steps: AtomicU64,
    pub(crate) closing: AtomicBool,
    next_channel: AtomicU64,
    /// Kernels with something under way, and host sends that are being made.
    busy: AtomicUsize,
    idle_lock: Mutex<()>,
    idle: Condvar,
}

impl Runtime {
    pub(crate) fn new(
        coordinator: Arc<MultiGpuCoordinator>,
        step_limit: Duration,
        injector: Option<Injector>,
    ) -> Self {
        Self {
            coordinator,
            devices: RwLock::default(),
            kernels: RwLock::default(),
            channels: RwLock::default(),
            dead_letters: DeadLetters::default(),
            injector,
            step_limit,
            started: Instant::now(),
            steps: AtomicU64::new(0),
            closing: AtomicBool::new(false),
            next_channel: AtomicU64::new(1),
            busy: AtomicUsize::new(0),
            idle_lock: Mutex::new(()),
            idle: Condvar::new(),
        }
    }

    pub(crate) fn new_channel_id(&self) -> ChannelId {
        ChannelId::from_raw(self.next_channel.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn kernel(&self, kernel: &KernelId) -> Result<Arc<KernelCell>, FleetError> {
        let found = self.kernels.read().get(kernel).cloned();
        found.ok_or(FleetError::UnknownKernel { kernel: *kernel })
    }

    pub(crate) fn all_kernels(&self) -> Vec<Arc<KernelCell>> {
        self.kernels.read().values().cloned().collect()
    }

    pub(crate) fn device(&self, index: usize) -> Result<Arc<DeviceRuntime>, FleetError> {
        let devices = self.devices.read();
        match devices.get(index) {
            Some(Some(device)) => Ok(Arc::clone(device)),
            _ => {
                let known = devices.iter().flatten().map(|device| device.index.to_string());
                let devices = known.collect::<Vec<_>>().join(", ");
                Err(FleetError::UnknownDevice { device: index, devices })
            }
        }
    }

    pub(crate) fn all_devices(&self) -> Vec<Arc<DeviceRuntime>> {
        self.devices.read().iter().flatten().cloned().collect()
    }

    /// Brings a kernel's record in line with what it can do: queues it if it can run and has a
    /// reason to, counts it as busy or idle, tells those who wait for its step to end.
    /// Called under the kernel's lock after every change.
    pub(crate) fn settle(&self, cell: &Arc<KernelCell>, run: &mut RunState) {
        if run.queued_on.is_none() && run.can_run() && (run.again || cell.mailbox.len() > 0) {
            run.queued_on = Some(run.device());
            run.home.runtime.enqueue(cell);
        }
        let busy = run.is_busy();
        if busy != run.counted {
            run.counted = busy;
            if busy { self.add_busy() } else { self.remove_busy() }
        }
        if run.phase != KernelPhase::Running {
            cell.quiet.notify_all();
        }
    }

    pub(crate) fn add_busy(&self) {
        self.busy.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn remove_busy(&self) {
        if self.busy.fetch_sub(1, Ordering::AcqRel) == 1 {
            // Taking the lock orders this after the check of whoever is about to wait.
            drop(self.idle_lock.lock());
            self.idle.notify_all();
        }
    }

    /// Waits until nothing is under way. `false` when the deadline came first.
    pub(crate) fn wait_idle_until(&self, deadline: Instant) -> bool {
        let mut guard = self.idle_lock.lock();
        while self.busy.load(Ordering::Acquire) > 0 {
            if self.idle.wait_until(&mut guard, deadline).timed_out() {
                return self.busy.load(Ordering::Acquire) == 0;
            }
        }
        true
    }

    /// Stops a kernel after a fault. Its messages stay; who sends to it is told.
    pub(crate) fn fail_kernel(&self, cell: &Arc<KernelCell>, fault: StepFault) {
        let mut run = cell.run.lock();
        cell.mailbox.put_back(std::mem::take(&mut run.in_flight));
        run.phase = KernelPhase::Failed(fault.clone());
        run.queued_on = None;
        self.settle(cell, &mut run);
        drop(run);
        let waiters = cell.mailbox.close(cell.failed(fault));
        self.wake(waiters);
    }

    /// Marks a kernel as lost if it lives on `device`. It stays mapped, its messages are kept.
    pub(crate) fn lose_kernel(&self, cell: &Arc<KernelCell>, device: usize, cause: &str) {
        let mut run = cell.run.lock();
        let usable = matches!(run.phase, KernelPhase::Ready | KernelPhase::Running);
        if run.device() != device || !usable {
            return;
        }
        cell.mailbox.put_back(std::mem::take(&mut run.in_flight));
        run.phase = KernelPhase::Lost { cause: cause.to_owned() };
        run.queued_on = None;
        self.settle(cell, &mut run);
        drop(run);
        let reason = DeliveryReason::Lost { kernel: cell.id, cause: cause.to_owned() };
        cell.mailbox.close_for_host(reason);
    }

    /// Takes a device that is gone out of service and marks its kernels. Runs once a device.
    pub(crate) fn lose_device(&self, device: &Arc<DeviceRuntime>, cause: &DeviceError) {
        if device.lost.swap(true, Ordering::AcqRel) {
            return;
        }
        let state = match cause {
            DeviceError::Unresponsive { .. } => DeviceState::Unresponsive,
            _ => DeviceState::Lost,
        };
        // From here on the coordinator hands no kernel over to the device, so the list below is
        // complete. An index that it no longer knows has no kernels.
        if self.coordinator.set_device_state(device.index, state).is_err() {
            return;
        }
        let text = cause.to_string();
        for kernel in self.coordinator.kernels_on_device(device.index) {
            if let Ok(cell) = self.kernel(&kernel) {
                self.lose_kernel(&cell, device.index, &text);
            }
        }
    }

    /// What the coordinator's migration priority is computed from.
    pub(crate) fn activity(&self, kernel: &KernelId) -> Option<KernelActivity> {
        let cell = self.kernel(kernel).ok()?;
        let last_step = Duration::from_millis(cell.last_step_ms.load(Ordering::Relaxed));
        Some(KernelActivity {
            priority: cell.priority,
            mailbox_depth: cell.mailbox.len(),
            idle: self.started.elapsed().saturating_sub(last_step),
        })
    }
}
