//! What all threads of a fleet share, and the rules by which kernels become runnable.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use parking_lot::{Mutex, RwLock};

use super::channel::Channel;
use super::dead_letter::DeadLetters;
use super::effects::{self, Effect};
use super::error::{DeliveryReason, FleetError};
use super::inject::Injector;
use super::kernel::{KernelCell, KernelPhase, RunState};
use super::mailbox::Mailbox;
use super::pulse::Pulse;
use super::worker::DeviceRuntime;
use crate::coordinator::{CoordinatorEvent, DeviceState, KernelActivity, MultiGpuCoordinator};
use crate::error::{DeviceError, StepFault};
use crate::id::{ChannelId, KernelId};

/// The shared heart of a fleet.
#[derive(Debug)]
pub(crate) struct Runtime {
    pub(crate) coordinator: Arc<MultiGpuCoordinator>,
    pub(crate) devices: RwLock<Vec<Option<Arc<DeviceRuntime>>>>,
    pub(crate) kernels: RwLock<HashMap<KernelId, Arc<KernelCell>>>,
    /// Removed kernels whose committed output is not delivered yet.
    departed: Mutex<HashMap<KernelId, Arc<KernelCell>>>,
    pub(crate) channels: RwLock<Vec<Arc<Channel>>>,
    endpoints: Mutex<Vec<Weak<Mailbox>>>,
    pub(crate) dead_letters: DeadLetters,
    pub(crate) injector: Option<Injector>,
    pub(crate) step_limit: Duration,
    pub(crate) started: Instant,
    pub(crate) closing: AtomicBool,
    /// Counts hand-overs: the epoch of what channels know about who is where.
    pub(crate) moves: CachePadded<AtomicU64>,
    next_channel: AtomicU64,
    pub(crate) pulse: Arc<Pulse>,
    /// Steps committed on devices that were closed.
    closed_steps: AtomicU64,
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
            departed: Mutex::default(),
            channels: RwLock::default(),
            endpoints: Mutex::default(),
            dead_letters: DeadLetters::default(),
            injector,
            step_limit,
            started: Instant::now(),
            closing: AtomicBool::new(false),
            moves: CachePadded::new(AtomicU64::new(0)),
            next_channel: AtomicU64::new(1),
            pulse: Arc::default(),
            closed_steps: AtomicU64::new(0),
        }
    }

    pub(crate) fn pulse(&self) -> Arc<Pulse> {
        Arc::clone(&self.pulse)
    }

    /// Steps committed on all devices that the fleet has had.
    pub(crate) fn steps(&self) -> u64 {
        let devices = self.devices.read();
        let open = devices.iter().flatten().map(|device| device.steps.load(Ordering::Relaxed));
        // Under the lock, so that a device that is being closed counts once.
        open.sum::<u64>() + self.closed_steps.load(Ordering::Relaxed)
    }

    /// Forgets a device; what it has done stays counted.
    pub(crate) fn forget_device(&self, index: usize) {
        if let Some(device) = self.devices.write()[index].take() {
            let steps = device.steps.load(Ordering::Relaxed);
            self.closed_steps.fetch_add(steps, Ordering::Relaxed);
        }
    }

    pub(crate) fn new_channel_id(&self) -> ChannelId {
        ChannelId::from_raw(self.next_channel.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn kernel(&self, kernel: &KernelId) -> Result<Arc<KernelCell>, FleetError> {
        let found = self.kernels.read().get(kernel).cloned();
        found.ok_or(FleetError::UnknownKernel { kernel: *kernel })
    }

    /// The kernels of the fleet.
    pub(crate) fn all_kernels(&self) -> Vec<Arc<KernelCell>> {
        self.kernels.read().values().cloned().collect()
    }

    /// Kernels of the fleet, and removed ones whose output is still under way.
    pub(crate) fn all_senders(&self) -> Vec<Arc<KernelCell>> {
        let mut senders = self.all_kernels();
        senders.extend(self.departed.lock().values().cloned());
        senders
    }

    /// Takes a removed kernel off the list; it is kept until its committed output is delivered.
    pub(crate) fn depart(&self, cell: &Arc<KernelCell>) {
        self.departed.lock().insert(cell.id, Arc::clone(cell));
        self.kernels.write().remove(&cell.id);
        self.settle(cell, &mut cell.run.lock());
    }

    pub(crate) fn know_endpoint(&self, mailbox: &Arc<Mailbox>) {
        let mut endpoints = self.endpoints.lock();
        endpoints.retain(|known| known.strong_count() > 0);
        endpoints.push(Arc::downgrade(mailbox));
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
        if run.queued_on.is_none()
            && run.can_run()
            && (run.again || cell.mailbox.has_message_or_arm())
        {
            run.queued_on = Some(run.device());
            run.home.runtime.enqueue(cell);
        }
        let busy = run.is_busy();
        if busy != run.counted {
            run.counted = busy;
            if busy { self.pulse.add() } else { self.pulse.remove() }
        }
        if run.phase != KernelPhase::Running {
            cell.quiet.notify_all();
        }
        if run.phase == KernelPhase::Removed && !busy {
            self.departed.lock().remove(&cell.id);
        }
    }

    /// Stops a kernel after a fault in its running step. Its messages stay; who sends to it is told.
    pub(crate) fn fail_kernel(&self, cell: &Arc<KernelCell>, fault: StepFault) {
        let effects = {
            let mut run = cell.run.lock();
            if run.phase != KernelPhase::Running {
                return; // lost or removed while the step ran
            }
            run.undo_step(&cell.mailbox);
            run.phase = KernelPhase::Failed(fault.clone());
            self.settle(cell, &mut run);
            cell.mailbox.close(DeliveryReason::Failed { kernel: cell.id, fault: Box::new(fault) })
        };
        self.follow(effects);
    }

    /// Marks a kernel as lost if it lives on `device`. It stays mapped, its messages are kept.
    pub(crate) fn lose_kernel(&self, cell: &Arc<KernelCell>, device: usize, cause: &str) {
        let effects = {
            let mut run = cell.run.lock();
            let usable = matches!(run.phase, KernelPhase::Ready | KernelPhase::Running);
            if run.device() != device || !usable {
                return;
            }
            run.undo_step(&cell.mailbox);
            run.phase = KernelPhase::Lost { cause: cause.to_owned() };
            run.queued_on = None;
            self.settle(cell, &mut run);
            let reason = DeliveryReason::Lost { kernel: cell.id, cause: cause.to_owned() };
            cell.mailbox.close_for_host(reason)
        };
        self.follow(effects);
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
        // Whether the coordinator takes the new state or keeps an earlier one (a leaving device
        // stays leaving), from here on it hands no kernel over to the device: the list is complete.
        let _ = self.coordinator.set_device_state(device.index, state);
        let text = cause.to_string();
        for kernel in self.coordinator.kernels_on_device(device.index) {
            if let Ok(cell) = self.kernel(&kernel) {
                self.lose_kernel(&cell, device.index, &text);
            }
        }
    }

    /// Follows what others report to the coordinator: a device that is lost there is lost here.
    pub(crate) fn observe(&self, event: &CoordinatorEvent) {
        let CoordinatorEvent::DeviceStateChanged { index, to, .. } = event else { return };
        let cause = format!("device {index} was reported as {to}");
        let cause = match to {
            DeviceState::Lost => DeviceError::Lost { cause },
            DeviceState::Unresponsive => DeviceError::Unresponsive { cause },
            _ => return,
        };
        if let Ok(device) = self.device(*index) {
            device.device.health().latch(cause);
        }
    }

    /// Refuses every further message, of everybody.
    pub(crate) fn close_mailboxes(&self) {
        let mut mailboxes: Vec<Arc<Mailbox>> =
            self.all_kernels().iter().map(|cell| Arc::clone(&cell.mailbox)).collect();
        mailboxes.extend(self.endpoints.lock().iter().filter_map(Weak::upgrade));
        for mailbox in mailboxes {
            for effect in mailbox.close(DeliveryReason::ShuttingDown) {
                // No worker is left, so kernels with pending output stay as they are.
                if let Effect::Wake(waker) = effect {
                    effects::wake(waker);
                }
            }
        }
    }

    /// Lets go of every kernel and device, so that their memory is freed although senders and
    /// endpoints of the host may live on.
    pub(crate) fn let_go(&self) {
        for device in std::mem::take(&mut *self.devices.write()).into_iter().flatten() {
            device.empty_queue();
        }
        let kernels = std::mem::take(&mut *self.kernels.write());
        let departed = std::mem::take(&mut *self.departed.lock());
        self.channels.write().clear();
        for cell in kernels.into_values().chain(departed.into_values()) {
            // Kernels that send to each other hold each other's mailboxes and messages.
            drop(cell.mailbox.discard(&DeliveryReason::ShuttingDown));
            drop(std::mem::take(&mut cell.run.lock().pending));
            cell.outputs.write().fill(None);
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
