//! One host device: compiling, creating instances, running steps.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::instance::{HostInstance, instance_bytes};
use crate::abi::inbox::InboxView;
use crate::abi::outbox::OutboxWriter;
use crate::device::{
    CompiledProgram, Device, DeviceMemory, InstanceRequest, KernelInstance, PeerCopy, Step,
    StepOutcome, StepPayloads,
};
use crate::device_info::{BackendKind, DeviceInfo, DeviceLimits, Overrun};
use crate::error::{
    CompileError, DeviceError, InstanceError, StepFault, TransferError, check_range,
    check_state_bytes,
};
use crate::health::DeviceHealth;
use crate::implementing::Quota;
use crate::program::{HostFunction, HostStep, Program, ProgramDigest};

/// Threads and memory of this process, as a device.
#[derive(Debug)]
pub struct HostDevice {
    info: DeviceInfo,
    limits: DeviceLimits,
    core: Arc<DeviceCore>,
    /// Programs of one digest can differ in their functions, which no digest covers.
    compiled: Mutex<HashMap<ProgramDigest, Vec<Arc<HostProgram>>>>,
}

/// What a device shares with its programs and instances.
#[derive(Debug)]
pub(super) struct DeviceCore {
    pub(super) health: DeviceHealth,
    pub(super) quota: Arc<Quota>,
    pub(super) transfer_wait: Duration,
}

impl DeviceCore {
    pub(super) fn new(
        health: DeviceHealth,
        quota: Arc<Quota>,
        transfer_wait: Duration,
    ) -> Arc<Self> {
        Arc::new(Self { health, quota, transfer_wait })
    }
}

/// A program made ready for one host device.
struct HostProgram {
    program: Arc<Program>,
    function: HostFunction,
    device: Arc<DeviceCore>,
}

impl HostDevice {
    pub(super) fn new(info: DeviceInfo, core: Arc<DeviceCore>) -> Self {
        let limits = DeviceLimits {
            max_state_bytes: core.quota.total_bytes(),
            // One, so that a step that never ends takes no other step with it.
            max_batch_kernels: 1,
            max_loop_iterations: None,
            overrun: Overrun::LosesWorker,
        };
        Self { info, limits, core, compiled: Mutex::default() }
    }

    /// Loses the device on purpose: from now on every call returns this cause.
    /// Returns whether the device worked until now.
    pub fn lose(&self, cause: impl Into<String>) -> bool {
        self.core.health.latch(DeviceError::Lost { cause: cause.into() })
    }

    fn own<'a>(&self, step: &'a Step) -> Option<&'a HostInstance> {
        let instance = step.instance.as_any().downcast_ref::<HostInstance>()?;
        Arc::ptr_eq(&instance.device, &self.core).then_some(instance)
    }

    fn run_step(&self, step: &mut Step) -> Result<(), DeviceError> {
        let Step { instance, inbox, outbox, outcome, payloads } = step;
        let instance = instance.as_any().downcast_ref::<HostInstance>();
        let instance = instance.expect("instances were checked before the batch");
        self.core.health.check()?;
        let mut state = instance.take_state().map_err(|error| DeviceError::Driver {
            message: format!("two steps of one instance at the same time: {error}"),
        })?;
        let ended = call(instance, &mut state, inbox, outbox, payloads);
        instance.put_state(state);
        let lost = self.core.health.check();
        *outcome = if lost.is_ok() { ended } else { StepOutcome::Unknown };
        lost
    }
}

impl Device for HostDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn limits(&self) -> &DeviceLimits {
        &self.limits
    }

    fn memory(&self) -> Result<DeviceMemory, DeviceError> {
        self.core.health.check()?;
        Ok(self.core.quota.memory())
    }

    fn health(&self) -> &DeviceHealth {
        &self.core.health
    }

    fn compile(&self, program: &Arc<Program>) -> Result<Arc<dyn CompiledProgram>, CompileError> {
        self.core.health.check()?;
        let function = program.host_function().ok_or_else(|| CompileError::NoForm {
            program: program.name().to_owned(),
            backend: BackendKind::Host,
            forms: program.forms(),
        })?;
        let mut compiled = self.compiled.lock();
        let same_digest = compiled.entry(program.digest()).or_default();
        if let Some(known) = same_digest.iter().find(|known| Arc::ptr_eq(&known.function, function))
        {
            return Ok(Arc::clone(known) as Arc<dyn CompiledProgram>);
        }
        let new = Arc::new(HostProgram {
            program: Arc::clone(program),
            function: Arc::clone(function),
            device: Arc::clone(&self.core),
        });
        same_digest.push(Arc::clone(&new));
        Ok(new)
    }

    fn create_instance(
        &self,
        program: &Arc<dyn CompiledProgram>,
        request: &InstanceRequest<'_>,
    ) -> Result<Arc<dyn KernelInstance>, InstanceError> {
        self.core.health.check()?;
        let own = program.as_any().downcast_ref::<HostProgram>();
        let own = own.filter(|own| Arc::ptr_eq(&own.device, &self.core));
        let own = own.ok_or(InstanceError::ForeignProgram)?;
        check_state_bytes(request.state_bytes, self.limits.max_state_bytes)?;
        let bytes = instance_bytes(&own.program, request);
        let memory = self.core.quota.reserve(bytes)?;
        let (program, function) = (Arc::clone(&own.program), Arc::clone(&own.function));
        let core = Arc::clone(&self.core);
        let instance = HostInstance::new(core, program, function, request, memory)?;
        Ok(self.core.health.watch(Ok(Arc::new(instance)))?)
    }

    fn run_batch(&self, steps: &mut [Step]) -> Result<(), DeviceError> {
        self.core.health.check()?;
        if let Some(position) = steps.iter().position(|step| self.own(step).is_none()) {
            return Err(DeviceError::Driver {
                message: format!("step {position} of the batch is not of this device"),
            });
        }
        steps.iter_mut().try_for_each(|step| self.run_step(step))
    }

    fn reads_payloads_in_place(&self) -> bool {
        true
    }

    fn peer_copy(&self) -> Option<&dyn PeerCopy> {
        Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Copies from state to state: half the memory traffic of a read and a write.
impl PeerCopy for HostDevice {
    fn reaches(&self, other: &dyn Device) -> bool {
        self.core.health.is_working() && other.as_any().is::<Self>() && other.health().is_working()
    }

    fn copy_state(
        &self,
        from: &dyn KernelInstance,
        to: &dyn KernelInstance,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Result<(), TransferError> {
        self.core.health.check()?;
        let (from, to) = (host_instance(from)?, host_instance(to)?);
        from.device.health.check()?;
        to.device.health.check()?;
        let smaller = from.state_bytes().min(to.state_bytes());
        check_range(offset_bytes, length_bytes, smaller)?;
        let copied = from.copy_to(to, offset_bytes, length_bytes);
        from.device.health.check()?;
        to.device.health.check()?;
        copied
    }
}

impl CompiledProgram for HostProgram {
    fn program(&self) -> &Arc<Program> {
        &self.program
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Prints the program's name.
impl fmt::Debug for HostProgram {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("HostProgram").field(&self.program.name()).finish()
    }
}

fn host_instance(instance: &dyn KernelInstance) -> Result<&HostInstance, DeviceError> {
    instance.as_any().downcast_ref().ok_or_else(|| DeviceError::Driver {
        message: format!("a copy between host devices names {instance:?}, which is on none"),
    })
}

/// Runs the function of an instance. A panic stops its kernel only.
fn call(
    instance: &HostInstance,
    state: &mut [u32],
    inbox: &[u32],
    outbox: &mut [u32],
    payloads: &mut StepPayloads,
) -> StepOutcome {
    let StepPayloads { received, shared, .. } = payloads;
    // What a panic leaves half done is the state, whose content counts as undefined afterwards.
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let mut step = HostStep {
            parameters: &instance.parameters,
            state,
            inbox: InboxView::with_left_out(inbox, received),
            outbox: OutboxWriter::sharing(outbox, &instance.program, shared),
        };
        (instance.function)(&mut step)
    }));
    match ended {
        Ok(Ok(())) => StepOutcome::Applied,
        Ok(Err(fault)) => StepOutcome::Faulted(fault),
        Err(payload) => StepOutcome::Faulted(StepFault::Panicked { message: panic_text(payload) }),
    }
}

fn panic_text(payload: Box<dyn Any + Send>) -> String {
    let payload = match payload.downcast::<String>() {
        Ok(text) => return *text,
        Err(payload) => payload,
    };
    match payload.downcast::<&'static str>() {
        Ok(text) => (*text).to_owned(),
        Err(payload) => {
            // Dropping a value of the program's own could panic again, outside of the guard.
            std::mem::forget(payload);
            "the panic carries no text".to_owned()
        }
    }
}
