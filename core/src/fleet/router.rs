//! Carries committed output into mailboxes. No thread ever waits here for room: what does not fit
//! stays with its sender, and whoever makes room delivers it.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use serde::{Deserialize, Serialize};

use super::channel::Channel;
use super::error::DeliveryReason;
use super::kernel::KernelCell;
use super::mailbox::{Parcel, Refused, Waiters};
use super::runtime::Runtime;
use crate::device_info::BackendKind;
use crate::id::ChannelId;

/// The way that a message's bytes really took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RoutingDecision {
    /// Between kernels of one host device: the bytes did not leave its memory.
    SameDevice,
    /// Through host memory: out of one device's memory, into another's.
    HostMediated,
}

impl Runtime {
    /// Delivers what fits of a kernel's pending output, then lets the kernel go on if nothing is
    /// left. Whoever finds another thread at it leaves a note instead.
    pub(crate) fn deliver_pending(&self, cell: &Arc<KernelCell>) {
        let mut run = cell.run.lock();
        if run.delivering {
            run.look_again = true;
            return;
        }
        while !run.pending.is_empty() {
            run.delivering = true;
            run.look_again = false;
            let from_device = run.device();
            let from_host = run.home.runtime.device.info().backend == BackendKind::Host;
            let batch = std::mem::take(&mut run.pending);
            drop(run);

            let mut blocked: Vec<ChannelId> = Vec::new();
            let mut left = VecDeque::new();
            for parcel in batch {
                let channel = Arc::clone(&parcel.channel);
                if blocked.contains(&channel.id) {
                    left.push_back(parcel);
                } else if let Some(parcel) = self.pass_on(parcel, cell) {
                    blocked.push(channel.id);
                    left.push_back(parcel);
                } else {
                    note_route(&channel, from_device, from_host);
                }
            }

            run = cell.run.lock();
            run.delivering = false;
            run.pending = left;
            if !run.look_again {
                break;
            }
        }
        self.settle(cell, &mut run);
    }

    /// Delivers one parcel, through the injected fault if there is one. A parcel that found no room
    /// comes back.
    fn pass_on(&self, parcel: Parcel, sender: &Arc<KernelCell>) -> Option<Parcel> {
        match &self.injector {
            None => self.deliver(parcel, sender),
            Some(injector) => injector.pass(parcel, |parcel| self.deliver(parcel, sender)),
        }
    }

    fn deliver(&self, parcel: Parcel, sender: &Arc<KernelCell>) -> Option<Parcel> {
        let channel = Arc::clone(&parcel.channel);
        match channel.to.mailbox.push(parcel, sender) {
            Ok(()) => {
                self.wake_receiver(&channel);
                None
            }
            Err(Refused::Full(parcel)) => Some(parcel),
            Err(Refused::Closed(parcel, reason)) => {
                channel.note_refused();
                self.dead_letters.add(parcel, DeliveryReason::clone(&reason));
                None
            }
        }
    }

    /// Lets the kernel at the end of a channel see a message that has come.
    pub(crate) fn wake_receiver(&self, channel: &Channel) {
        if let Some(receiver) = channel.to.kernel.as_ref().and_then(Weak::upgrade) {
            let mut run = receiver.run.lock();
            self.settle(&receiver, &mut run);
        }
    }

    /// Lets kernels whose output waited for room go on.
    pub(crate) fn wake(&self, waiters: Waiters) {
        for kernel in waiters.kernels {
            self.deliver_pending(&kernel);
        }
    }
}

fn note_route(channel: &Channel, from_device: usize, from_host: bool) {
    let receiver = channel.to.kernel.as_ref().and_then(Weak::upgrade);
    let stays = receiver.is_some_and(|kernel| kernel.home_device() == from_device);
    channel.note_route(if stays && from_host {
        RoutingDecision::SameDevice
    } else {
        RoutingDecision::HostMediated
    });
}
