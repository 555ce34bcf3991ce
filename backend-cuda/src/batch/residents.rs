//! The steps of a batch whose kernels stay on the GPU.

use std::sync::Arc;
use std::time::Instant;

use hopwise_core::device::{KernelInstance, PayloadWay, Step, StepOutcome};
use hopwise_core::error::{DeviceError, TransferError};
use hopwise_core::implementing::Ongoing;

use crate::context::Entered;
use crate::core::DeviceCore;
use crate::instance::CudaInstance;
use crate::prelude::KernelEntry;
use crate::resident::{Resident, ResidentStep};

/// Steps that were asked for.
pub(super) struct ResidentSteps<'a> {
    asked: Vec<Asked<'a>>,
    /// The first reason why a step could not be asked for; it is left out.
    failed: Option<DeviceError>,
}

struct Asked<'a> {
    position: usize,
    instance: &'a CudaInstance,
    resident: &'a Resident,
    _ongoing: Ongoing<'a>,
}

impl<'a> ResidentSteps<'a> {
    /// Asks every kernel that stays for its step. What cannot be asked has not started.
    pub(super) fn begin(
        core: &DeviceCore,
        entered: &Entered<'_>,
        instances: &'a [Arc<dyn KernelInstance>],
        steps: &mut [Step],
    ) -> Self {
        let started = Instant::now();
        let mut all = Self { asked: Vec::new(), failed: None };
        for (position, (instance, step)) in instances.iter().zip(steps).enumerate() {
            let instance = instance.as_any().downcast_ref::<CudaInstance>();
            let instance = instance.expect("instances were checked before the batch");
            let Some(resident) = instance.resident() else { continue };
            let wait = core.transfer_wait.saturating_sub(started.elapsed());
            let ongoing = match instance.begin_step(wait) {
                Ok(ongoing) => ongoing,
                Err(error) => {
                    all.fail(position, error);
                    continue;
                }
            };
            place_payloads(instance, step);
            match resident.begin(entered, &entries(instance, step), &boxes(instance, step)) {
                Ok(()) => {
                    step.outcome = StepOutcome::Unknown;
                    all.asked.push(Asked { position, instance, resident, _ongoing: ongoing });
                }
                Err(error) => all.fail(position, error.into()),
            }
        }
        all
    }

    fn fail(&mut self, position: usize, error: TransferError) {
        self.failed.get_or_insert(match error {
            TransferError::Device(error) => error,
            error => DeviceError::Driver {
                message: format!("step {position} of the batch could not begin: {error}"),
            },
        });
    }

    /// Waits for the steps that were asked for.
    pub(super) fn end(self, entered: &Entered<'_>, steps: &mut [Step]) -> Result<(), DeviceError> {
        let mut failed = self.failed;
        for Asked { position, instance, resident, _ongoing } in self.asked {
            let step = &mut steps[position];
            match resident.end(entered, &mut boxes(instance, step)) {
                Ok(()) => {
                    step.outcome = StepOutcome::Applied;
                    for received in &mut step.payloads.received {
                        received.way = Some(PayloadWay::Host);
                    }
                }
                Err(error) => {
                    failed.get_or_insert(error);
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

/// Puts payloads that were left out of the inbox where they belong.
fn place_payloads(instance: &CudaInstance, step: &mut Step) {
    let slot_words = instance.program.program.inbox_slot_words();
    for received in &step.payloads.received {
        let at = hopwise_core::abi::HEADER_WORDS
            + received.message as usize * slot_words
            + hopwise_core::abi::SLOT_HEADER_WORDS;
        let words = received.payload.to_words();
        step.inbox[at..at + words.len()].copy_from_slice(&words);
    }
}

/// The tables of the passes; the boxes are filled in by the kernel's own memory.
fn entries(instance: &CudaInstance, step: &Step) -> Vec<KernelEntry> {
    let messages = step.inbox[0];
    let passes = instance.program.program.passes().iter();
    let entry = |invocations| KernelEntry {
        state: instance.state(),
        state_words: instance.state_bytes() / 4,
        parameters: instance.parameter_block(),
        inbox: 0,
        outbox_header: 0,
        outbox_slots: 0,
        invocations,
    };
    passes.map(|pass| entry(instance.invocations(pass.grid, messages))).collect()
}

fn boxes<'a>(instance: &CudaInstance, step: &'a mut Step) -> ResidentStep<'a> {
    let slot_words = instance.program.program.outbox_slot_words();
    ResidentStep { inbox: &step.inbox, outbox: &mut step.outbox, slot_words }
}
