//! All that the stand-in knows, under one lock which is held for moments only: never while a kernel
//! or a copy runs.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::thread::{self, ThreadId};

use crate::machine::Machine;
use crate::memory::Allocation;
use crate::module::{Function, Module};
use crate::queue::{Event, Op, Queue};
use crate::{
    CAPTURE_UNSUPPORTED, Code, DEVICE_UNAVAILABLE, INVALID_CONTEXT, INVALID_DEVICE, INVALID_HANDLE,
};

#[derive(Default)]
pub struct State {
    pub machine: Machine,
    /// Places in the machine, by ordinal.
    pub visible: Vec<usize>,
    pub is_initialised: bool,
    /// By ordinal.
    pub devices: Vec<DeviceState>,
    /// By first address.
    pub allocations: BTreeMap<u64, Allocation>,
    pub streams: HashMap<u64, Stream>,
    pub events: HashMap<u64, (usize, Arc<Event>)>,
    pub modules: HashMap<u64, Arc<Module>>,
    pub functions: HashMap<u64, Arc<Function>>,
    /// With the devices of their contexts.
    pub graphs: HashMap<u64, (usize, Vec<Op>)>,
    pub executables: HashMap<u64, (usize, Vec<Op>)>,
    /// Ordered pairs of ordinals.
    pub enabled_peers: Vec<(usize, usize)>,
    /// Ordered pairs of ordinals between which copies do nothing and claim success.
    pub corrupt: Vec<(usize, usize)>,
    next_handle: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceState {
    /// How much longer everything in a stream takes.
    pub slow_us: u64,
    /// How often the primary context is retained.
    pub retained: usize,
    /// What every call in the context returns until it is reset.
    pub sticky: Option<Code>,
    /// What every call for the device returns.
    pub lost: Option<Code>,
    pub hangs: bool,
    pub launches_late: bool,
    pub copies_hang: bool,
    pub used_bytes: u64,
}

/// A capture that has begun.
pub struct Capture {
    pub ops: Vec<Op>,
    /// As in `CUstreamCaptureMode`: 0 forbids to every thread what is unsafe, 1 to the thread that
    /// began, 2 to none.
    pub mode: u32,
    pub thread: ThreadId,
    /// Something forbidden was called: no graph comes out of it.
    pub is_spoilt: bool,
}

pub struct Stream {
    pub device: usize,
    pub queue: Arc<Queue>,
    /// What was recorded since a capture began.
    pub captured: Option<Capture>,
}

static STATE: LazyLock<Mutex<State>> = LazyLock::new(|| {
    let machine = Machine::described();
    let visible = machine.visible();
    let device = |place: &usize| DeviceState {
        slow_us: machine.gpus[*place].slow_us,
        ..DeviceState::default()
    };
    let devices = visible.iter().map(device).collect();
    Mutex::new(State { machine, visible, devices, next_handle: 0x1000, ..State::default() })
});

pub fn lock() -> MutexGuard<'static, State> {
    STATE.lock().expect("the stand-in does not panic under its lock")
}

impl State {
    pub fn handle(&mut self) -> u64 {
        self.next_handle += 0x10;
        self.next_handle
    }

    /// A device that works; the code of its loss else.
    pub fn device(&self, device: i32) -> Result<usize, Code> {
        let ordinal = usize::try_from(device).map_err(|_| INVALID_DEVICE)?;
        let state = self.devices.get(ordinal).ok_or(INVALID_DEVICE)?;
        state.lost.map_or(Ok(ordinal), Err)
    }

    /// The device of a context, if the context can be used.
    pub fn context(&self, context: u64) -> Result<usize, Code> {
        let ordinal = usize::try_from(context & 0xff).map_err(|_| INVALID_CONTEXT)?;
        let state = self.devices.get(ordinal).ok_or(INVALID_CONTEXT)?;
        if context != context_of(ordinal) || state.retained == 0 {
            return Err(INVALID_CONTEXT);
        }
        if let Some(code) = state.lost.or(state.sticky) {
            return Err(code);
        }
        Ok(ordinal)
    }

    pub fn stream(&mut self, stream: u64) -> Result<&mut Stream, Code> {
        self.streams.get_mut(&stream).ok_or(INVALID_HANDLE)
    }

    /// Refuses a call that is unsafe while this thread captures, on whatever device, which spoils the
    /// capture.
    pub fn outside_captures(&mut self) -> Result<(), Code> {
        let own = thread::current().id();
        self.spoil(|_, capture| capture.mode == 0 || capture.mode == 1 && capture.thread == own)
    }

    /// The same for a call that asks about all streams of a device, whoever captures.
    pub fn no_captures_of(&mut self, device: usize) -> Result<(), Code> {
        self.spoil(|stream_device, _| stream_device == device)
    }

    fn spoil(&mut self, is_meant: impl Fn(usize, &Capture) -> bool) -> Result<(), Code> {
        let mut result = Ok(());
        for Stream { device, captured, .. } in self.streams.values_mut() {
            if let Some(capture) = captured.as_mut().filter(|capture| is_meant(*device, capture)) {
                capture.is_spoilt = true;
                result = Err(CAPTURE_UNSUPPORTED);
            }
        }
        result
    }

    /// Retains a primary context.
    pub fn retain(&mut self, device: usize) -> Result<u64, Code> {
        let state = &mut self.devices[device];
        if let Some(code) = state.sticky {
            return Err(code);
        }
        if state.lost.is_some() {
            return Err(DEVICE_UNAVAILABLE);
        }
        state.retained += 1;
        Ok(context_of(device))
    }
}

pub fn context_of(device: usize) -> u64 {
    0xc0de_0000 + device as u64
}
