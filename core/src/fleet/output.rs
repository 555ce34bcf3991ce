//! What steps sent, gathered from their outboxes until it is committed.

use std::collections::VecDeque;
use std::sync::Arc;

use super::lanes::Parcel;
use super::router::Outlet;
use crate::abi::outbox::{self, SentSlot};
use crate::device::{Step, StepPayloads};
use crate::error::StepFault;
use crate::message::{Message, Payload};
use crate::program::Program;

/// The output of one step, or of several steps of one kernel in a row, in memory that is used again.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// Steps whose messages are here.
    pub(crate) steps: u32,
    pub(crate) messages: usize,
    /// A queue for each port that anything was ever sent on; most programs have few.
    ports: Vec<(u32, VecDeque<Parcel>)>,
    slots: Vec<SentSlot>,
}

impl Output {
    /// Adds what a step sent. Returns whether the kernel asked for one more step.
    ///
    /// # Errors
    ///
    /// The fault that stops the kernel. Nothing is added then.
    pub(crate) fn gather(&mut self, step: &Step, program: &Program) -> Result<bool, StepFault> {
        let run_again = outbox::read_slots(&step.outbox, program, &mut self.slots)?;
        self.steps += 1;
        self.messages += self.slots.len();
        for of_port in self.slots.chunk_by(|first, second| first.port == second.port) {
            let port = of_port[0].port;
            let position = self.ports.iter().position(|(known, _)| *known == port);
            let position = position.unwrap_or_else(|| {
                self.ports.push((port, VecDeque::new()));
                self.ports.len() - 1
            });
            // The numbers are given when the step is committed.
            let parcel =
                |sent| Parcel { sequence: 0, source: 0, message: message(sent, step, program) };
            self.ports[position].1.extend(of_port.iter().map(parcel));
        }
        Ok(run_again)
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        (self.steps, self.messages) = (0, 0);
        self.ports.iter_mut().for_each(|(_, parcels)| parcels.clear());
    }

    /// The ports with messages, whose queues the caller empties.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = (u32, &mut VecDeque<Parcel>)> {
        (self.steps, self.messages) = (0, 0);
        let ports = self.ports.iter_mut().map(|(port, parcels)| (*port, parcels));
        ports.filter(|(_, parcels)| !parcels.is_empty())
    }
}

/// Makes gathered messages those of a channel: their numbers, and what its options say.
pub(crate) fn number(parcels: &mut VecDeque<Parcel>, outlet: &Outlet) {
    let options = outlet.options;
    let first = outlet.channel.next_sequences(options.priority, parcels.len() as u64);
    for (sequence, parcel) in (first..).zip(parcels) {
        (parcel.sequence, parcel.source) = (sequence, outlet.source);
        parcel.message.priority = options.priority;
        if let Some(time) = options.time_to_live {
            parcel.message = std::mem::take(&mut parcel.message).with_time_to_live(time);
        }
    }
}

/// One message of an outbox.
fn message(sent: &SentSlot, step: &Step, program: &Program) -> Message {
    let StepPayloads { shared, kept, .. } = &step.payloads;
    let shared = shared.iter().find(|(slot, _)| *slot == sent.slot);
    let mut payload = match shared {
        Some((_, payload)) => payload.clone(),
        None => {
            let words = sent.payload(&step.outbox, program);
            Payload::from_slot(words, sent.length_bytes as usize)
        }
    };
    if let Some((_, copy)) = kept.iter().find(|(slot, _)| *slot == sent.slot) {
        payload = payload.with_copy_on_device(Arc::clone(copy));
    }
    Message::new(sent.tag, payload)
}
