//! Faults on purpose, between kernels: to show that the ledgers see what goes wrong.

use parking_lot::Mutex;

use super::lanes::Parcel;
use super::router::Outlet;
use crate::id::ChannelId;

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
    held_back: Option<(ChannelId, Parcel)>,
}

impl Injector {
    pub(crate) fn new(fault: MessageFault) -> Self {
        Self { fault, state: Mutex::new(State::default()) }
    }

    /// Hands a parcel to `deliver`, or does to it what the fault says. What found no room is given
    /// back.
    pub(crate) fn pass(
        &self,
        outlet: &Outlet,
        parcel: Parcel,
        mut deliver: impl FnMut(Parcel) -> Option<Parcel>,
    ) -> Option<Parcel> {
        let channel = outlet.channel.id;
        let (strikes, released) = {
            let mut state = self.state.lock();
            state.seen += 1;
            let strikes = !state.struck && state.seen >= self.fault.nth;
            state.struck |= strikes;
            (strikes, state.held_back.take_if(|(held, _)| *held == channel))
        };
        if strikes {
            return self.strike(channel, parcel, deliver);
        }
        let left = deliver(parcel);
        match released {
            Some(held) if left.is_some() => self.state.lock().held_back = Some(held),
            // If it finds no room now it is lost: the fault is there to be seen.
            Some((_, held)) => drop(deliver(held)),
            None => {}
        }
        left
    }

    fn strike(
        &self,
        channel: ChannelId,
        parcel: Parcel,
        mut deliver: impl FnMut(Parcel) -> Option<Parcel>,
    ) -> Option<Parcel> {
        match self.fault.kind {
            MessageFaultKind::Lose => None,
            MessageFaultKind::Reorder => {
                self.state.lock().held_back = Some((channel, parcel));
                None
            }
            MessageFaultKind::Duplicate => {
                let Parcel { sequence, source, ref message } = parcel;
                let copy = Parcel { sequence, source, message: message.clone() };
                let left = deliver(parcel);
                if left.is_some() || deliver(copy).is_some() {
                    self.state.lock().struck = false; // no room: strike the next one
                }
                left
            }
        }
    }
}
