//! Faults on purpose, between kernels: to show that the ledgers see what goes wrong.

use parking_lot::Mutex;

use super::mailbox::Parcel;

/// What is done to a message between kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFaultKind {
    /// The message vanishes.
    Lose,
    /// The message is delivered twice.
    Duplicate,
    /// The message is delivered after the next one of its channel.
    Reorder,
}

/// A fault that strikes once: the n-th attempt to deliver a message from kernel to kernel, counted
/// over the whole fleet. An attempt that found no room counts, and is struck when it is made again.
///
/// A reordered message is lost in effect when no other follows on its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageFault {
    /// What happens.
    pub kind: MessageFaultKind,
    /// To which attempt, from 1.
    pub nth: u64,
}

#[derive(Debug)]
pub(crate) struct Injector {
    fault: MessageFault,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    seen: u64,
    struck: bool,
    held_back: Option<Parcel>,
}

impl Injector {
    pub(crate) fn new(fault: MessageFault) -> Self {
        Self { fault, state: Mutex::new(State::default()) }
    }

    /// Hands a parcel to `deliver`, or does to it what the fault says. What found no room is given
    /// back.
    pub(crate) fn pass(
        &self,
        parcel: Parcel,
        deliver: impl Fn(Parcel) -> Option<Parcel>,
    ) -> Option<Parcel> {
        let (strikes, released) = {
            let mut state = self.state.lock();
            state.seen += 1;
            let strikes = !state.struck && state.seen >= self.fault.nth;
            state.struck |= strikes;
            let same = |held: &Parcel| held.channel.id == parcel.channel.id;
            (
                strikes,
                if state.held_back.as_ref().is_some_and(same) {
                    state.held_back.take()
                } else {
                    None
                },
            )
        };
        if strikes {
            return self.strike(parcel, deliver);
        }
        let left = deliver(parcel);
        match released {
            Some(held) if left.is_some() => self.state.lock().held_back = Some(held),
            // If it finds no room now it is lost: the fault is there to be seen.
            Some(held) => drop(deliver(held)),
            None => {}
        }
        left
    }

    fn strike(&self, parcel: Parcel, deliver: impl Fn(Parcel) -> Option<Parcel>) -> Option<Parcel> {
        match self.fault.kind {
            MessageFaultKind::Lose => None,
            MessageFaultKind::Reorder => {
                self.state.lock().held_back = Some(parcel);
                None
            }
            MessageFaultKind::Duplicate => {
                let copy = Parcel {
                    channel: parcel.channel.clone(),
                    sequence: parcel.sequence,
                    message: parcel.message.clone(),
                };
                let left = deliver(parcel);
                if left.is_some() || deliver(copy).is_some() {
                    self.state.lock().struck = false; // no room: strike the next one
                }
                left
            }
        }
    }
}
