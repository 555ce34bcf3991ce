//! Payloads in the memory of a GPU: kept after a step has sent them, fetched from there by the step
//! that receives them.
//!
//! A step commits when its outbox is in host memory, so the bytes are there in any case; what a copy
//! on the device saves is the way back. It lives as long as the message, and is given up where memory
//! for it is short: then the bytes come from the host.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use hopwise_core::device::PayloadWay;
use hopwise_core::error::DeviceError;
use hopwise_core::message::DevicePayload;
use parking_lot::Mutex;

use crate::context::{Context, Entered};
use crate::core::DeviceCore;
use crate::owned::{Address, DeviceBuffer};
use crate::peer::{PeerPath, Place, copy, relayed};
use crate::stream::Stream;

/// Memory for payloads, used again by size.
#[derive(Debug)]
pub(crate) struct PayloadMemory {
    /// Payloads of at least so many bytes are kept; `None`: none is.
    from_bytes: Option<u32>,
    most_bytes: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    allocated_bytes: u64,
    spare: HashMap<u64, Vec<DeviceBuffer>>,
}

/// A payload on a GPU.
pub(crate) struct KeptPayload {
    core: Arc<DeviceCore>,
    /// `None` while it is being given back.
    memory: Option<DeviceBuffer>,
}

impl PayloadMemory {
    pub(crate) fn new(from_bytes: Option<u32>, most_bytes: u64) -> Self {
        Self { from_bytes, most_bytes, state: Mutex::default() }
    }

    /// Whether a payload of this size is worth keeping.
    pub(crate) fn keeps(&self, bytes: u32) -> bool {
        self.from_bytes.is_some_and(|least| bytes >= least)
    }

    /// Memory for a payload, or none where as much is in use as may be.
    fn take(&self, entered: &Entered<'_>, bytes: u32) -> Option<DeviceBuffer> {
        let size = u64::from(bytes).next_power_of_two();
        {
            let mut state = self.state.lock();
            if let Some(spare) = state.spare.get_mut(&size).and_then(Vec::pop) {
                return Some(spare);
            }
            if state.allocated_bytes + size > self.most_bytes {
                // What is spare of other sizes makes room for this one.
                let spare: Vec<_> = state.spare.drain().flat_map(|(_, spare)| spare).collect();
                let freed: u64 = spare.iter().map(DeviceBuffer::bytes).sum();
                state.allocated_bytes -= freed;
                drop(state);
                drop(spare); // not under the lock: it calls the driver
                return None;
            }
            state.allocated_bytes += size;
        }
        let allocated = DeviceBuffer::new(entered, size);
        if allocated.is_err() {
            self.state.lock().allocated_bytes -= size;
        }
        allocated.ok()
    }

    fn put(&self, memory: DeviceBuffer) {
        self.state.lock().spare.entry(memory.bytes()).or_default().push(memory);
    }
}

impl KeptPayload {
    /// Copies a payload out of an outbox on the device. The copy has ended when the stream has passed
    /// it. `None` where there is no memory for it, or the driver refuses.
    ///
    /// # Safety
    ///
    /// The range is valid, and stays so until the stream has passed the copy.
    pub(crate) unsafe fn copied(
        core: &Arc<DeviceCore>,
        entered: &Entered<'_>,
        stream: &Stream,
        from: Address,
        bytes: u32,
    ) -> Option<Arc<dyn DevicePayload>> {
        let memory = core.payloads.take(entered, bytes)?;
        let source = Place { context: &core.context, address: from };
        let target = Place { context: &core.context, address: memory.address() };
        // SAFETY: the source is valid by the caller; the target is large enough and new.
        let copied = unsafe { copy(entered, stream, source, target, bytes.into()) };
        let kept = Self { core: Arc::clone(core), memory: Some(memory) };
        copied.ok().map(|()| Arc::new(kept) as Arc<dyn DevicePayload>)
    }

    /// The way from where the payload is to a device, if there is one now. Directly the receiver
    /// fetches it, so it is the receiver that must reach the other's memory.
    pub(crate) fn path_to(&self, core: &DeviceCore) -> Option<PeerPath> {
        if !self.is_there() || core.paths.is_forbidden(self.context(), &core.context) {
            return None;
        }
        match core.paths.find(&core.context, self.context()) {
            Some(PeerPath::Relayed { .. }) | None => {
                let path = core.paths.find(self.context(), &core.context);
                path.filter(|path| matches!(path, PeerPath::Relayed { .. }))
            }
            direct => direct,
        }
    }

    /// Whether its GPU does not respond, and may still write what it was asked to.
    pub(crate) fn may_go_on(&self) -> bool {
        self.context().may_go_on()
    }

    /// Whether the GPU still works that it is on.
    pub(crate) fn is_there(&self) -> bool {
        self.context().health().is_working()
    }

    fn context(&self) -> &Arc<Context> {
        &self.core.context
    }

    fn place(&self) -> Place<'_> {
        let address = self.memory.as_ref().map_or(0, DeviceBuffer::address);
        Place { context: self.context(), address }
    }

    /// Fetches the payload into the memory of the device whose context was entered. A direct copy has
    /// ended when the stream has passed it, a relayed one when this returns.
    ///
    /// # Safety
    ///
    /// The target is valid, and nobody touches it until the stream has passed; the payload is held
    /// as long.
    pub(crate) unsafe fn fetch(
        &self,
        path: &PeerPath,
        entered: &Entered<'_>,
        stream: &Stream,
        to: Address,
        bytes: u64,
    ) -> Result<PayloadWay, DeviceError> {
        let target = Place { context: entered.context, address: to };
        match path {
            PeerPath::Same | PeerPath::Direct { .. } => {
                // SAFETY: the caller's promises; the payload's memory is at least as long.
                unsafe { copy(entered, stream, self.place(), target, bytes)? };
                let is_same = matches!(path, PeerPath::Same);
                Ok(if is_same { PayloadWay::SameDevice } else { PayloadWay::Direct })
            }
            PeerPath::Relayed { relay, .. } => {
                let at_source = self.context().enter()?;
                self.core.lanes.with(&at_source, |lane| {
                    relayed(&at_source, &lane.stream, relay, [self.place(), target], bytes)
                })?;
                Ok(PayloadWay::Relayed { relay: relay.names().failure_domain.clone() })
            }
        }
    }
}

impl DevicePayload for KeptPayload {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for KeptPayload {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            self.core.payloads.put(memory);
        }
    }
}

impl fmt::Debug for KeptPayload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("KeptPayload").finish_non_exhaustive()
    }
}
