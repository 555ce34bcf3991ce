//! Copies from GPU to GPU: directly where the driver lets one reach the other's memory, through a
//! third where only that reaches both.
//!
//! Access is a matter of ordered pairs, and of the process: whoever enables it first enables it for
//! all. So there is one owner of it, which enables a pair once, counts who uses it, and disables it
//! when nobody does, unless somebody else had enabled it before.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock, Weak};

use hopwise_core::error::{DeviceError, TransferError};
use parking_lot::Mutex;

use crate::context::{Context, Entered};
use crate::driver::DriverStatus;
use crate::instance::CudaInstance;
use crate::owned::{Address, DeviceBuffer, size};
use crate::stream::{Event, Stream};

/// Bytes of each of a relay's two buffers: while one is filled, the other is emptied.
const RELAY_BYTES: u64 = 4 << 20;

/// The one owner of peer access in this process: all backends share it.
pub(crate) static PEERS: LazyLock<Peers> = LazyLock::new(Peers::default);

/// The pairs of GPUs between which access was asked for.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    links: Mutex<HashMap<(usize, usize), Arc<Slot>>>,
    /// The open contexts, which can be relays.
    contexts: Mutex<Vec<Weak<Context>>>,
}

/// One ordered pair. Whoever comes second waits for the one that asks the driver.
#[derive(Debug, Default)]
struct Slot {
    link: Mutex<Weak<OnceLock<Option<PeerLink>>>>,
}

impl Slot {
    fn is_used(&self) -> bool {
        self.link.try_lock().is_none_or(|link| link.strong_count() > 0)
    }
}

/// Access of one GPU to the memory of another, while this lives.
#[derive(Debug)]
pub(crate) struct PeerLink {
    from: Arc<Context>,
    to: Arc<Context>,
    /// Whether it was enabled here, and not by somebody else in the process.
    is_ours: bool,
}

/// How bytes get from one GPU to another.
#[derive(Clone, Debug)]
pub(crate) enum PeerPath {
    /// Within one GPU.
    Same,
    /// From one to the other.
    Direct { _link: Arc<OnceLock<Option<PeerLink>>> },
    /// Through the memory of a third.
    Relayed { relay: Arc<Context>, _links: [Arc<OnceLock<Option<PeerLink>>>; 2] },
}

impl Peers {
    /// Makes a context known as a possible relay.
    pub(crate) fn add(&self, context: &Arc<Context>) {
        let mut contexts = self.contexts.lock();
        contexts.retain(|known| known.strong_count() > 0);
        contexts.push(Arc::downgrade(context));
    }

    /// The way from one context to another: direct, else over one relay, else none.
    /// Pairs that are not allowed are not asked for.
    pub(crate) fn path(
        &self,
        from: &Arc<Context>,
        to: &Arc<Context>,
        is_allowed: impl Fn(&Context, &Context) -> bool,
    ) -> Option<PeerPath> {
        if Arc::ptr_eq(from, to) {
            return Some(PeerPath::Same);
        }
        let link = |from: &Arc<Context>, to: &Arc<Context>| {
            is_allowed(from, to).then(|| self.link(from, to)).flatten()
        };
        if let Some(link) = link(from, to) {
            return Some(PeerPath::Direct { _link: link });
        }
        let known: Vec<_> = self.contexts.lock().iter().filter_map(Weak::upgrade).collect();
        known.into_iter().find_map(|relay| {
            if Arc::ptr_eq(&relay, from) || Arc::ptr_eq(&relay, to) || !relay.health().is_working()
            {
                return None;
            }
            let links = [link(from, &relay)?, link(&relay, to)?];
            Some(PeerPath::Relayed { relay, _links: links })
        })
    }

    /// Access of one context to the memory of another, enabled if it is not yet.
    fn link(
        &self,
        from: &Arc<Context>,
        to: &Arc<Context>,
    ) -> Option<Arc<OnceLock<Option<PeerLink>>>> {
        // By ours, not by the driver's handles: a GPU that was lost and opened again can have the handle
        // that it had, and has no access any more.
        let key = (Arc::as_ptr(from).addr(), Arc::as_ptr(to).addr());
        let slot = {
            let mut links = self.links.lock();
            // Contexts that are gone leave no entry behind.
            links.retain(|known, slot| *known == key || slot.is_used());
            Arc::clone(links.entry(key).or_default())
        };
        let link = {
            let mut known = slot.link.lock();
            match known.upgrade() {
                Some(link) => link,
                None => {
                    let new = Arc::default();
                    *known = Arc::downgrade(&new);
                    new
                }
            }
        };
        // No lock is held here; others who want the same pair wait in the cell.
        let is_there = link.get_or_init(|| PeerLink::enable(from, to)).is_some();
        is_there.then_some(link)
    }
}

impl PeerLink {
    /// Asks the driver, and enables access. `None` when it cannot be had: then bytes go another way.
    fn enable(from: &Arc<Context>, to: &Arc<Context>) -> Option<Self> {
        let mut can = 0;
        let entered = from.enter().ok()?;
        let asked = entered.call("cuDeviceCanAccessPeer", |driver| {
            // SAFETY: `can` lives until the call returns; both devices are open.
            unsafe { (driver.cuDeviceCanAccessPeer)(&raw mut can, from.device(), to.device()) }
        });
        if asked.is_err() || can == 0 {
            return None;
        }
        // SAFETY: both contexts are retained; the flags must be 0.
        let enabled =
            entered.status(|driver| unsafe { (driver.cuCtxEnablePeerAccess)(to.raw(), 0) });
        let is_ours = match enabled.ok()? {
            DriverStatus::SUCCESS => true,
            DriverStatus::PEER_ACCESS_ALREADY_ENABLED => false,
            failed => {
                // Latched if the device is gone; else the pair does without.
                let _ = entered.fail(failed, "cuCtxEnablePeerAccess");
                return None;
            }
        };
        Some(Self { from: Arc::clone(from), to: Arc::clone(to), is_ours })
    }
}

impl Drop for PeerLink {
    fn drop(&mut self) {
        if self.is_ours && self.to.health().is_working() {
            // SAFETY: access was enabled from this context to that one.
            self.from.release("cuCtxDisablePeerAccess", |driver| unsafe {
                (driver.cuCtxDisablePeerAccess)(self.to.raw())
            });
        }
    }
}

/// The ways that a device has found; they stay enabled as long as it is open.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    /// Ordered pairs of UUIDs, in lower case.
    forbidden: Vec<(String, String)>,
    known: Mutex<HashMap<(usize, usize), PeerPath>>,
}

impl Paths {
    /// No way is known yet; these ordered pairs of UUIDs are never taken.
    pub(crate) fn new(forbidden: &[(String, String)]) -> Self {
        let lower = |(from, to): &(String, String)| (from.to_lowercase(), to.to_lowercase());
        Self { forbidden: forbidden.iter().map(lower).collect(), known: Mutex::default() }
    }

    /// Whether copies from one to the other were forbidden.
    pub(crate) fn is_forbidden(&self, from: &Context, to: &Context) -> bool {
        let uuid = |context: &Context| context.names().uuid.to_lowercase();
        !self.forbidden.is_empty() && self.forbidden.contains(&(uuid(from), uuid(to)))
    }

    /// The way from one context to another. One that was not found is looked for again when it is
    /// asked for next: a relay can have been opened meanwhile.
    pub(crate) fn find(&self, from: &Arc<Context>, to: &Arc<Context>) -> Option<PeerPath> {
        // A way holds its contexts, so an address stays theirs as long as the way is known.
        let key = (Arc::as_ptr(from).addr(), Arc::as_ptr(to).addr());
        let known = self.known.lock().get(&key).cloned();
        if let Some(known) = known.filter(PeerPath::is_there) {
            return Some(known);
        }
        let found = PEERS.path(from, to, |from, to| !self.is_forbidden(from, to));
        let before = match &found {
            // Within one GPU there is nothing to hold, and nothing to remember.
            None | Some(PeerPath::Same) => self.known.lock().remove(&key),
            Some(path) => self.known.lock().insert(key, path.clone()),
        };
        drop(before); // not under the lock: it calls the driver
        found
    }
}

impl PeerPath {
    /// Whether a relay does not respond, and may still write what it was asked to.
    pub(crate) fn may_go_on(&self) -> bool {
        matches!(self, Self::Relayed { relay, .. } if relay.may_go_on())
    }

    /// Whether the way is still there.
    pub(crate) fn is_there(&self) -> bool {
        match self {
            Self::Same | Self::Direct { .. } => true,
            Self::Relayed { relay, .. } => relay.health().is_working(),
        }
    }
}

/// Copies a range of one state to the same range of another. Both are left alone meanwhile.
pub(crate) fn copy_state(
    path: &PeerPath,
    from: &CudaInstance,
    to: &CudaInstance,
    offset_bytes: u64,
    length_bytes: u64,
) -> Result<(), TransferError> {
    if std::ptr::eq(from, to) {
        return Ok(());
    }
    // In one order for both directions, so that copies cannot block each other.
    let from_first = std::ptr::from_ref(from).addr() < std::ptr::from_ref(to).addr();
    let (first, second) = if from_first { (from, to) } else { (to, from) };
    let _ongoing = (first.begin_transfer()?, second.begin_transfer()?);
    if length_bytes == 0 {
        return Ok(());
    }
    let [source, target] = [from, to].map(|instance| Place {
        context: &instance.core().context,
        address: instance.state() + offset_bytes,
    });
    if to.resident().is_some() {
        to.park(&target.context.enter()?)?;
    }
    let entered = source.context.enter()?;
    from.park(&entered)?;
    let copied = from.core().lanes.with(&entered, |lane| match path {
        PeerPath::Same | PeerPath::Direct { .. } => {
            // SAFETY: both ranges lie in states that nobody else touches.
            unsafe { copy(&entered, &lane.stream, source, target, length_bytes) }
        }
        PeerPath::Relayed { relay, .. } => {
            relayed(&entered, &lane.stream, relay, [source, target], length_bytes)
        }
    });
    if copied.is_err() && source.context.may_go_on() {
        to.abandon_memory(); // what the source had begun cannot be waited for
    }
    target.context.health().check()?;
    Ok(copied?)
}

/// Somewhere in the memory of a GPU.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) context: &'a Arc<Context>,
    pub(crate) address: Address,
}

impl Place<'_> {
    fn after(self, bytes: u64) -> Self {
        Self { address: self.address + bytes, ..self }
    }
}

/// Puts a copy into a stream of the context that was entered.
///
/// # Safety
///
/// Both ranges are valid, and nobody touches them until the stream has passed the copy.
pub(crate) unsafe fn copy(
    entered: &Entered<'_>,
    stream: &Stream,
    from: Place<'_>,
    to: Place<'_>,
    bytes: u64,
) -> Result<(), DeviceError> {
    let length = size(bytes)?;
    if Arc::ptr_eq(from.context, to.context) {
        return entered.call("cuMemcpyDtoDAsync_v2", |driver| {
            // SAFETY: the caller's promises.
            unsafe { (driver.cuMemcpyDtoDAsync_v2)(to.address, from.address, length, stream.raw()) }
        });
    }
    from.context.health().check().and(to.context.health().check()).map_err(of_another)?;
    let status = entered.status(|driver| {
        // SAFETY: the caller's promises; both contexts are retained.
        unsafe {
            (driver.cuMemcpyPeerAsync)(
                to.address,
                to.context.raw(),
                from.address,
                from.context.raw(),
                length,
                stream.raw(),
            )
        }
    })?;
    match status.ok() {
        Ok(()) => Ok(()),
        // The error may be the other GPU's, which is no loss of this one.
        Err(failed) if failed.is_fatal() && entered.is_sound() => {
            Err(of_another(failed.error("cuMemcpyPeerAsync")))
        }
        Err(failed) => entered.fail(failed, "cuMemcpyPeerAsync"),
    }
}

/// What is wrong with a GPU that was not called.
fn of_another(error: DeviceError) -> DeviceError {
    DeviceError::Driver { message: format!("the GPU on the other side: {error}") }
}

/// Copies through two buffers of a relay: the source fills one while the relay empties the other.
pub(crate) fn relayed(
    entered: &Entered<'_>,
    filling: &Stream,
    relay: &Arc<Context>,
    [source, target]: [Place<'_>; 2],
    bytes: u64,
) -> Result<(), DeviceError> {
    let prepared = relay.enter().and_then(|at_relay| {
        let buffer = || DeviceBuffer::new(&at_relay, RELAY_BYTES.min(bytes));
        let event = || Event::new(&at_relay);
        Ok(([buffer()?, buffer()?], Stream::new(&at_relay)?, [event()?, event()?]))
    });
    let prepared = prepared.map_err(|error| of_the_pair(error, source.context, relay));
    let (buffers, emptying, events) = prepared?;
    let filled = [Event::new(entered)?, Event::new(entered)?];
    let parts = (0..bytes.div_ceil(RELAY_BYTES)).map(|part| part * RELAY_BYTES);
    let mut worked = Ok(());
    for (number, at) in parts.enumerate() {
        let (turn, length) = (number % 2, RELAY_BYTES.min(bytes - at));
        let middle = Place { context: relay, address: buffers[turn].address() };
        worked = (|| {
            if number >= 2 {
                events[turn].wait(&relay.enter()?)?;
            }
            // SAFETY: the ranges are valid; the buffer was emptied two rounds ago.
            unsafe { copy(entered, filling, source.after(at), middle, length)? };
            filling.record(entered, &filled[turn])?;
            filled[turn].wait(entered)?;
            let at_relay = relay.enter()?;
            // SAFETY: the ranges are valid; the buffer has been filled.
            unsafe { copy(&at_relay, &emptying, middle, target.after(at), length)? };
            emptying.record(&at_relay, &events[turn])
        })();
        if worked.is_err() {
            break;
        }
    }
    let ended = relay
        .enter_quietly()
        .and_then(|at_relay| emptying.wait(&at_relay).or_else(|_| emptying.drain(&at_relay)));
    let filled = filling.drain(entered);
    let may_go_on = |ended: &Result<(), DeviceError>, context: &Context| {
        ended.is_err() && (context.health().is_working() || context.may_go_on())
    };
    if may_go_on(&ended, relay) || may_go_on(&filled, source.context) {
        std::mem::forget(buffers); // one of the two may go on using them
    }
    worked.and(ended).map_err(|error| of_the_pair(error, source.context, relay))
}

/// A relay that is lost is no loss of the GPUs on both sides.
fn of_the_pair(error: DeviceError, source: &Context, relay: &Context) -> DeviceError {
    match error {
        error if error.is_fatal() && source.health().is_working() => DeviceError::Driver {
            message: format!("the relay, {}, failed: {error}", relay.names().failure_domain),
        },
        error => error,
    }
}
