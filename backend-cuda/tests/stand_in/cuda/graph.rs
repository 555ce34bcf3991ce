//! Graphs: what was captured, to be run as often as it is wanted.

use std::ffi::c_void;

use crate::queue::Op;
use crate::{INVALID_HANDLE, UPDATE_FAILURE, context, driver, state, stream};

fn forms(ops: &[Op]) -> Vec<(u8, usize)> {
    ops.iter().map(Op::form).collect()
}

driver! {
    fn cuGraphInstantiateWithFlags(executable: *mut u64, graph: u64, _flags: u64) {
        let device = context::current()?;
        let mut state = state::lock();
        let (_, ops) = state.graphs.get(&graph).ok_or(INVALID_HANDLE)?.clone();
        let handle = state.handle();
        state.executables.insert(handle, (device, ops));
        unsafe { executable.write(handle) };
        Ok(())
    }

    fn cuGraphExecUpdate_v2(executable: u64, graph: u64, _result: *mut c_void) {
        context::current()?;
        let mut state = state::lock();
        let (_, new) = state.graphs.get(&graph).ok_or(INVALID_HANDLE)?.clone();
        let (_, old) = state.executables.get_mut(&executable).ok_or(INVALID_HANDLE)?;
        if forms(old) != forms(&new) { return Err(UPDATE_FAILURE); }
        *old = new;
        Ok(())
    }

    fn cuGraphLaunch(executable: u64, stream: u64) {
        context::current()?;
        let (_, ops) = state::lock().executables.get(&executable).ok_or(INVALID_HANDLE)?.clone();
        ops.into_iter().try_for_each(|op| stream::put(stream, op))
    }

    fn cuGraphExecDestroy(executable: u64) {
        context::current()?;
        state::lock().executables.remove(&executable).map(drop).ok_or(INVALID_HANDLE)
    }

    fn cuGraphDestroy(graph: u64) {
        context::current()?;
        state::lock().graphs.remove(&graph).map(drop).ok_or(INVALID_HANDLE)
    }
}
