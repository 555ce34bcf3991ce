//! Primary contexts, which context is current on a thread, and peer access.

use std::cell::RefCell;

use crate::{
    Code, INVALID_CONTEXT, PEER_ACCESS_UNSUPPORTED, PEER_ALREADY_ENABLED, PEER_NOT_ENABLED, SUCCESS,
    driver, faults, state,
};

thread_local! {
    static CURRENT: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// The device of the context that is current on this thread, if it can be used.
pub fn current() -> Result<usize, Code> {
    let context = CURRENT.with_borrow(|stack| stack.last().copied()).ok_or(INVALID_CONTEXT)?;
    state::lock().context(context)
}

/// The context that is current on this thread.
pub fn top() -> Option<u64> {
    CURRENT.with_borrow(|stack| stack.last().copied())
}

/// An injected error of a context stays.
pub fn make_sticky(context: u64, code: Code) {
    let mut state = state::lock();
    for device in 0..state.devices.len() {
        if context == state::context_of(device) {
            state.devices[device].sticky = Some(code);
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxPushCurrent_v2(context: u64) -> Code {
    if let Some(code) = faults::called_in("cuCtxPushCurrent_v2", Some(context)) {
        return code;
    }
    // A context with a sticky error can be pushed; the error comes from what is called in it.
    if state::lock().context(context) == Err(INVALID_CONTEXT) {
        return INVALID_CONTEXT;
    }
    CURRENT.with_borrow_mut(|stack| stack.push(context));
    SUCCESS
}

fn release_all(device: usize) {
    let (streams, allocations) = {
        let mut state = state::lock();
        state.devices[device].sticky = None;
        state.devices[device].used_bytes = 0;
        state.enabled_peers.retain(|(from, to)| *from != device && *to != device);
        state.events.retain(|_, (of, _)| *of != device);
        state.graphs.retain(|_, (of, _)| *of != device);
        state.executables.retain(|_, (of, _)| *of != device);
        state.modules.retain(|_, module| module.device != device);
        state.functions.retain(|_, function| function.module.device != device);
        let (gone, kept) =
            std::mem::take(&mut state.streams).into_iter().partition(|(_, s)| s.device == device);
        state.streams = kept;
        let gone: std::collections::HashMap<u64, state::Stream> = gone;
        let is_gone = |one: &crate::memory::Allocation| one.context == device;
        let addresses: Vec<_> =
            state.allocations.iter().filter(|(_, one)| is_gone(one)).map(|(at, _)| *at).collect();
        let allocations: Vec<_> =
            addresses.iter().filter_map(|at| state.allocations.remove(at)).collect();
        (gone, allocations)
    };
    drop(streams);
    // Kernels of a killed context may still run on our threads: their memory stays.
    allocations.into_iter().for_each(std::mem::forget);
}

driver! {
    fn cuDevicePrimaryCtxRetain(context: *mut u64, device: i32) {
        let mut state = state::lock();
        let device = usize::try_from(device).map_err(|_| INVALID_CONTEXT)?;
        if device >= state.devices.len() { return Err(crate::INVALID_DEVICE); }
        unsafe { context.write(state.retain(device)?) };
        Ok(())
    }

    fn cuDevicePrimaryCtxRelease_v2(device: i32) {
        let device = usize::try_from(device).map_err(|_| INVALID_CONTEXT)?;
        let is_last = {
            let mut state = state::lock();
            let retained = &mut state.devices.get_mut(device).ok_or(INVALID_CONTEXT)?.retained;
            *retained = retained.checked_sub(1).ok_or(INVALID_CONTEXT)?;
            *retained == 0
        };
        if is_last { release_all(device); }
        Ok(())
    }

    fn cuDevicePrimaryCtxReset_v2(device: i32) {
        let device = state::lock().device(device)?;
        release_all(device);
        Ok(())
    }

    fn cuCtxPopCurrent_v2(context: *mut u64) {
        let popped = CURRENT.with_borrow_mut(Vec::pop).ok_or(INVALID_CONTEXT)?;
        unsafe { context.write(popped) };
        Ok(())
    }

    fn cuCtxSynchronize() {
        let device = current()?;
        state::lock().no_captures_of(device)?;
        crate::stream::synchronize_device(device);
        current().map(drop)
    }

    fn cuCtxEnablePeerAccess(peer: u64, flags: u32) {
        if flags != 0 { return Err(crate::INVALID_VALUE); }
        let device = current()?;
        let mut state = state::lock();
        let peer = state.context(peer)?;
        let pair = (state.visible[device], state.visible[peer]);
        if !state.machine.peers.contains(&pair) { return Err(PEER_ACCESS_UNSUPPORTED); }
        if state.enabled_peers.contains(&(device, peer)) { return Err(PEER_ALREADY_ENABLED); }
        state.enabled_peers.push((device, peer));
        Ok(())
    }

    fn cuCtxDisablePeerAccess(peer: u64) {
        let device = current()?;
        let mut state = state::lock();
        let peer = state.context(peer)?;
        let before = state.enabled_peers.len();
        state.enabled_peers.retain(|pair| *pair != (device, peer));
        if state.enabled_peers.len() == before { Err(PEER_NOT_ENABLED) } else { Ok(()) }
    }
}
