//! Memory of devices and page-locked memory of the host: both are memory of this process, and each
//! range that is named must lie in one allocation of the right kind.

use std::ffi::{c_int, c_void};
use std::ptr;

use crate::{Code, INVALID_VALUE, OUT_OF_MEMORY, context, driver, state, stream};

unsafe extern "C" {
    fn mmap(
        at: *mut c_void, bytes: usize, protection: c_int, flags: c_int, file: c_int, offset: i64,
    ) -> *mut c_void;
    fn munmap(at: *mut c_void, bytes: usize) -> c_int;
}

const READ_WRITE: c_int = 3;
/// Private, of no file, and taken from the system only where it is touched.
const PRIVATE_ANONYMOUS_NORESERVE: c_int = 0x02 | 0x20 | 0x4000;

pub struct Allocation {
    /// `None` for memory of the host.
    pub device: Option<usize>,
    /// The device whose context made it, and takes it along when it ends.
    pub context: usize,
    pub bytes: usize,
    pointer: *mut u8,
}

unsafe impl Send for Allocation {}

impl Allocation {
    fn new(device: Option<usize>, context: usize, bytes: usize) -> Option<Self> {
        let flags = PRIVATE_ANONYMOUS_NORESERVE;
        let mapped = unsafe { mmap(ptr::null_mut(), bytes.max(1), READ_WRITE, flags, -1, 0) };
        if mapped.addr() == usize::MAX {
            return None;
        }
        let new = Self { device, context, bytes, pointer: mapped.cast() };
        // Fresh memory holds anything; nobody may count on zeros.
        if bytes <= 1 << 24 {
            new.overwrite(0xa5);
        }
        Some(new)
    }

    pub fn overwrite(&self, byte: u8) {
        unsafe { self.pointer.write_bytes(byte, self.bytes) };
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        unsafe { munmap(self.pointer.cast(), self.bytes.max(1)) };
    }
}

impl state::State {
    /// Which device's memory a range lies in, as a whole.
    pub fn owner(&self, address: u64, bytes: usize) -> Result<Option<usize>, Code> {
        let (first, allocation) =
            self.allocations.range(..=address).next_back().ok_or(INVALID_VALUE)?;
        let offset = usize::try_from(address - first).map_err(|_| INVALID_VALUE)?;
        let end = offset.checked_add(bytes).ok_or(INVALID_VALUE)?;
        if end > allocation.bytes { Err(INVALID_VALUE) } else { Ok(allocation.device) }
    }

    /// Whether a range can be the host's side of a copy. What begins in memory that is known must lie
    /// in it and be the host's; other memory is the program's own.
    pub fn is_host(&self, address: u64, bytes: usize) -> Result<(), Code> {
        let Some((first, known)) = self.allocations.range(..=address).next_back() else {
            return Ok(());
        };
        if address - first >= known.bytes as u64 {
            return Ok(());
        }
        self.owner(address, bytes)?.map_or(Ok(()), |_| Err(INVALID_VALUE))
    }
}

driver! {
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        let device = context::current()?;
        let state = state::lock();
        let all = state.machine.gpus[state.visible[device]].memory_bytes;
        let left = all - state.devices[device].used_bytes;
        let size = |bytes: u64| usize::try_from(bytes).map_err(|_| INVALID_VALUE);
        unsafe {
            free.write(size(left)?);
            total.write(size(all)?);
        }
        Ok(())
    }

    fn cuMemAlloc_v2(address: *mut u64, bytes: usize) {
        let device = context::current()?;
        if bytes == 0 { return Err(INVALID_VALUE); }
        let mut state = state::lock();
        state.outside_captures()?;
        let all = state.machine.gpus[state.visible[device]].memory_bytes;
        let used = state.devices[device].used_bytes.checked_add(bytes as u64);
        let used = used.filter(|used| *used <= all).ok_or(OUT_OF_MEMORY)?;
        let allocation = Allocation::new(Some(device), device, bytes).ok_or(OUT_OF_MEMORY)?;
        state.devices[device].used_bytes = used;
        let at = allocation.pointer.addr() as u64;
        state.allocations.insert(at, allocation);
        unsafe { address.write(at) };
        Ok(())
    }

    fn cuMemFree_v2(address: u64) {
        let current = context::current()?;
        let device = {
            let mut state = state::lock();
            state.outside_captures()?;
            let known = state.allocations.get(&address).ok_or(INVALID_VALUE)?;
            known.device.filter(|device| *device == current).ok_or(INVALID_VALUE)?
        };
        stream::synchronize_device(device); // freeing waits for what the device does
        let mut state = state::lock();
        let freed = state.allocations.remove(&address).ok_or(INVALID_VALUE)?;
        state.devices[device].used_bytes -= freed.bytes as u64;
        Ok(())
    }

    fn cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, _flags: u32) {
        let device = context::current()?;
        state::lock().outside_captures()?;
        let allocation = Allocation::new(None, device, bytes).ok_or(OUT_OF_MEMORY)?;
        let at = allocation.pointer;
        state::lock().allocations.insert(at.addr() as u64, allocation);
        unsafe { pointer.write(at.cast()) };
        Ok(())
    }

    fn cuMemFreeHost(pointer: *mut c_void) {
        let device = context::current()?;
        state::lock().outside_captures()?;
        stream::synchronize_device(device);
        let mut state = state::lock();
        let address = pointer.addr() as u64;
        let is_host = state.allocations.get(&address).is_some_and(|one| one.device.is_none());
        if !is_host { return Err(INVALID_VALUE); }
        state.allocations.remove(&address);
        Ok(())
    }

    fn cuMemHostGetDevicePointer_v2(address: *mut u64, pointer: *mut c_void, _flags: u32) {
        context::current()?;
        if state::lock().owner(pointer.addr() as u64, 1)?.is_some() { return Err(INVALID_VALUE); }
        unsafe { address.write(pointer.addr() as u64) };
        Ok(())
    }
}
