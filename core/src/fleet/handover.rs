//! What a fleet offers to those who move kernels: reserve, twin, hold, hand over, release.
//!
//! The order of a move: [`Fleet::request_migration`] reserves room, [`Fleet::create_twin`] makes an
//! instance on the target, [`Fleet::hold`] stops the kernel at a step boundary while its mailbox
//! goes on accepting, the mover copies state, [`Fleet::hand_over`] changes the owner. Dropping a
//! hold lets the kernel go on where it is; dropping a twin frees its memory; a request that is not
//! completed must be cancelled.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::error::FleetError;
use super::kernel::{Home, KernelCell, KernelPhase};
use super::runtime::Runtime;
use super::worker::DeviceRuntime;
use super::{Fleet, deadline_after};
use crate::coordinator::{KernelMigrationPlan, MigrationRequest};
use crate::device::{Device, InitialState, InstanceRequest, KernelInstance};
use crate::id::KernelId;
use crate::program::Program;

/// A kernel that stands still at a step boundary. Dropping it releases the kernel.
#[derive(Debug)]
pub struct HeldKernel {
    runtime: Arc<Runtime>,
    cell: Arc<KernelCell>,
    home: Home,
    since: Instant,
}

impl HeldKernel {
    /// The kernel.
    #[must_use]
    pub fn kernel(&self) -> KernelId {
        self.cell.id
    }

    /// The index of the device it lives on.
    #[must_use]
    pub fn device(&self) -> usize {
        self.home.runtime.index
    }

    /// The device it lives on.
    #[must_use]
    pub fn open_device(&self) -> &Arc<dyn Device> {
        &self.home.runtime.device
    }

    /// Its instance, to be read.
    #[must_use]
    pub fn instance(&self) -> &Arc<dyn KernelInstance> {
        &self.home.instance
    }

    /// For how long it has been held.
    #[must_use]
    pub fn held_for(&self) -> Duration {
        self.since.elapsed()
    }

    /// Lets the kernel go on where it is: what dropping does.
    pub fn release(self) {}
}

impl Drop for HeldKernel {
    fn drop(&mut self) {
        let mut run = self.cell.run.lock();
        run.held = false;
        self.runtime.settle(&self.cell, &mut run);
    }
}

/// A paused instance on the target of a move. Dropping it frees its memory.
#[derive(Debug)]
pub struct Twin {
    kernel: KernelId,
    home: Home,
}

impl Twin {
    /// The kernel that it is to become.
    #[must_use]
    pub fn kernel(&self) -> KernelId {
        self.kernel
    }

    /// The index of the target.
    #[must_use]
    pub fn device(&self) -> usize {
        self.home.runtime.index
    }

    /// The target.
    #[must_use]
    pub fn open_device(&self) -> &Arc<dyn Device> {
        &self.home.runtime.device
    }

    /// The instance, to be written.
    #[must_use]
    pub fn instance(&self) -> &Arc<dyn KernelInstance> {
        &self.home.instance
    }
}

impl Fleet {
    /// Reserves room for a kernel on another device. Changes no mapping.
    ///
    /// # Errors
    ///
    /// [`FleetError`]: an unknown, stopped or lost kernel, or the coordinator's refusal.
    pub fn request_migration(
        &self,
        kernel: &KernelId,
        target_device: usize,
    ) -> Result<MigrationRequest, FleetError> {
        let cell = self.runtime.kernel(kernel)?;
        let phase = cell.run.lock().phase.clone();
        cell.usable(&phase)?;
        Ok(self.runtime.coordinator.request_migration_managed(kernel, target_device)?)
    }

    /// Reserves room for a planned move, unless the world has changed since the plan was made.
    ///
    /// # Errors
    ///
    /// [`FleetError`]: as [`request_migration`](Self::request_migration), and the coordinator's
    /// `StaleRequest` when the kernel or a device is not what it was.
    pub fn request_planned_migration(
        &self,
        plan: &KernelMigrationPlan,
    ) -> Result<MigrationRequest, FleetError> {
        let cell = self.runtime.kernel(&plan.kernel)?;
        let phase = cell.run.lock().phase.clone();
        cell.usable(&phase)?;
        Ok(self.runtime.coordinator.request_planned_managed(plan)?)
    }

    /// Ends a request and releases its reservation.
    ///
    /// # Errors
    ///
    /// [`FleetError::Coordinator`] when the request has ended already.
    pub fn cancel_migration(&self, request: &MigrationRequest) -> Result<(), FleetError> {
        Ok(self.runtime.coordinator.cancel_migration_managed(request)?)
    }

    /// Creates a paused instance of the request's kernel on the request's target. Compiles there.
    /// Its state is undefined until it is written.
    ///
    /// # Errors
    ///
    /// [`FleetError`]: the target's compiler, memory or loss.
    pub fn create_twin(&self, request: &MigrationRequest) -> Result<Twin, FleetError> {
        let cell = self.runtime.kernel(&request.kernel)?;
        let runtime = self.runtime.device(request.target)?;
        let blueprint = Blueprint {
            program: &cell.program,
            parameters: &cell.parameters,
            state_bytes: cell.state_bytes,
        };
        let home = create_home(&runtime, &blueprint, InitialState::Undefined)?;
        Ok(Twin { kernel: cell.id, home })
    }

    /// Stops a kernel at its next step boundary, waiting for a running step until the time is up.
    /// Its mailbox goes on accepting.
    ///
    /// # Errors
    ///
    /// [`FleetError`]: an unknown, stopped, lost or already held kernel, or a step that does not
    /// end in time. The kernel then goes on as before.
    pub fn hold(&self, kernel: &KernelId, timeout: Duration) -> Result<HeldKernel, FleetError> {
        let deadline = deadline_after(timeout);
        let cell = self.runtime.kernel(kernel)?;
        let mut run = cell.run.lock();
        cell.usable(&run.phase)?;
        if run.held {
            return Err(FleetError::HeldAlready { kernel: *kernel });
        }
        run.held = true;
        self.runtime.settle(&cell, &mut run);
        while run.phase == KernelPhase::Running {
            match deadline {
                None => cell.quiet.wait(&mut run),
                Some(deadline) => {
                    if cell.quiet.wait_until(&mut run, deadline).timed_out() {
                        break;
                    }
                }
            }
        }
        let outcome = match &run.phase {
            KernelPhase::Running => {
                Err(FleetError::StepTooLong { kernel: *kernel, waited: timeout })
            }
            phase => cell.usable(phase),
        };
        if let Err(error) = outcome {
            run.held = false;
            self.runtime.settle(&cell, &mut run);
            return Err(error);
        }
        let home = run.home.clone();
        drop(run);
        let runtime = Arc::clone(&self.runtime);
        Ok(HeldKernel { runtime, cell, home, since: Instant::now() })
    }

    /// Makes the twin the kernel: the coordinator's map and the kernel's home change, and the
    /// kernel goes on at the target. The caller has made the states equal.
    ///
    /// The kernel is held throughout, so no step sees a state between: what others can see for an
    /// instant is that the map already names the target while the status names the source.
    ///
    /// # Errors
    ///
    /// [`FleetError`]: the kernel or the target was lost, or the request has ended. The kernel goes
    /// on at the source, if that is still there, and the twin is gone; the request is the caller's
    /// to cancel.
    pub fn hand_over(
        &self,
        held: HeldKernel,
        twin: Twin,
        request: &MigrationRequest,
    ) -> Result<(), FleetError> {
        let cell = Arc::clone(&held.cell);
        if request.kernel != cell.id || twin.kernel != cell.id {
            return Err(FleetError::Mismatch { what: "the hold or twin" });
        }
        if request.target != twin.device() || request.source != held.device() {
            return Err(FleetError::Mismatch { what: "the request" });
        }
        let phase = cell.run.lock().phase.clone();
        cell.usable(&phase)?;
        twin.home.runtime.device.health().check()?;
        self.runtime.coordinator.complete_migration_managed(request)?;

        let target = Arc::clone(&twin.home.runtime);
        let mut run = cell.run.lock();
        let source = std::mem::replace(&mut run.home, twin.home);
        run.queued_on = None;
        // The source can have been lost after the check; the state that was verified is at the
        // target, so the kernel lives.
        if matches!(run.phase, KernelPhase::Lost { .. }) {
            run.phase = KernelPhase::Ready;
            cell.mailbox.open_for_host();
        }
        cell.home_device.store(target.index, Ordering::Relaxed);
        // What channels know about who is where is outdated from here on.
        self.runtime.moves.fetch_add(1, Ordering::Release);
        drop(run);
        drop(held);
        drop(source);
        if target.lost.load(Ordering::Acquire)
            && let Some(cause) = target.device.health().cause()
        {
            self.runtime.lose_kernel(&cell, target.index, &cause.to_string());
        }
        Ok(())
    }
}

/// What an instance is made from, on whatever device.
pub(crate) struct Blueprint<'a> {
    pub(crate) program: &'a Arc<Program>,
    pub(crate) parameters: &'a [u32],
    pub(crate) state_bytes: u64,
}

/// Compiles a kernel's program for a device and creates an instance there.
pub(crate) fn create_home(
    runtime: &Arc<DeviceRuntime>,
    blueprint: &Blueprint<'_>,
    initial: InitialState<'_>,
) -> Result<Home, FleetError> {
    let Blueprint { program, parameters, state_bytes } = *blueprint;
    let device = &runtime.device;
    device.health().check()?;
    let program = device.compile(program)?;
    let request = InstanceRequest { parameters, state_bytes, initial };
    let instance = device.create_instance(&program, &request)?;
    Ok(Home { runtime: Arc::clone(runtime), instance })
}
