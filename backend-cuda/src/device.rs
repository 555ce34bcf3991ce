//! One open logical device: compiling, creating instances, running batches, copying to peers.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hopwise_core::device::{
    CompiledProgram, Device, DeviceMemory, InstanceRequest, KernelInstance, PeerCopy, Step,
};
use hopwise_core::device_info::{DeviceInfo, DeviceLimits};
use hopwise_core::error::{
    CompileError, DeviceError, InstanceError, TransferError, check_range, check_state_bytes,
};
use hopwise_core::health::{Degradation, DeviceHealth};
use hopwise_core::program::{Program, ProgramDigest};
use parking_lot::Mutex;

use crate::batch::Batches;
use crate::core::DeviceCore;
use crate::facts::GpuFacts;
use crate::graph::GraphTrial;
use crate::instance::CudaInstance;
use crate::options::CudaOptions;
use crate::peer::{PeerPath, copy_state};
use crate::program::CudaProgram;
use crate::watch::Watch;

/// A GPU, or one of several logical devices on it.
#[derive(Debug)]
pub struct CudaDevice {
    info: DeviceInfo,
    facts: GpuFacts,
    limits: DeviceLimits,
    core: Arc<DeviceCore>,
    compiled: Mutex<HashMap<ProgramDigest, Arc<CudaProgram>>>,
    batches: Batches,
    watch: Arc<Watch>,
    may_access_peers: bool,
}

impl CudaDevice {
    pub(crate) fn new(
        info: DeviceInfo,
        facts: GpuFacts,
        limits: DeviceLimits,
        core: DeviceCore,
        watch: Arc<Watch>,
        options: &CudaOptions,
    ) -> Self {
        Self {
            info,
            facts,
            limits,
            core: Arc::new(core),
            compiled: Mutex::default(),
            batches: Batches::new(options.graphs),
            watch,
            may_access_peers: options.peer_access,
        }
    }

    /// What the driver says about the GPU.
    #[must_use]
    pub fn facts(&self) -> &GpuFacts {
        &self.facts
    }

    /// Gives the device up on purpose. All logical devices of the GPU are lost, and say this cause.
    /// Returns whether they worked until now.
    ///
    /// What they own is left behind until the GPU is opened again.
    pub fn lose(&self, cause: impl Into<String>) -> bool {
        self.core.context.health().latch(DeviceError::Lost { cause: cause.into() })
    }

    /// How many kernels of the device stay on the GPU between their steps.
    #[must_use]
    pub fn resident_kernels(&self) -> usize {
        self.core.residents.load(Ordering::Relaxed)
    }

    /// What was measured of CUDA graphs against plain launches, for each shape of batch that ran.
    #[must_use]
    pub fn graph_trials(&self) -> Vec<GraphTrial> {
        self.batches.graph_trials()
    }

    pub(crate) fn core(&self) -> &DeviceCore {
        &self.core
    }

    /// Whether the GPU reaches another's memory without a third.
    pub(crate) fn reaches_directly(&self, other: &Self) -> bool {
        let path = self.core.paths.find(&self.core.context, &other.core.context);
        matches!(path, Some(PeerPath::Same | PeerPath::Direct { .. }))
    }

    fn is_own(&self, instance: &dyn KernelInstance) -> bool {
        let instance = instance.as_any().downcast_ref::<CudaInstance>();
        instance.is_some_and(|instance| Arc::ptr_eq(instance.core(), &self.core))
    }
}

impl Device for CudaDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn limits(&self) -> &DeviceLimits {
        &self.limits
    }

    /// What is left of the quota, or what the driver says is free on the GPU if that is less.
    fn memory(&self) -> Result<DeviceMemory, DeviceError> {
        self.core.memory()
    }

    fn health(&self) -> &DeviceHealth {
        self.core.context.health()
    }

    /// Hears of events from NVML, and asks the driver.
    fn poll(&self) -> Result<(), DeviceError> {
        self.watch.poll();
        let entered = self.core.context.enter_quietly()?;
        let sound = entered.is_sound();
        drop(entered);
        self.health().check()?;
        if sound { Ok(()) } else { self.memory().map(drop) }
    }

    /// What NVML knows of the GPU; nothing without NVML.
    fn degradations(&self) -> Result<Vec<Degradation>, DeviceError> {
        let found = self.watch.degradations(&self.facts);
        self.health().check()?;
        Ok(found)
    }

    fn compile(&self, program: &Arc<Program>) -> Result<Arc<dyn CompiledProgram>, CompileError> {
        self.health().check()?;
        let digest = program.digest();
        let known = self.compiled.lock().get(&digest).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        // Two threads may compile the same; the first to end has its work kept.
        let new = Arc::new(CudaProgram::compile(program, &self.core)?);
        let kept =
            Arc::clone(self.compiled.lock().entry(digest).or_insert_with(|| Arc::clone(&new)));
        drop(new); // not under the lock: it can call the driver
        Ok(kept)
    }

    fn create_instance(
        &self,
        program: &Arc<dyn CompiledProgram>,
        request: &InstanceRequest<'_>,
    ) -> Result<Arc<dyn KernelInstance>, InstanceError> {
        self.health().check()?;
        let digest = program.program().digest();
        let own = program.as_any().downcast_ref::<CudaProgram>();
        if !own.is_some_and(|own| Arc::ptr_eq(&own.core, &self.core)) {
            return Err(InstanceError::ForeignProgram);
        }
        let own = self.compiled.lock().get(&digest).cloned();
        let own = own.expect("what was compiled here is kept");
        check_state_bytes(request.state_bytes, self.limits.max_state_bytes)?;
        Ok(Arc::new(CudaInstance::create(own, request)?))
    }

    fn run_batch(&self, steps: &mut [Step]) -> Result<(), DeviceError> {
        self.health().check()?;
        if let Some(position) = steps.iter().position(|step| !self.is_own(&*step.instance)) {
            return Err(DeviceError::Driver {
                message: format!("step {position} of the batch is not of this device"),
            });
        }
        self.batches.run(&self.core, steps)
    }

    fn takes_device_payloads(&self) -> bool {
        true
    }

    fn peer_copy(&self) -> Option<&dyn PeerCopy> {
        self.may_access_peers.then_some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl PeerCopy for CudaDevice {
    /// Whether there is a direct way, or one over a third GPU that is open.
    fn reaches(&self, other: &dyn Device) -> bool {
        let Some(other) = other.as_any().downcast_ref::<Self>() else { return false };
        self.health().is_working()
            && other.health().is_working()
            && self.core.paths.find(&self.core.context, &other.core.context).is_some()
    }

    fn copy_state(
        &self,
        from: &dyn KernelInstance,
        to: &dyn KernelInstance,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Result<(), TransferError> {
        let (from, to) = (cuda_instance(from)?, cuda_instance(to)?);
        from.core().context.health().check()?;
        to.core().context.health().check()?;
        let smaller = from.state_bytes().min(to.state_bytes());
        check_range(offset_bytes, length_bytes, smaller)?;
        let path = self.core.paths.find(&from.core().context, &to.core().context);
        let path = path.ok_or_else(|| DeviceError::Driver {
            message: "neither GPU reaches the other, and no open GPU reaches both; copy through \
                      host memory"
                .to_owned(),
        })?;
        copy_state(&path, from, to, offset_bytes, length_bytes)
    }
}

fn cuda_instance(instance: &dyn KernelInstance) -> Result<&CudaInstance, DeviceError> {
    instance.as_any().downcast_ref().ok_or_else(|| DeviceError::Driver {
        message: format!("a copy between CUDA devices names {instance:?}, which is on none"),
    })
}
