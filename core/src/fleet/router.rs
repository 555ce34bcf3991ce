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
use super::worker::DeviceRuntime;
use crate::device_info::BackendKind;
use crate::id::ChannelId;

/// The way that a message's bytes really took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RoutingDecision {
    /// Between kernels of one device: the bytes did not leave its memory.
    SameDevice,
    /// From the memory of one device straight into another's. The bytes went to host memory besides,
    /// where they outlive the device that sent them.
    DirectP2P,
    /// From device to device through a third one; and to host memory, as above.
    MultiHop {
        /// The index of the device in the middle; `None` when it is not of this fleet.
        relay: Option<usize>,
    },
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
            let from = run.home.runtime.clone();
            let batch = std::mem::take(&mut run.pending);
            drop(run);

            let mut blocked: Vec<ChannelId> = Vec::new();
            let mut left = VecDeque::new();
            for parcel in batch {
                let channel = Arc::clone(&parcel.channel);
                if blocked.contains(&channel.id) {
                    left.push_back(parcel);
                } else if let Some(parcel) = self.pass_on(parcel, cell, &from) {
                    blocked.push(channel.id);
                    left.push_back(parcel);
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
    fn pass_on(
        &self,
        parcel: Parcel,
        sender: &Arc<KernelCell>,
        from: &DeviceRuntime,
    ) -> Option<Parcel> {
        match &self.injector {
            Some(injector) if parcel.channel.to.kernel.is_some() => {
                injector.pass(parcel, |parcel| self.deliver(parcel, sender, from))
            }
            _ => self.deliver(parcel, sender, from),
        }
    }

    fn deliver(
        &self,
        parcel: Parcel,
        sender: &Arc<KernelCell>,
        from: &DeviceRuntime,
    ) -> Option<Parcel> {
        let channel = Arc::clone(&parcel.channel);
        // What is on a device takes its way when the receiver's step begins.
        let is_on_device = parcel.message.payload.on_device().is_some();
        match channel.to.mailbox.push(parcel, sender) {
            Ok(waiters) => {
                if !is_on_device || channel.to.kernel.is_none() {
                    note_route(&channel, from);
                }
                self.wake(waiters);
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

    /// Wakes those who waited for a mailbox. Called with no lock held.
    pub(crate) fn wake(&self, mut waiters: Waiters) {
        waiters.wake_futures();
        for kernel in waiters.kernels {
            self.deliver_pending(&kernel);
        }
    }
}

fn note_route(channel: &Channel, from: &DeviceRuntime) {
    let receiver = channel.to.kernel.as_ref().and_then(Weak::upgrade);
    let stays = receiver.is_some_and(|kernel| kernel.home_device() == from.index);
    let in_host_memory = from.device.info().backend == BackendKind::Host;
    channel.note_route(if stays && in_host_memory {
        RoutingDecision::SameDevice
    } else {
        RoutingDecision::HostMediated
    });
}
