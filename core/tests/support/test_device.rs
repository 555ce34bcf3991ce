//! A host device whose limits and outcomes a test can change.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use hopwise_core::backend::Backend;
use hopwise_core::device::{
    CompiledProgram, Device, DeviceMemory, InstanceRequest, KernelInstance, PeerCopy, Step,
    StepOutcome,
};
use hopwise_core::device_info::{DeviceInfo, DeviceLimits};
use hopwise_core::error::{CompileError, DeviceError, InstanceError};
use hopwise_core::health::DeviceHealth;
use hopwise_core::host::{HostBackend, HostOptions};
use hopwise_core::program::Program;

#[derive(Debug)]
pub(crate) struct TestDevice {
    inner: Arc<dyn Device>,
    pub(crate) limits: DeviceLimits,
    pub(crate) info: DeviceInfo,
    /// Most steps that came in one batch.
    pub(crate) largest_batch: AtomicUsize,
    /// The next batch runs, and then the backend panics before it has said so.
    pub(crate) panics_after_batch: AtomicBool,
    /// The next thread that asks whether the idle device is there gets no answer.
    pub(crate) hangs_when_idle: AtomicBool,
}

impl TestDevice {
    pub(crate) fn new() -> Self {
        let backend = HostBackend::new(HostOptions::new(1).with_workers(1));
        let inner = backend.open(0).expect("host devices open");
        let (limits, info) = (inner.limits().clone(), inner.info().clone());
        let [panics_after_batch, hangs_when_idle] = [false, false].map(AtomicBool::new);
        let largest_batch = AtomicUsize::new(0);
        Self { inner, limits, info, largest_batch, panics_after_batch, hangs_when_idle }
    }
}

impl Device for TestDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn limits(&self) -> &DeviceLimits {
        &self.limits
    }

    fn memory(&self) -> Result<DeviceMemory, DeviceError> {
        self.inner.memory()
    }

    fn health(&self) -> &DeviceHealth {
        self.inner.health()
    }

    fn poll(&self) -> Result<(), DeviceError> {
        if self.hangs_when_idle.swap(false, Ordering::SeqCst) {
            std::thread::sleep(std::time::Duration::MAX);
        }
        self.inner.poll()
    }

    fn compile(&self, program: &Arc<Program>) -> Result<Arc<dyn CompiledProgram>, CompileError> {
        self.inner.compile(program)
    }

    fn create_instance(
        &self,
        program: &Arc<dyn CompiledProgram>,
        request: &InstanceRequest<'_>,
    ) -> Result<Arc<dyn KernelInstance>, InstanceError> {
        self.inner.create_instance(program, request)
    }

    fn run_batch(&self, steps: &mut [Step]) -> Result<(), DeviceError> {
        self.largest_batch.fetch_max(steps.len(), Ordering::SeqCst);
        let result = self.inner.run_batch(steps);
        if self.panics_after_batch.swap(false, Ordering::SeqCst) {
            for step in steps.iter_mut() {
                step.outcome = StepOutcome::NotStarted;
            }
            panic!("a mistake in the backend");
        }
        result
    }

    fn peer_copy(&self) -> Option<&dyn PeerCopy> {
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
