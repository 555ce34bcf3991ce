//! Which steps of a batch run, and where what belongs to them lies.

use std::sync::Arc;
use std::time::Instant;

use hopwise_core::abi::{HEADER_WORDS, SLOT_HEADER_WORDS, bytes_to_words, words_to_bytes};
use hopwise_core::device::{KernelInstance, Step, StepOutcome};
use hopwise_core::error::{DeviceError, StepFault, TransferError};
use hopwise_core::implementing::Ongoing;

use super::launches::{Launch, launches};
use crate::core::DeviceCore;
use crate::instance::CudaInstance;
use crate::module::{Function, MAX_BLOCKS};
use crate::prelude::{KERNEL_BYTES, KernelEntry};

/// Where parts of a batch's memory begin: multiples of so many bytes.
const ALIGNMENT: usize = 16;

/// One step of a batch.
pub(super) struct Planned<'a> {
    /// Its place in the batch.
    pub(super) position: usize,
    pub(super) instance: &'a CudaInstance,
    pub(super) messages: u32,
    pub(super) inbox_at: usize,
    pub(super) header_at: usize,
    pub(super) slots_at: usize,
    _ongoing: Ongoing<'a>,
}

/// The steps of a batch that can run, and where their boxes lie.
pub(super) struct Plan<'a> {
    pub(super) planned: Vec<Planned<'a>>,
    pub(super) launches: Vec<Launch<'a>>,
    /// Where what is uploaded ends, and where what is downloaded begins and ends.
    pub(super) upload_bytes: usize,
    pub(super) download_at: usize,
    pub(super) whole_bytes: usize,
    /// Why a step could not begin; the others run without it.
    pub(super) busy: Option<DeviceError>,
}

impl<'a> Plan<'a> {
    /// Begins every step and gives it a place. A step that cannot run stops its kernel alone, one
    /// whose state is being read or written for too long is left out of the batch.
    pub(super) fn new(
        core: &DeviceCore,
        instances: &'a [Arc<dyn KernelInstance>],
        steps: &mut [Step],
    ) -> Result<Self, DeviceError> {
        let started = Instant::now();
        let mut planned = Vec::with_capacity(steps.len());
        let mut busy = None;
        for (position, (instance, step)) in instances.iter().zip(steps.iter_mut()).enumerate() {
            let instance = instance.as_any().downcast_ref::<CudaInstance>();
            let instance = instance.expect("instances were checked before the batch");
            if instance.resident().is_some() {
                continue; // it takes its steps without a launch
            }
            let messages = step.inbox[0];
            if let Some(fault) = too_large(instance, messages) {
                step.outcome = StepOutcome::Faulted(fault);
                continue;
            }
            let wait = core.transfer_wait.saturating_sub(started.elapsed());
            let _ongoing = match instance.begin_step(wait) {
                Ok(ongoing) => ongoing,
                Err(TransferError::Device(error)) => return Err(error),
                Err(error) => {
                    let message = format!("step {position} of the batch could not begin: {error}");
                    busy = Some(DeviceError::Driver { message });
                    continue;
                }
            };
            let (inbox_at, header_at, slots_at) = (0, 0, 0);
            planned.push(Planned {
                position,
                instance,
                messages,
                inbox_at,
                header_at,
                slots_at,
                _ongoing,
            });
        }
        Ok(Self::lay_out(planned, steps, busy))
    }

    fn lay_out(mut planned: Vec<Planned<'a>>, steps: &[Step], busy: Option<DeviceError>) -> Self {
        let (launches, mut end) = launches(&planned);
        let mut next = |words: usize| {
            let at = end;
            end = (end + words * 4).next_multiple_of(ALIGNMENT);
            at
        };
        for planned in &mut planned {
            planned.inbox_at = next(steps[planned.position].inbox.len());
        }
        let download_at = next(0);
        for planned in &mut planned {
            planned.header_at = next(HEADER_WORDS);
        }
        let upload_bytes = next(0);
        for planned in &mut planned {
            planned.slots_at = next(planned.instance.program.boxes.outbox_slots);
        }
        let whole_bytes = next(0);
        Self { planned, launches, upload_bytes, download_at, whole_bytes, busy }
    }

    /// Writes tables, inboxes and headers as they will lie in an arena at this address.
    pub(super) fn fill(&self, arena: u64, steps: &[Step], into: &mut [u8]) {
        for launch in &self.launches {
            let table = &mut into[launch.table_at..][..launch.kernels.len() * KERNEL_BYTES];
            let entries = table.chunks_exact_mut(KERNEL_BYTES).zip(&launch.kernels);
            for (entry, (kernel, invocations)) in entries {
                self.planned[*kernel].entry(arena, *invocations).write(entry);
            }
        }
        for planned in &self.planned {
            let step = &steps[planned.position];
            let inbox = &mut into[planned.inbox_at..][..step.inbox.len() * 4];
            words_to_bytes(&step.inbox, inbox);
            let slot_bytes = planned.instance.program.program.inbox_slot_words() * 4;
            for received in &step.payloads.received {
                let slot = HEADER_WORDS * 4 + received.message as usize * slot_bytes;
                let bytes = received.payload.as_bytes();
                inbox[slot + SLOT_HEADER_WORDS * 4..][..bytes.len()].copy_from_slice(bytes);
            }
            let header = &mut into[planned.header_at..][..HEADER_WORDS * 4];
            words_to_bytes(&step.outbox[..HEADER_WORDS], header);
        }
    }

    /// Takes over what every step sent.
    pub(super) fn read(&self, steps: &mut [Step], download: &[u8]) {
        let part = |at: usize, words: usize| &download[at - self.download_at..][..words * 4];
        for planned in &self.planned {
            let step = &mut steps[planned.position];
            let (header, slots) = step.outbox.split_at_mut(HEADER_WORDS);
            bytes_to_words(part(planned.header_at, HEADER_WORDS), header);
            let program = &planned.instance.program.program;
            let sent = header[0].min(program.outbox_slots()) as usize;
            let words = sent * program.outbox_slot_words();
            bytes_to_words(part(planned.slots_at, words), &mut slots[..words]);
            step.outcome = StepOutcome::Applied;
        }
    }

    pub(super) fn mark_unknown(&self, launch: &Launch<'_>, steps: &mut [Step]) {
        for (kernel, _) in &launch.kernels {
            steps[self.planned[*kernel].position].outcome = StepOutcome::Unknown;
        }
    }
}

impl Planned<'_> {
    fn entry(&self, arena: u64, invocations: u64) -> KernelEntry {
        let at = |offset: usize| arena + offset as u64;
        KernelEntry {
            state: self.instance.state(),
            state_words: self.instance.state_bytes() / 4,
            parameters: self.instance.parameter_block(),
            inbox: at(self.inbox_at),
            outbox_header: at(self.header_at),
            outbox_slots: at(self.slots_at),
            invocations,
        }
    }
}

/// A grid that no device can index.
fn too_large(instance: &CudaInstance, messages: u32) -> Option<StepFault> {
    let passes = instance.program.program.passes().iter().zip(&instance.program.passes);
    for (pass, function) in passes {
        let wanted = instance.invocations(pass.grid, messages);
        let most = MAX_BLOCKS * u64::from(threads_of(function));
        if wanted > most {
            let message = format!(
                "pass `{}` asks for {wanted} invocations, {most} are possible; use several passes",
                pass.entry_point
            );
            return Some(StepFault::Device(DeviceError::Driver { message }));
        }
    }
    None
}

/// Threads of a block of many: what HW_PASS allows, or less where the program does.
pub(super) fn threads_of(function: &Function) -> u32 {
    function.block_threads.min(256)
}
