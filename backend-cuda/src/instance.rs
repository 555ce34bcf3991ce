//! A kernel's parameters and state on a device: one allocation, parameters first.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hopwise_core::abi::words_to_bytes;
use hopwise_core::device::{InitialState, InstanceRequest, KernelInstance};
use hopwise_core::error::{
    DeviceError, InstanceError, TransferError, check_chunk_bytes, check_range,
};
use hopwise_core::implementing::{Activity, Ongoing, Reservation, Work, invocations};
use hopwise_core::program::Grid;

use crate::context::{Context, Entered};
use crate::core::DeviceCore;
use crate::digester::{DigestedState, Digester};
use crate::owned::{Address, DeviceBuffer};
use crate::prelude::parameter_words;
use crate::program::CudaProgram;
use crate::resident::{Resident, Wanted};
use crate::transfer::Lane;

/// Where the state begins: memory accesses of a warp are aligned to so many bytes at most.
const STATE_ALIGNMENT: u64 = 256;

/// One kernel on a device.
pub(crate) struct CudaInstance {
    pub(crate) program: Arc<CudaProgram>,
    pub(crate) parameters: Vec<u32>,
    activity: Activity,
    /// Ends before the memory goes that its kernel works on.
    resident: Option<Resident>,
    /// `None` once it is given back or left behind.
    memory: Option<DeviceBuffer>,
    /// Whether somebody may write the memory who cannot be waited for.
    is_abandoned: AtomicBool,
    state_at: u64,
    state_bytes: u64,
    _memory: Reservation,
}

impl CudaInstance {
    /// Allocates and fills parameters and state. The size has been checked.
    pub(crate) fn create(
        program: Arc<CudaProgram>,
        request: &InstanceRequest<'_>,
    ) -> Result<Self, InstanceError> {
        let core = Arc::clone(&program.core);
        let mut parameters = request.parameters.to_vec();
        parameters.resize(parameter_words(&program.program), 0);
        let state_at = (parameters.len() as u64 * 4).next_multiple_of(STATE_ALIGNMENT);
        let bytes = state_at.saturating_add(request.state_bytes);
        let reservation = core.quota.reserve(bytes).map_err(|error| core.with_free_bytes(error))?;
        let entered = core.context.enter()?;
        let memory = DeviceBuffer::new(&entered, bytes)?;
        let mut block = vec![0; parameters.len() * 4];
        words_to_bytes(&parameters, &mut block);
        core.lanes.with(&entered, |lane| {
            let state = memory.address() + state_at;
            // SAFETY: the ranges lie in the new allocation, which nobody else knows.
            unsafe {
                lane.write(&entered, memory.address(), &block)?;
                match request.initial {
                    InitialState::Zeroed => lane.stream.zero(&entered, state, request.state_bytes),
                    InitialState::Bytes(bytes) => lane.write(&entered, state, bytes),
                    InitialState::Undefined => Ok(()),
                }
            }
        })?;
        drop(entered);
        let mut instance = Self {
            program,
            parameters,
            activity: Activity::default(),
            resident: None,
            memory: Some(memory),
            is_abandoned: AtomicBool::new(false),
            state_at,
            state_bytes: request.state_bytes,
            _memory: reservation,
        };
        instance.resident = instance.make_resident()?;
        Ok(instance)
    }

    /// Makes a kernel that stays on the GPU, where that may be and there is room for it.
    fn make_resident(&self) -> Result<Option<Resident>, DeviceError> {
        let core = self.core();
        let Some(multiprocessors) = core.resident_on else { return Ok(None) };
        let program = &self.program.program;
        let most_messages = program.inbox_slots();
        let invocations = program.passes().iter().map(|pass| {
            let messages = if pass.grid == Grid::Messages { most_messages } else { 0 };
            self.invocations(pass.grid, messages)
        });
        let threads = self.program.passes.iter().map(|function| function.block_threads);
        let wanted = Wanted {
            passes: program.passes().len(),
            outbox_words: program.outbox_words(),
            inbox_words: program.inbox_words(),
            invocations: invocations.max().unwrap_or(0),
            multiprocessors,
            block_threads: threads.min().unwrap_or(1),
        };
        let entered = self.context().enter()?;
        let Some(function) = self.program.resident_function(&entered) else { return Ok(None) };
        let resident = Resident::new(&entered, function, wanted)?;
        core.residents.fetch_add(usize::from(resident.is_some()), Ordering::Relaxed);
        Ok(resident)
    }

    /// The kernel that stays on the GPU, if this instance has one.
    pub(crate) fn resident(&self) -> Option<&Resident> {
        self.resident.as_ref()
    }

    pub(crate) fn core(&self) -> &Arc<DeviceCore> {
        &self.program.core
    }

    fn context(&self) -> &Arc<Context> {
        &self.core().context
    }

    /// Where the state lies.
    pub(crate) fn state(&self) -> Address {
        self.parameter_block() + self.state_at
    }

    /// Where the parameters lie.
    pub(crate) fn parameter_block(&self) -> Address {
        self.memory.as_ref().map_or(0, DeviceBuffer::address)
    }

    /// Leaves the memory behind when the instance goes: a copy from a GPU that does not respond may
    /// still write it.
    pub(crate) fn abandon_memory(&self) {
        self.is_abandoned.store(true, Ordering::Relaxed);
    }

    /// How many invocations a pass has.
    pub(crate) fn invocations(&self, grid: Grid, messages: u32) -> u64 {
        invocations(grid, self.state_bytes, &self.parameters, messages)
    }

    /// Begins a step, or says that the state was read or written for so long.
    pub(crate) fn begin_step(&self, wait: Duration) -> Result<Ongoing<'_>, TransferError> {
        self.activity.begin(Work::Step, self.context().health(), wait)
    }

    /// Begins to read or write the state.
    pub(crate) fn begin_transfer(&self) -> Result<Ongoing<'_>, TransferError> {
        let wait = self.core().transfer_wait;
        self.activity.begin(Work::Transfer, self.context().health(), wait)
    }

    /// Ends a kernel that stays on the GPU, so that the state can be read and written by others.
    pub(crate) fn park(&self, entered: &Entered<'_>) -> Result<(), DeviceError> {
        self.resident().map_or(Ok(()), |resident| resident.park(entered))
    }

    /// Works on the state, which nobody else does meanwhile.
    fn transfer<T>(
        &self,
        work: impl FnOnce(&Entered<'_>, &mut Lane) -> Result<T, DeviceError>,
    ) -> Result<T, TransferError> {
        let _ongoing = self.begin_transfer()?;
        let entered = self.context().enter()?;
        self.park(&entered)?;
        Ok(self.core().lanes.with(&entered, |lane| work(&entered, lane))?)
    }
}

impl Drop for CudaInstance {
    fn drop(&mut self) {
        let ended = self.resident.take().is_none_or(|resident| {
            self.core().residents.fetch_sub(1, Ordering::Relaxed);
            resident.finish()
        });
        if !ended || self.is_abandoned.load(Ordering::Relaxed) {
            std::mem::forget(self.memory.take());
        }
    }
}

impl KernelInstance for CudaInstance {
    fn state_bytes(&self) -> u64 {
        self.state_bytes
    }

    fn read_state(&self, offset_bytes: u64, into: &mut [u8]) -> Result<(), TransferError> {
        self.context().health().check()?;
        check_range(offset_bytes, into.len() as u64, self.state_bytes)?;
        let from = self.state() + offset_bytes;
        // SAFETY: the range lies in the state, which is not written during a transfer.
        self.transfer(|entered, lane| unsafe { lane.read(entered, from, into) })
    }

    fn write_state(&self, offset_bytes: u64, from: &[u8]) -> Result<(), TransferError> {
        self.context().health().check()?;
        check_range(offset_bytes, from.len() as u64, self.state_bytes)?;
        let to = self.state() + offset_bytes;
        // SAFETY: the range lies in the state, which nobody else touches during a transfer.
        self.transfer(|entered, lane| unsafe { lane.write(entered, to, from) })
    }

    /// Steps of the instance can run between parts of a large state: each chunk is digested as a
    /// whole.
    fn chunk_digests(&self, chunk_bytes: u64) -> Result<Vec<u64>, TransferError> {
        self.context().health().check()?;
        check_chunk_bytes(chunk_bytes)?;
        let core = self.core();
        let function = {
            let entered = self.context().enter()?;
            core.digester.function(&entered, &core.compiler, core.capability)?
        };
        let state = DigestedState { address: self.state(), bytes: self.state_bytes, chunk_bytes };
        let mut digests = Vec::new();
        for part in Digester::parts(self.state_bytes, chunk_bytes) {
            // SAFETY: the state is valid and not written during a transfer.
            self.transfer(|entered, lane| unsafe {
                Digester::digest(function, entered, lane, state, part, &mut digests)
            })?;
        }
        Ok(digests)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Prints the program's name and the size of the state, not its content.
impl fmt::Debug for CudaInstance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CudaInstance")
            .field("program", &self.program.program.name())
            .field("state_bytes", &self.state_bytes)
            .finish_non_exhaustive()
    }
}
