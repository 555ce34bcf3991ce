//! Carries committed output into mailboxes. No thread ever waits here for room: what does not fit
//! stays with its sender, and whoever makes room delivers it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::channel::Channel;
use super::effects::{self, Effect, Effects};
use super::kernel::{KernelCell, PendingOutput, RunState};
use super::lanes::Parcel;
use super::mailbox::Mailbox;
use super::runtime::Runtime;
use super::worker::DeviceRuntime;
use crate::device_info::BackendKind;
use crate::message::Priority;

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

/// How the messages of a kernel's channel are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChannelOptions {
    /// How urgent they are.
    pub priority: Priority,
    /// For how long after their step they are worth something; `None`: for ever.
    pub time_to_live: Option<Duration>,
}

impl ChannelOptions {
    /// Normal priority, no end.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how urgent the messages are.
    #[must_use]
    pub fn with_priority(self, priority: Priority) -> Self {
        Self { priority, ..self }
    }

    /// Messages that no step has taken so long after they were sent go to the dead letters.
    #[must_use]
    pub fn with_time_to_live(self, time: Duration) -> Self {
        Self { time_to_live: Some(time), ..self }
    }
}

/// A sender's handle of a channel: from a port straight into the mailbox at its end.
#[derive(Debug)]
pub(crate) struct Outlet {
    pub(crate) channel: Arc<Channel>,
    pub(crate) mailbox: Arc<Mailbox>,
    /// The number by which the mailbox knows the channel.
    pub(crate) source: u32,
    /// The kernel at the end; `None` at an endpoint.
    receiver: Option<Weak<KernelCell>>,
    pub(crate) options: ChannelOptions,
    route: CachedRoute,
}

/// Where a channel's two ends are to each other, found once for each epoch. The epoch changes when
/// a kernel moves.
#[derive(Debug)]
struct CachedRoute {
    /// The epoch, and in the lowest bit whether both ends are on one device.
    word: AtomicU64,
}

impl CachedRoute {
    fn new() -> Self {
        Self { word: AtomicU64::new(u64::MAX) }
    }

    fn is_on_one_device(&self, epoch: u64, find: impl FnOnce() -> bool) -> bool {
        let known = self.word.load(Ordering::Relaxed);
        if known >> 1 == epoch {
            return known & 1 == 1;
        }
        let found = find();
        self.word.store(epoch << 1 | u64::from(found), Ordering::Relaxed);
        found
    }
}

impl Outlet {
    pub(crate) fn new(
        channel: Channel,
        mailbox: Arc<Mailbox>,
        receiver: Option<Weak<KernelCell>>,
        options: ChannelOptions,
    ) -> Arc<Self> {
        let channel = Arc::new(channel);
        let source = mailbox.attach(Arc::clone(&channel));
        let route = CachedRoute::new();
        Arc::new(Self { channel, mailbox, source, receiver, options, route })
    }

    pub(crate) fn leads_to_kernel(&self) -> bool {
        self.receiver.is_some()
    }

    /// Whether the receiver lives on this device too.
    fn stays_on(&self, device: &DeviceRuntime, epoch: u64) -> bool {
        self.route.is_on_one_device(epoch, || {
            let receiver = self.receiver.as_ref().and_then(Weak::upgrade);
            receiver.is_some_and(|kernel| kernel.home_device() == device.index)
        })
    }
}

impl Runtime {
    /// Delivers what fits of a kernel's pending output, then lets the kernel go on if nothing is
    /// left.
    pub(crate) fn deliver_pending(&self, cell: &Arc<KernelCell>) -> Effects {
        let mut effects = Effects::default();
        let mut run = cell.run.lock();
        let from = Arc::clone(&run.home.runtime);
        run.pending.retain_mut(|PendingOutput { outlet, parcels }| {
            effects.append(self.push(outlet, parcels, cell, &from));
            !parcels.is_empty()
        });
        self.settle(cell, &mut run);
        effects
    }

    /// Delivers what fits of new output on one channel; the rest becomes pending. The kernel has no
    /// pending output on it.
    pub(crate) fn send(
        &self,
        outlet: &Arc<Outlet>,
        parcels: &mut VecDeque<Parcel>,
        cell: &Arc<KernelCell>,
        run: &mut RunState,
    ) -> Effects {
        let effects = self.push(outlet, parcels, cell, &run.home.runtime);
        if !parcels.is_empty() {
            let parcels = std::mem::take(parcels);
            run.pending.push(PendingOutput { outlet: Arc::clone(outlet), parcels });
        }
        effects
    }

    /// Pushes what fits, through the injected fault if there is one.
    fn push(
        &self,
        outlet: &Arc<Outlet>,
        parcels: &mut VecDeque<Parcel>,
        cell: &Arc<KernelCell>,
        from: &DeviceRuntime,
    ) -> Effects {
        let Some(injector) = self.injector.as_ref().filter(|_| outlet.leads_to_kernel()) else {
            return self.push_all(outlet, parcels, cell, from);
        };
        let mut effects = Effects::default();
        while let Some(parcel) = parcels.pop_front() {
            let left = injector.pass(outlet, parcel, |parcel| {
                let mut one = VecDeque::from([parcel]);
                effects.append(self.push_all(outlet, &mut one, cell, from));
                one.pop_front()
            });
            if let Some(parcel) = left {
                parcels.push_front(parcel);
                break;
            }
        }
        effects
    }

    fn push_all(
        &self,
        outlet: &Outlet,
        parcels: &mut VecDeque<Parcel>,
        cell: &Arc<KernelCell>,
        from: &DeviceRuntime,
    ) -> Effects {
        let before = parcels.len() as u64;
        // What is on a device takes its way when the receiver's step begins.
        let on_devices = |parcels: &VecDeque<Parcel>| {
            let on_device = |parcel: &&Parcel| parcel.message.payload.on_device().is_some();
            parcels.iter().filter(on_device).count() as u64
        };
        let counts_payloads = outlet.leads_to_kernel() && from.keeps_payloads;
        let on_devices_before = if counts_payloads { on_devices(parcels) } else { 0 };
        let effects = outlet.mailbox.push_all(parcels, cell);
        let mut pushed = before - parcels.len() as u64;
        if counts_payloads {
            pushed -= on_devices_before - on_devices(parcels);
        }
        pushed -= effects.refused() as u64;
        if pushed > 0 {
            outlet.channel.note_route(self.way(outlet, from), pushed);
        }
        effects
    }

    fn way(&self, outlet: &Outlet, from: &DeviceRuntime) -> RoutingDecision {
        let epoch = self.moves.load(Ordering::Acquire);
        let in_host_memory = from.device.info().backend == BackendKind::Host;
        if in_host_memory && outlet.stays_on(from, epoch) {
            RoutingDecision::SameDevice
        } else {
            RoutingDecision::HostMediated
        }
    }

    /// Wakes those whom a change in mailboxes concerns, and lists what has become undeliverable.
    /// Called with no lock held.
    pub(crate) fn follow(&self, mut effects: Effects) {
        while !effects.is_empty() {
            for effect in std::mem::take(&mut effects) {
                match effect {
                    Effect::Receive(receiver) => {
                        self.settle(&receiver, &mut receiver.run.lock());
                        self.pulse.remove();
                    }
                    Effect::Deliver(sender) => effects.append(self.deliver_pending(&sender)),
                    Effect::Wake(waker) => effects::wake(waker),
                    Effect::Bury(dead) => self.dead_letters.add(*dead),
                }
            }
        }
    }
}
