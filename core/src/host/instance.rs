//! A kernel's parameters and state on a host device.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::device::DeviceCore;
use crate::abi::{bytes_to_words, words_to_bytes};
use crate::device::{InitialState, InstanceRequest, KernelInstance};
use crate::digest;
use crate::error::{DeviceError, InstanceError, TransferError, check_chunk_bytes, check_range};
use crate::implementing::Reservation;
use crate::program::{HostFunction, Program};

/// One kernel on a host device.
pub struct HostInstance {
    pub(super) device: Arc<DeviceCore>,
    pub(super) program: Arc<Program>,
    pub(super) function: HostFunction,
    pub(super) parameters: Vec<u32>,
    state: StateCell,
    state_bytes: u64,
    _memory: Reservation,
}

impl HostInstance {
    /// Allocates the state. The memory has been reserved, the size checked.
    pub(super) fn new(
        device: Arc<DeviceCore>,
        program: Arc<Program>,
        function: HostFunction,
        request: &InstanceRequest<'_>,
        memory: Reservation,
    ) -> Result<Self, InstanceError> {
        let parameters = parameter_block(&program, request.parameters);
        let state = StateCell::new(allocate(request)?);
        let state_bytes = request.state_bytes;
        Ok(Self { device, program, function, parameters, state, state_bytes, _memory: memory })
    }

    /// Takes the state for a step. Waits for transfers, and for a running step up to the limit.
    pub(super) fn take_state(&self) -> Result<Vec<u32>, TransferError> {
        self.state.take(self.device.transfer_wait)
    }

    /// Puts the state back after a step and wakes those who wait for it.
    pub(super) fn put_state(&self, words: Vec<u32>) {
        self.state.put(words);
    }

    /// Copies a range of state to the same range of `to`. The ranges have been checked.
    pub(super) fn copy_to(
        &self,
        to: &Self,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Result<(), TransferError> {
        let range = words_of(offset_bytes, length_bytes);
        self.state.copy_to(&to.state, range, self.device.transfer_wait)
    }

    /// A device lost meanwhile is the answer, whatever the state says.
    fn with_state<T>(&self, work: impl FnOnce(&mut [u32]) -> T) -> Result<T, TransferError> {
        let result = self.state.with(self.device.transfer_wait, work);
        self.device.health.check()?;
        result
    }
}

impl KernelInstance for HostInstance {
    fn state_bytes(&self) -> u64 {
        self.state_bytes
    }

    fn read_state(&self, offset_bytes: u64, into: &mut [u8]) -> Result<(), TransferError> {
        self.device.health.check()?;
        check_range(offset_bytes, into.len() as u64, self.state_bytes)?;
        let range = words_of(offset_bytes, into.len() as u64);
        self.with_state(|words| words_to_bytes(&words[range], into))
    }

    fn write_state(&self, offset_bytes: u64, from: &[u8]) -> Result<(), TransferError> {
        self.device.health.check()?;
        check_range(offset_bytes, from.len() as u64, self.state_bytes)?;
        let range = words_of(offset_bytes, from.len() as u64);
        self.with_state(|words| bytes_to_words(from, &mut words[range]))
    }

    fn chunk_digests(&self, chunk_bytes: u64) -> Result<Vec<u64>, TransferError> {
        self.device.health.check()?;
        check_chunk_bytes(chunk_bytes)?;
        self.with_state(|words| digest::state_digests(words, chunk_bytes))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Prints the program's name and the size of the state, not its content.
impl fmt::Debug for HostInstance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HostInstance")
            .field("program", &self.program.name())
            .field("state_bytes", &self.state_bytes)
            .finish_non_exhaustive()
    }
}

/// Bytes that an instance counts against the quota: state and parameters.
pub(super) fn instance_bytes(program: &Program, request: &InstanceRequest<'_>) -> u64 {
    let parameter_words = parameter_block(program, request.parameters).len() as u64;
    request.state_bytes.saturating_add(parameter_words * 4)
}

/// Parameters filled up to what the program declares, then padded.
fn parameter_block(program: &Program, parameters: &[u32]) -> Vec<u32> {
    let declared = program.parameter_words() as usize;
    let mut block = parameters.to_vec();
    block.resize(declared.max(parameters.len()), 0);
    crate::abi::padded_parameters(&block)
}

/// Allocates and fills a state, touching every page, so that memory that the machine does not have
/// is an error now.
fn allocate(request: &InstanceRequest<'_>) -> Result<Vec<u32>, DeviceError> {
    let out_of_memory =
        || DeviceError::OutOfMemory { requested_bytes: request.state_bytes, available_bytes: None };
    let length = usize::try_from(request.state_bytes / 4).map_err(|_| out_of_memory())?;
    let mut words = Vec::new();
    words.try_reserve_exact(length).map_err(|_| out_of_memory())?;
    words.resize(length, 0);
    if let InitialState::Bytes(bytes) = request.initial {
        debug_assert_eq!(bytes.len() as u64, request.state_bytes, "the initial state is whole");
        bytes_to_words(bytes, &mut words);
    }
    Ok(words)
}

/// The words that a checked range covers.
fn words_of(offset_bytes: u64, length_bytes: u64) -> std::ops::Range<usize> {
    let word = |bytes: u64| usize::try_from(bytes / 4).expect("a state lies in memory");
    word(offset_bytes)..word(offset_bytes + length_bytes)
}

/// The state, or nothing while a step owns it.
struct StateCell {
    words: Mutex<Option<Vec<u32>>>,
    returned: Condvar,
}

impl StateCell {
    fn new(words: Vec<u32>) -> Self {
        Self { words: Mutex::new(Some(words)), returned: Condvar::new() }
    }

    fn put(&self, words: Vec<u32>) {
        *self.words.lock() = Some(words);
        self.returned.notify_all();
    }

    fn take(&self, wait: Duration) -> Result<Vec<u32>, TransferError> {
        // Mostly it is here, and the clock need not be asked.
        if let Some(words) = self.words.lock().take() {
            return Ok(words);
        }
        self.until_present(deadline(wait), wait, Option::take)
    }

    fn with<T>(
        &self,
        wait: Duration,
        work: impl FnOnce(&mut [u32]) -> T,
    ) -> Result<T, TransferError> {
        self.until_present(deadline(wait), wait, |words| words.as_deref_mut().map(work))
    }

    /// Waits until the state is here, then calls `work` under the lock.
    fn until_present<T>(
        &self,
        deadline: Option<Instant>,
        wait: Duration,
        work: impl FnOnce(&mut Option<Vec<u32>>) -> Option<T>,
    ) -> Result<T, TransferError> {
        let mut words = self.words.lock();
        while words.is_none() {
            let timed_out = match deadline {
                Some(deadline) => self.returned.wait_until(&mut words, deadline).timed_out(),
                None => {
                    self.returned.wait(&mut words);
                    false
                }
            };
            if timed_out && words.is_none() {
                return Err(busy(wait));
            }
        }
        work(&mut words).ok_or_else(|| busy(wait))
    }

    /// Copies between two cells. Both locks are taken in the order of their addresses, and none is
    /// held while waiting for a step to end, so copies in opposite directions cannot block one
    /// another.
    fn copy_to(
        &self,
        to: &Self,
        range: std::ops::Range<usize>,
        wait: Duration,
    ) -> Result<(), TransferError> {
        if std::ptr::eq(self, to) {
            return self.with(wait, |_| ());
        }
        let deadline = deadline(wait);
        let self_first = std::ptr::from_ref(self).addr() < std::ptr::from_ref(to).addr();
        loop {
            let (source, mut target);
            if self_first {
                source = self.words.lock();
                target = to.words.lock();
            } else {
                target = to.words.lock();
                source = self.words.lock();
            }
            let missing = match (source.as_deref(), target.as_deref_mut()) {
                (Some(source), Some(target)) => {
                    target[range.clone()].copy_from_slice(&source[range]);
                    return Ok(());
                }
                (None, _) => self,
                (_, None) => to,
            };
            drop((source, target));
            missing.until_present(deadline, wait, |_| Some(()))?;
        }
    }
}

fn busy(wait: Duration) -> TransferError {
    TransferError::Busy { waited_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX) }
}

/// The instant at which a wait ends; never, where the clock cannot tell it.
fn deadline(wait: Duration) -> Option<Instant> {
    Instant::now().checked_add(wait)
}
