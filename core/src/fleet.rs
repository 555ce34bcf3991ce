//! The fleet: runs kernels on devices, carries their messages, moves them on request.
//!
//! A fleet owns a coordinator, opened devices, the router and every thread. A mailbox belongs to
//! its kernel and not to a device. **A step commits when its outbox is in host memory**: in one
//! action its inbox is released and what it sent becomes the kernel's pending output. A kernel with
//! pending output does not run, and no worker ever waits for room: whoever takes a message out of a
//! full mailbox delivers what waited for it.
//!
//! ```
//! use std::time::Duration;
//!
//! use hopwise_core::fleet::{Fleet, KernelSpec};
//! use hopwise_core::host::{HostBackend, HostOptions};
//! use hopwise_core::message::Message;
//! use hopwise_core::program::Program;
//!
//! let echo = Program::builder("echo")
//!     .in_port("in", 8)
//!     .out_port("out", 8)
//!     .host(|step| {
//!         for (key, message) in (0..).zip(step.inbox.messages()) {
//!             step.outbox.send(0, key, message.tag, &message.words[..2]);
//!         }
//!         Ok(())
//!     })
//!     .build()?;
//!
//! let fleet = Fleet::builder().backend(&HostBackend::new(HostOptions::new(2)))?.build()?;
//! let kernel = fleet.launch(KernelSpec::new("echo", echo, 4))?;
//! let replies = fleet.endpoint("replies", 16);
//! fleet.connect_endpoint(&kernel, "out", &replies)?;
//! let sender = fleet.sender("me", &kernel, "in")?;
//!
//! sender.send(Message::from_words(7, &[1, 2]))?;
//! let reply = replies.recv_timeout(Duration::from_secs(10))?;
//! assert_eq!((reply.message.tag, reply.message.payload.to_words()), (7, vec![1, 2]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod builder;
mod channel;
mod commit;
mod connect;
mod dead_letter;
mod effects;
mod endpoint;
mod error;
mod handover;
mod host_side;
mod inject;
mod kernel;
mod lanes;
mod launch;
mod mailbox;
mod output;
mod pace;
mod pulse;
mod report;
mod router;
mod runtime;
mod sender;
mod watchdog;
mod worker;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

pub use builder::FleetBuilder;
pub use channel::{ChannelLedger, Party};
pub use dead_letter::DeadLetter;
pub use endpoint::{Endpoint, ReceiveFuture};
pub use error::{
    ConnectError, DeliveryReason, FleetError, LaunchError, ReceiveError, SendAllError, SendError,
    SendReason,
};
pub use handover::{HeldKernel, Twin};
pub use inject::{MessageFault, MessageFaultKind};
pub use kernel::{DEFAULT_MAILBOX_CAPACITY, KernelPhase, KernelSpec, KernelStatus, RemovedKernel};
pub use report::{MessageTotals, NotIdle, ShutdownReport, Waiting};
pub use router::{ChannelOptions, RoutingDecision};
pub use sender::{HostSender, SendFuture};

use crate::coordinator::MultiGpuCoordinator;
use crate::device::Device;
use crate::error::TransferError;
use crate::id::KernelId;
use runtime::Runtime;

/// How long [`Fleet::remove`] and [`Fleet::read_state`] wait for a running step, beyond its limit.
const HOLD_MARGIN: Duration = Duration::from_secs(1);

/// The longest time for which threads are waited for when a fleet stops.
const LONGEST_PATIENCE: Duration = Duration::from_secs(3600);

/// Runs kernels on devices. See the [module's description](self).
///
/// Dropping a fleet stops it without waiting for work to finish; [`Fleet::shutdown`] says what was
/// abandoned.
#[derive(Debug)]
pub struct Fleet {
    runtime: Arc<Runtime>,
    watchdog: Option<Watchdog>,
}

#[derive(Debug)]
struct Watchdog {
    stop: crossbeam_channel::Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

impl Fleet {
    /// Starts a description of a fleet.
    #[must_use]
    pub fn builder() -> FleetBuilder {
        FleetBuilder::new()
    }

    /// The fleet's coordinator: devices, placements, plans. For the fleet's kernels its direct
    /// mutators answer `ManagedByFleet`.
    #[must_use]
    pub fn coordinator(&self) -> &Arc<MultiGpuCoordinator> {
        &self.runtime.coordinator
    }

    /// The open device with this index.
    ///
    /// # Errors
    ///
    /// [`FleetError::UnknownDevice`].
    pub fn device(&self, index: usize) -> Result<Arc<dyn Device>, FleetError> {
        Ok(Arc::clone(&self.runtime.device(index)?.device))
    }

    /// Asks for a step without a message.
    ///
    /// # Errors
    ///
    /// [`FleetError`]: an unknown, stopped or lost kernel.
    pub fn start(&self, kernel: &KernelId) -> Result<(), FleetError> {
        let cell = self.runtime.kernel(kernel)?;
        let mut run = cell.run.lock();
        cell.usable(&run.phase)?;
        run.again = true;
        self.runtime.settle(&cell, &mut run);
        Ok(())
    }

    /// Removes a kernel: waits for its running step, frees its instance and its place, moves the
    /// messages of its mailbox to the dead letters. What it committed is still delivered. A stopped
    /// or lost kernel can be removed, too.
    ///
    /// # Errors
    ///
    /// [`FleetError`]: an unknown kernel, one that is held (it is being moved), or a step that does
    /// not end.
    pub fn remove(&self, kernel: &KernelId) -> Result<RemovedKernel, FleetError> {
        let cell = self.runtime.kernel(kernel)?;
        let hold = match self.hold(kernel, self.hold_limit()) {
            Ok(hold) => Some(hold),
            Err(FleetError::Failed { .. } | FleetError::Lost { .. }) => None,
            Err(other) => return Err(other),
        };
        let reason = DeliveryReason::Removed { kernel: *kernel };
        let effects = {
            let mut run = cell.run.lock();
            // A kernel that could not be held was stopped or lost, and who holds it moves it.
            let revived = matches!(run.phase, KernelPhase::Ready | KernelPhase::Running);
            if hold.is_none() && (run.held || revived) {
                return Err(FleetError::HeldAlready { kernel: *kernel });
            }
            run.phase = KernelPhase::Removed;
            cell.mailbox.close(reason.clone())
        };
        drop(hold);
        self.runtime.depart(&cell);
        self.runtime.follow(effects);
        let dead_letters = self.runtime.discard(&cell.mailbox, &reason);
        self.runtime.coordinator.remove_managed(kernel)?;
        Ok(RemovedKernel { kernel: *kernel, dead_letters })
    }

    /// A kernel's status; `None` when the fleet does not have it.
    #[must_use]
    pub fn status(&self, kernel: &KernelId) -> Option<KernelStatus> {
        let running_for = self.runtime.started.elapsed();
        self.runtime.kernel(kernel).ok().map(|cell| cell.status(running_for))
    }

    /// The status of every kernel, in the order of their ids.
    #[must_use]
    pub fn statuses(&self) -> Vec<KernelStatus> {
        let running_for = self.runtime.started.elapsed();
        let mut statuses: Vec<_> =
            self.runtime.all_kernels().iter().map(|cell| cell.status(running_for)).collect();
        statuses.sort_unstable_by_key(|status| status.kernel);
        statuses
    }

    /// A copy of a kernel's state, taken at a step boundary. The kernel is held for as long as the
    /// copy takes. A stopped kernel's state can be read, too: it is what its last step left.
    ///
    /// # Errors
    ///
    /// [`FleetError`]: an unknown or lost kernel, a held one, a step that does not end, the device.
    pub fn read_state(&self, kernel: &KernelId) -> Result<Vec<u8>, FleetError> {
        let cell = self.runtime.kernel(kernel)?;
        let (hold, instance) = match self.hold(kernel, self.hold_limit()) {
            Ok(hold) => {
                let instance = Arc::clone(hold.instance());
                (Some(hold), instance)
            }
            Err(FleetError::Failed { .. }) => (None, Arc::clone(&cell.run.lock().home.instance)),
            Err(other) => return Err(other),
        };
        let bytes =
            usize::try_from(instance.state_bytes()).map_err(|_| TransferError::OutOfRange {
                offset_bytes: 0,
                length_bytes: instance.state_bytes(),
                state_bytes: usize::MAX as u64,
            })?;
        let mut state = vec![0; bytes];
        instance.read_state(0, &mut state)?;
        drop(hold);
        Ok(state)
    }

    /// Steps committed by all kernels since the fleet was built.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.runtime.steps()
    }

    /// Steps committed on one device, by whatever kernels.
    ///
    /// # Errors
    ///
    /// [`FleetError::UnknownDevice`].
    pub fn device_steps(&self, index: usize) -> Result<u64, FleetError> {
        Ok(self.runtime.device(index)?.steps.load(Ordering::Relaxed))
    }

    /// The ledgers of every channel that the fleet has had, in the order of their ids.
    #[must_use]
    pub fn ledgers(&self) -> Vec<ChannelLedger> {
        self.runtime.ledgers()
    }

    /// Messages that could not be delivered: their number, and the last 1,024 of them.
    #[must_use]
    pub fn dead_letters(&self) -> (u64, Vec<DeadLetter>) {
        (self.runtime.dead_letters.total(), self.runtime.dead_letters.kept())
    }

    /// Who waits for whom, now.
    #[must_use]
    pub fn waiting(&self) -> Vec<Waiting> {
        self.runtime.waiting()
    }

    /// Waits until no kernel runs or can run, no output is pending, no host send is being made and
    /// no kernel is held. Messages in endpoints, and in the mailboxes of stopped or lost kernels,
    /// may remain.
    ///
    /// # Errors
    ///
    /// [`NotIdle`] says who waits for whom, and names a deadlocked circle if there is one.
    pub fn wait_idle(&self, timeout: Duration) -> Result<(), NotIdle> {
        if self.runtime.pulse.wait_idle_until(deadline_after(timeout)) {
            return Ok(());
        }
        Err(self.runtime.not_idle())
    }

    /// Stops the fleet: lets kernels finish what is under way until the deadline, then stops its
    /// threads after the batches that they run. Senders and endpoints are closed; what an endpoint
    /// holds can still be received.
    pub fn shutdown(mut self, deadline: Duration) -> ShutdownReport {
        self.runtime.closing.store(true, Ordering::Release);
        self.runtime.pulse.wait_idle_until(deadline_after(deadline));
        self.stop(self.hold_limit())
    }

    fn stop(&mut self, patience: Duration) -> ShutdownReport {
        let Some(watchdog) = self.watchdog.take() else { return ShutdownReport::default() };
        self.runtime.closing.store(true, Ordering::Release);
        // First the watchdog, which starts workers. It sleeps for at most 50 ms and makes no driver
        // call, so it ends.
        drop(watchdog.stop);
        let _ = watchdog.thread.join();
        let devices = self.runtime.all_devices();
        devices.iter().for_each(|device| device.ask_to_stop());
        let deadline = Instant::now() + patience.min(LONGEST_PATIENCE);
        let left_behind = devices.iter().map(|device| device.join_workers(deadline)).sum();
        self.runtime.close_mailboxes();
        let abandoned = self.runtime.unfinished();
        self.runtime.let_go();
        ShutdownReport { abandoned, threads_left_behind: left_behind }
    }

    fn hold_limit(&self) -> Duration {
        self.runtime.step_limit.saturating_add(HOLD_MARGIN)
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.stop(HOLD_MARGIN);
    }
}

/// When a time-out ends; `None` when that is beyond what a clock can say.
fn deadline_after(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}
