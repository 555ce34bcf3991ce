//! Streams, events, and what is put into streams.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::queue::{Event, Op, Queue, Way};
use crate::{
    CAPTURE_INVALIDATED, CAPTURE_UNSUPPORTED, CAPTURED_EVENT, Code, INVALID_HANDLE, INVALID_VALUE,
    NOT_READY, SUCCESS, context, driver, faults, state,
};

/// Puts an operation into a stream of the current context, or records it.
pub fn put(stream: u64, op: Op) -> Result<(), Code> {
    let device = context::current()?;
    let mut state = state::lock();
    let stream = state.stream(stream)?;
    if stream.device != device {
        return Err(INVALID_HANDLE);
    }
    match &mut stream.captured {
        Some(captured) => {
            if let Op::Record { event, .. } = &op {
                event.is_captured.store(true, Ordering::SeqCst);
            }
            captured.ops.push(op);
        }
        None => {
            if let Op::Record { event, .. } = &op {
                event.is_captured.store(false, Ordering::SeqCst);
            }
            stream.queue.put(op);
        }
    }
    Ok(())
}

/// Waits until all streams of a device have done what they have now.
pub fn synchronize_device(device: usize) {
    let queues: Vec<_> = {
        let state = state::lock();
        let own = state.streams.values().filter(|stream| stream.device == device);
        own.map(|stream| Arc::clone(&stream.queue)).collect()
    };
    for queue in queues {
        let event = Arc::new(Event::default());
        queue.put(Op::Record { event: Arc::clone(&event), number: event.next() });
        event.wait(1);
    }
}

/// A copy whose sides must be of the devices that are named; `None` is the host.
fn copy(
    way: Way,
    stream: u64,
    (to, to_device): (u64, Option<usize>),
    (from, from_device): (u64, Option<usize>),
    bytes: usize,
) -> Result<(), Code> {
    {
        let state = state::lock();
        for (address, device) in [(to, to_device), (from, from_device)] {
            match device {
                None => state.is_host(address, bytes)?,
                _ if state.owner(address, bytes)? != device => return Err(INVALID_VALUE),
                _ => {}
            }
        }
    }
    put(stream, Op::Copy { way, to, from, bytes })
}

/// Ends a capture, in a context that is of no use any more too: then no graph comes out of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamEndCapture(stream: u64, graph: *mut u64) -> Code {
    let work = || -> Result<(), Code> {
        let device = context::current()?;
        let mut state = state::lock();
        let captured = state.stream(stream)?.captured.take().ok_or(INVALID_VALUE)?;
        if captured.is_spoilt {
            return Err(CAPTURE_INVALIDATED);
        }
        let handle = state.handle();
        state.graphs.insert(handle, (device, captured.ops));
        unsafe { graph.write(handle) };
        Ok(())
    };
    let ended = faults::called("cuStreamEndCapture").map_or_else(work, Err);
    if context::current().is_err() {
        if let Ok(stream) = state::lock().stream(stream) {
            stream.captured = None;
        }
    }
    ended.err().unwrap_or(SUCCESS)
}

/// The queue of a stream that is asked whether it is done. One that is recorded is not asked: that
/// spoils the capture.
fn unrecorded(stream: u64) -> Result<Arc<Queue>, Code> {
    let mut state = state::lock();
    let stream = state.stream(stream)?;
    match &mut stream.captured {
        Some(capture) => {
            capture.is_spoilt = true;
            Err(CAPTURE_UNSUPPORTED)
        }
        None => Ok(Arc::clone(&stream.queue)),
    }
}

driver! {
    fn cuStreamCreate(stream: *mut u64, _flags: u32) {
        let device = context::current()?;
        let mut state = state::lock();
        let handle = state.handle();
        let queue = Queue::new(device);
        state.streams.insert(handle, state::Stream { device, queue, captured: None });
        unsafe { stream.write(handle) };
        Ok(())
    }

    fn cuStreamDestroy_v2(stream: u64) {
        context::current()?;
        let removed = state::lock().streams.remove(&stream);
        removed.map(drop).ok_or(INVALID_HANDLE)
    }

    fn cuStreamSynchronize(stream: u64) {
        context::current()?;
        let queue = unrecorded(stream)?;
        let event = Arc::new(Event::default());
        queue.put(Op::Record { event: Arc::clone(&event), number: event.next() });
        event.wait(1);
        context::current().map(drop)
    }

    fn cuStreamQuery(stream: u64) {
        context::current()?;
        let queue = unrecorded(stream)?;
        if queue.is_idle() { Ok(()) } else { Err(NOT_READY) }
    }

    fn cuStreamWaitEvent(stream: u64, event: u64, _flags: u32) {
        let event = {
            let state = state::lock();
            Arc::clone(&state.events.get(&event).ok_or(INVALID_HANDLE)?.1)
        };
        let number = event.recorded.load(Ordering::SeqCst);
        put(stream, Op::Wait { event, number })
    }

    fn cuStreamBeginCapture_v2(stream: u64, mode: u32) {
        context::current()?;
        if mode > 2 { return Err(INVALID_VALUE); }
        let mut state = state::lock();
        let captured = &mut state.stream(stream)?.captured;
        if captured.is_some() { return Err(CAPTURE_UNSUPPORTED); }
        let thread = std::thread::current().id();
        *captured = Some(state::Capture { ops: Vec::new(), mode, thread, is_spoilt: false });
        Ok(())
    }

    fn cuEventCreate(event: *mut u64, _flags: u32) {
        let device = context::current()?;
        let mut state = state::lock();
        let handle = state.handle();
        state.events.insert(handle, (device, Arc::default()));
        unsafe { event.write(handle) };
        Ok(())
    }

    fn cuEventDestroy_v2(event: u64) {
        context::current()?;
        state::lock().events.remove(&event).map(drop).ok_or(INVALID_HANDLE)
    }

    fn cuEventRecord(event: u64, stream: u64) {
        let device = context::current()?;
        let event = {
            let state = state::lock();
            let (of, event) = state.events.get(&event).ok_or(INVALID_HANDLE)?;
            if *of != device { return Err(INVALID_HANDLE); }
            Arc::clone(event)
        };
        let number = event.next();
        put(stream, Op::Record { event, number })
    }

    fn cuEventQuery(event: u64) {
        context::current()?;
        let event = {
            let state = state::lock();
            Arc::clone(&state.events.get(&event).ok_or(INVALID_HANDLE)?.1)
        };
        if event.is_captured.load(Ordering::SeqCst) { return Err(CAPTURED_EVENT); }
        let is_done = event.is_done();
        context::current()?;
        if is_done { Ok(()) } else { Err(NOT_READY) }
    }

    fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, stream: u64) {
        let device = context::current()?;
        copy(Way::Up, stream, (to, Some(device)), (from.addr() as u64, None), bytes)
    }

    fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, stream: u64) {
        let device = context::current()?;
        copy(Way::Down, stream, (to.addr() as u64, None), (from, Some(device)), bytes)
    }

    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) {
        let device = context::current()?;
        copy(Way::Inside, stream, (to, Some(device)), (from, Some(device)), bytes)
    }

    fn cuMemcpyPeerAsync(
        to: u64, to_context: u64, from: u64, from_context: u64, bytes: usize, stream: u64,
    ) {
        let (target, source, is_corrupt, hangs) = {
            let state = state::lock();
            let target = state.context(to_context)?;
            let source = state.context(from_context)?;
            let is_corrupt = state.corrupt.contains(&(source, target));
            (target, source, is_corrupt, state.devices[source].copies_hang)
        };
        if hangs {
            put(stream, Op::Stall)?;
        }
        // Where a bus loses what the driver promises, the copy does nothing.
        let bytes = if is_corrupt { 0 } else { bytes };
        copy(Way::Across, stream, (to, Some(target)), (from, Some(source)), bytes)
    }

    fn cuMemsetD8Async(at: u64, byte: u8, bytes: usize, stream: u64) {
        let device = context::current()?;
        if state::lock().owner(at, bytes)? != Some(device) { return Err(INVALID_VALUE); }
        put(stream, Op::Fill { at, byte, bytes })
    }
}
