//! One open logical device: compiling, creating instances, running batches.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use hopwise_core::device::{
    CompiledProgram, Device, DeviceMemory, InstanceRequest, KernelInstance, PeerCopy, Step,
};
use hopwise_core::device_info::{DeviceInfo, DeviceLimits};
use hopwise_core::error::{CompileError, DeviceError, InstanceError, check_state_bytes};
use hopwise_core::health::DeviceHealth;
use hopwise_core::program::{Program, ProgramDigest};
use parking_lot::Mutex;

use crate::batch::{self, BatchBuffers};
use crate::core::DeviceCore;
use crate::instance::WgpuInstance;
use crate::memory;
use crate::program::WgpuProgram;

/// An adapter, or one of several logical devices on it.
#[derive(Debug)]
pub struct WgpuDevice {
    info: DeviceInfo,
    limits: DeviceLimits,
    pub(crate) core: Arc<DeviceCore>,
    adapter: wgpu::Adapter,
    compiled: Mutex<HashMap<ProgramDigest, Arc<WgpuProgram>>>,
    batches: BatchBuffers,
}

impl WgpuDevice {
    pub(crate) fn new(
        info: DeviceInfo,
        limits: DeviceLimits,
        core: DeviceCore,
        adapter: wgpu::Adapter,
    ) -> Self {
        let (core, compiled, batches) = (Arc::new(core), Mutex::default(), BatchBuffers::default());
        Self { info, limits, core, adapter, compiled, batches }
    }

    /// Destroys the driver's device on purpose. All logical devices of the adapter are lost, and say
    /// this cause. Returns whether they worked until now.
    ///
    /// # Cost
    ///
    /// Waits for what the device works on, at most as long as
    /// [`WgpuOptions::with_wait_limit`](crate::WgpuOptions::with_wait_limit) says.
    pub fn lose(&self, cause: impl Into<String>) -> bool {
        let lost = self.core.driver.health().latch(DeviceError::Lost { cause: cause.into() });
        if lost {
            self.core.driver.destroy();
        }
        lost
    }

    /// Destroys the driver's device and tells nobody: that it is lost comes from the driver's own
    /// callback, as after a real loss.
    ///
    /// # Cost
    ///
    /// As [`lose`](Self::lose).
    pub fn destroy(&self) {
        if self.core.driver.health().is_working() {
            self.core.driver.destroy();
        }
    }

    /// How many buffers of the driver were created on this device so far. A steady state of batches
    /// creates none.
    #[must_use]
    pub fn buffers_created(&self) -> u64 {
        self.core.driver.buffers_created()
    }

    /// The first error of the driver's that came up outside of any call, where there was one. It
    /// failed no call, and the device may be used on.
    #[must_use]
    pub fn stray_error(&self) -> Option<String> {
        self.core.driver.stray_error()
    }

    fn is_own(&self, instance: &dyn KernelInstance) -> bool {
        let instance = instance.as_any().downcast_ref::<WgpuInstance>();
        instance.is_some_and(|instance| Arc::ptr_eq(&instance.core, &self.core))
    }
}

impl Device for WgpuDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn limits(&self) -> &DeviceLimits {
        &self.limits
    }

    /// What is left of the quota, or of the adapter's memory where the driver tells and it is less.
    fn memory(&self) -> Result<DeviceMemory, DeviceError> {
        self.core.driver.poll_once()?; // an idle device hears of its loss here
        let total_bytes = self.core.quota.total_bytes();
        let mut available_bytes = self.core.quota.available_bytes();
        if let Some(free) = memory::ask(&self.adapter).and_then(|memory| memory.available_bytes) {
            available_bytes = available_bytes.min(free);
        }
        self.core.driver.check()?;
        Ok(DeviceMemory { total_bytes, available_bytes })
    }

    fn health(&self) -> &DeviceHealth {
        self.core.driver.health()
    }

    fn poll(&self) -> Result<(), DeviceError> {
        self.core.driver.poll_once()
    }

    fn compile(&self, program: &Arc<Program>) -> Result<Arc<dyn CompiledProgram>, CompileError> {
        self.core.driver.check()?;
        let digest = program.digest();
        let known = self.compiled.lock().get(&digest).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        // Two threads may compile the same; the first to end has its work kept.
        let new = Arc::new(WgpuProgram::compile(program, &self.core)?);
        let mut compiled = self.compiled.lock();
        Ok(Arc::clone(compiled.entry(digest).or_insert(new)) as Arc<dyn CompiledProgram>)
    }

    fn create_instance(
        &self,
        program: &Arc<dyn CompiledProgram>,
        request: &InstanceRequest<'_>,
    ) -> Result<Arc<dyn KernelInstance>, InstanceError> {
        self.core.driver.check()?;
        let digest = program.program().digest();
        let own = program.as_any().downcast_ref::<WgpuProgram>();
        if !own.is_some_and(|own| Arc::ptr_eq(&own.core, &self.core)) {
            return Err(InstanceError::ForeignProgram);
        }
        let own = self.compiled.lock().get(&digest).cloned();
        let own = own.expect("what was compiled here is kept");
        check_state_bytes(request.state_bytes, self.limits.max_state_bytes)?;
        Ok(Arc::new(WgpuInstance::create(own, request)?))
    }

    fn run_batch(&self, steps: &mut [Step]) -> Result<(), DeviceError> {
        self.core.driver.check()?;
        if let Some(position) = steps.iter().position(|step| !self.is_own(&*step.instance)) {
            return Err(DeviceError::Driver {
                message: format!("step {position} of the batch is not of this device"),
            });
        }
        batch::run(&self.core, &self.batches, steps)
    }

    /// None: wgpu gives no device access to another's memory.
    fn peer_copy(&self) -> Option<&dyn PeerCopy> {
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
