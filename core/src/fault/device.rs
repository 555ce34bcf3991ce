//! The wrapped device and its instances.

use std::any::Any;
use std::mem;
use std::sync::Arc;

use super::plan::Operation;
use super::site::Site;
use crate::device::{
    CompiledProgram, Device, DeviceMemory, InitialState, InstanceRequest, KernelInstance, PeerCopy,
    Step, StepOutcome,
};
use crate::device_info::{DeviceInfo, DeviceLimits};
use crate::error::{CompileError, DeviceError, InstanceError, TransferError};
use crate::health::{Degradation, DeviceHealth};
use crate::program::Program;

/// A device whose calls a plan disturbs. Compiled programs are the inner device's own: nothing is
/// called on them.
#[derive(Debug)]
pub(super) struct FaultyDevice {
    inner: Arc<dyn Device>,
    site: Arc<Site>,
}

/// An instance on such a device.
#[derive(Debug)]
struct FaultyInstance {
    inner: Arc<dyn KernelInstance>,
    site: Arc<Site>,
}

impl FaultyDevice {
    pub(super) fn new(inner: Arc<dyn Device>, site: Arc<Site>) -> Self {
        let health = site.health.clone();
        inner.health().on_loss(Box::new(move |cause| {
            health.latch(cause.clone());
        }));
        Self { inner, site }
    }

    /// Runs the batch on the inner device, whose instances take the wrappers' places meanwhile.
    fn run_inner(&self, steps: &mut [Step]) -> Result<(), DeviceError> {
        let mut inner_steps: Vec<_> = steps
            .iter_mut()
            .map(|step| Step {
                instance: unwrapped(&step.instance),
                inbox: mem::take(&mut step.inbox),
                outbox: mem::take(&mut step.outbox),
                outcome: step.outcome.clone(),
                payloads: mem::take(&mut step.payloads),
            })
            .collect();
        let result = self.inner.run_batch(&mut inner_steps);
        for (step, inner) in steps.iter_mut().zip(inner_steps) {
            step.inbox = inner.inbox;
            step.outbox = inner.outbox;
            step.outcome = inner.outcome;
            step.payloads = inner.payloads;
        }
        result
    }
}

impl Device for FaultyDevice {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn limits(&self) -> &DeviceLimits {
        self.inner.limits()
    }

    fn memory(&self) -> Result<DeviceMemory, DeviceError> {
        self.site.call(Operation::Memory, |_| self.inner.memory())
    }

    fn health(&self) -> &DeviceHealth {
        &self.site.health
    }

    /// Not counted: it is called whenever a device has nothing to do.
    fn poll(&self) -> Result<(), DeviceError> {
        self.site.health.watch(self.inner.poll())
    }

    /// Not counted, as `poll`.
    fn degradations(&self) -> Result<Vec<Degradation>, DeviceError> {
        self.site.health.watch(self.inner.degradations())
    }

    fn compile(&self, program: &Arc<Program>) -> Result<Arc<dyn CompiledProgram>, CompileError> {
        self.site.call(Operation::Compile, |_| self.inner.compile(program))
    }

    fn create_instance(
        &self,
        program: &Arc<dyn CompiledProgram>,
        request: &InstanceRequest<'_>,
    ) -> Result<Arc<dyn KernelInstance>, InstanceError> {
        let inner = self.site.call(Operation::CreateInstance, |corrupt| match request.initial {
            InitialState::Bytes(bytes) if corrupt => {
                let wrong = corrupted(bytes);
                let initial = InitialState::Bytes(&wrong);
                self.inner.create_instance(program, &InstanceRequest { initial, ..*request })
            }
            _ => self.inner.create_instance(program, request),
        })?;
        Ok(Arc::new(FaultyInstance { inner, site: Arc::clone(&self.site) }))
    }

    fn run_batch(&self, steps: &mut [Step]) -> Result<(), DeviceError> {
        let disturbance = self.site.before(Operation::RunBatch)?;
        self.run_inner(steps)?;
        let reported = self.site.after(disturbance);
        if reported.is_err() {
            for step in steps {
                step.outcome = StepOutcome::Unknown;
            }
        }
        reported
    }

    fn takes_device_payloads(&self) -> bool {
        self.inner.takes_device_payloads()
    }

    fn reads_payloads_in_place(&self) -> bool {
        self.inner.reads_payloads_in_place()
    }

    fn peer_copy(&self) -> Option<&dyn PeerCopy> {
        self.inner.peer_copy().map(|_| self as &dyn PeerCopy)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl PeerCopy for FaultyDevice {
    fn reaches(&self, other: &dyn Device) -> bool {
        let inner_other = match other.as_any().downcast_ref::<Self>() {
            Some(wrapped) => &*wrapped.inner,
            None => other,
        };
        self.site.health.is_working()
            && other.health().is_working()
            && self.inner.peer_copy().is_some_and(|peer| peer.reaches(inner_other))
    }

    fn copy_state(
        &self,
        from: &dyn KernelInstance,
        to: &dyn KernelInstance,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Result<(), TransferError> {
        let (from, to) = (inner_of(from)?, inner_of(to)?);
        self.site.call(Operation::PeerCopy, |corrupt| {
            let peer = self.inner.peer_copy().ok_or_else(|| DeviceError::Driver {
                message: "the inner device offers no copies to peers any more".to_owned(),
            })?;
            peer.copy_state(from, to, offset_bytes, length_bytes)?;
            if corrupt && length_bytes > 0 {
                let mut word = [0; 4];
                to.read_state(offset_bytes, &mut word)?;
                to.write_state(offset_bytes, &corrupted(&word))?;
            }
            Ok(())
        })
    }
}

impl KernelInstance for FaultyInstance {
    fn state_bytes(&self) -> u64 {
        self.inner.state_bytes()
    }

    fn read_state(&self, offset_bytes: u64, into: &mut [u8]) -> Result<(), TransferError> {
        self.site.call(Operation::ReadState, |corrupt| {
            self.inner.read_state(offset_bytes, into)?;
            if let (true, Some(first)) = (corrupt, into.first_mut()) {
                *first ^= 1;
            }
            Ok(())
        })
    }

    fn write_state(&self, offset_bytes: u64, from: &[u8]) -> Result<(), TransferError> {
        self.site.call(Operation::WriteState, |corrupt| {
            if corrupt {
                return self.inner.write_state(offset_bytes, &corrupted(from));
            }
            self.inner.write_state(offset_bytes, from)
        })
    }

    fn chunk_digests(&self, chunk_bytes: u64) -> Result<Vec<u64>, TransferError> {
        self.site.call(Operation::Digests, |corrupt| {
            let mut digests = self.inner.chunk_digests(chunk_bytes)?;
            if let (true, Some(first)) = (corrupt, digests.first_mut()) {
                *first ^= 1;
            }
            Ok(digests)
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The instance underneath, for a batch; one that is not wrapped is left to the inner device.
fn unwrapped(instance: &Arc<dyn KernelInstance>) -> Arc<dyn KernelInstance> {
    match instance.as_any().downcast_ref::<FaultyInstance>() {
        Some(wrapped) => Arc::clone(&wrapped.inner),
        None => Arc::clone(instance),
    }
}

/// The instance underneath, unless its device is gone.
fn inner_of(instance: &dyn KernelInstance) -> Result<&dyn KernelInstance, DeviceError> {
    match instance.as_any().downcast_ref::<FaultyInstance>() {
        Some(wrapped) => wrapped.site.health.check().map(|()| &*wrapped.inner),
        None => Ok(instance),
    }
}

fn corrupted(bytes: &[u8]) -> Vec<u8> {
    let mut wrong = bytes.to_vec();
    if let Some(first) = wrong.first_mut() {
        *first ^= 1;
    }
    wrong
}
