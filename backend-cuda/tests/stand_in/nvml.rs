//! A stand-in for NVIDIA's management library: a test fixture, compiled by the test that loads it.
//! It answers as `nvml.h` has it for one fixed machine. It proves which functions are called, with
//! what, and what is made of the answers; it proves nothing about a real GPU.
//!
//! Three GPUs: 0 and 1 have two NVLinks each to a switch, 2 has no NVLink. GPU 1 is divided.
#![allow(non_snake_case, reason = "the names are those of nvml.h")]

use std::ffi::{c_char, c_int, c_uint, c_ulong, c_ulonglong, c_void};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const SUCCESS: c_uint = 0;
const INVALID_ARGUMENT: c_uint = 2;
const NOT_SUPPORTED: c_uint = 3;
const NOT_FOUND: c_uint = 6;
const TIMEOUT: c_uint = 10;
const GPU_IS_LOST: c_uint = 15;

const GPUS: u32 = 3;
const LANES: u32 = 2;

/// Bits of the GPUs that are lost.
static LOST: AtomicU32 = AtomicU32::new(0);
/// An Xid that waits to be told for each GPU; 0 for none.
static XIDS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
/// Sets of events that were made and not freed.
static EVENT_SETS: AtomicU32 = AtomicU32::new(0);

/// Handles are small numbers: the index plus this, or for an instance of GPU 1 plus 16 more.
const FIRST_HANDLE: usize = 0x1000;
const FIRST_INSTANCE: usize = FIRST_HANDLE + 16;

type Handle = *mut c_void;

/// What a test does to the machine: 0 loses a GPU, 1 reports an Xid of GPU 0, 2 asks how many sets
/// of events there are.
#[unsafe(no_mangle)]
extern "C" fn hw_nvml_control(what: c_uint, value: c_ulonglong) -> c_uint {
    match what {
        0 => {
            LOST.fetch_or(1 << value, Ordering::SeqCst);
            0
        }
        1 => {
            XIDS[0].store(value, Ordering::SeqCst);
            0
        }
        _ => EVENT_SETS.load(Ordering::SeqCst),
    }
}

/// The index of a GPU that is there, or the code to return.
fn gpu(handle: Handle) -> Result<u32, c_uint> {
    let number = (handle as usize).wrapping_sub(FIRST_HANDLE);
    let index = u32::try_from(number).ok().filter(|&index| index < GPUS).ok_or(INVALID_ARGUMENT)?;
    if LOST.load(Ordering::SeqCst) >> index & 1 != 0 { Err(GPU_IS_LOST) } else { Ok(index) }
}

fn instance(handle: Handle) -> Option<usize> {
    (handle as usize).checked_sub(FIRST_INSTANCE)
}

/// Writes what `answer` gives, or returns its code.
fn put<T>(to: *mut T, answer: Result<T, c_uint>) -> c_uint {
    match answer {
        Ok(value) => {
            // SAFETY: the caller gives a pointer to one `T` that it owns.
            unsafe { to.write(value) };
            SUCCESS
        }
        Err(code) => code,
    }
}

fn put_text(to: *mut c_char, room: c_uint, answer: Result<String, c_uint>) -> c_uint {
    match answer {
        Ok(text) if text.len() < room as usize => {
            let to = to.cast::<u8>();
            // SAFETY: the caller gives `room` bytes, and the text with its end is not longer.
            unsafe {
                to.copy_from_nonoverlapping(text.as_ptr(), text.len());
                to.add(text.len()).write(0);
            }
            SUCCESS
        }
        Ok(_) => INVALID_ARGUMENT,
        Err(code) => code,
    }
}

/// `nvmlPciInfo_t`.
#[repr(C)]
pub struct PciInfo {
    legacy: [u8; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    pci_device_id: c_uint,
    pci_subsystem_id: c_uint,
    bus_id: [u8; 32],
}

fn pci(bus: u32) -> PciInfo {
    let mut info = PciInfo {
        legacy: [0; 16],
        domain: 0,
        bus,
        device: 0,
        pci_device_id: 0,
        pci_subsystem_id: 0,
        bus_id: [0; 32],
    };
    let text = format!("00000000:{bus:02X}:00.0");
    info.bus_id[..text.len()].copy_from_slice(text.as_bytes());
    info
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> c_uint {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvmlShutdown() -> c_uint {
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvmlSystemGetDriverVersion(to: *mut c_char, room: c_uint) -> c_uint {
    put_text(to, room, Ok("550.54".to_owned()))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetCount_v2(to: *mut c_uint) -> c_uint {
    put(to, Ok(GPUS))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, to: *mut Handle) -> c_uint {
    let handle = (FIRST_HANDLE + index as usize) as Handle;
    put(to, gpu(handle).map(|_| handle))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetUUID(of: Handle, to: *mut c_char, room: c_uint) -> c_uint {
    let text = match instance(of) {
        Some(number) => Ok(format!("MIG-{number:08x}-0000-0000-0000-000000000000")),
        None => gpu(of).map(|index| format!("GPU-{index:08x}-0000-0000-0000-000000000000")),
    };
    put_text(to, room, text)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetName(of: Handle, to: *mut c_char, room: c_uint) -> c_uint {
    put_text(to, room, gpu(of).map(|_| "Stand-in".to_owned()))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetPciInfo_v3(of: Handle, to: *mut PciInfo) -> c_uint {
    put(to, gpu(of).map(|index| pci(0x20 + index)))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetCudaComputeCapability(
    of: Handle,
    major: *mut c_int,
    minor: *mut c_int,
) -> c_uint {
    put(minor, Ok(0));
    put(major, gpu(of).map(|_| 9))
}

/// `nvmlMemory_v2_t`.
#[repr(C)]
pub struct Memory {
    version: c_uint,
    total: c_ulonglong,
    reserved: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMemoryInfo_v2(of: Handle, to: *mut Memory) -> c_uint {
    // SAFETY: the caller gives one value, of which it has filled in the version.
    let version = unsafe { (*to).version };
    if version as usize != size_of::<Memory>() | 2 << 24 {
        return INVALID_ARGUMENT;
    }
    let known = instance(of).map_or_else(|| gpu(of), |_| Ok(1));
    let (total, free, used) = (80 << 30, 79 << 30, 1 << 30);
    put(to, known.map(|_| Memory { version, total, reserved: 0, free, used }))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMemoryAffinity(
    of: Handle,
    words: c_uint,
    to: *mut c_ulong,
    scope: c_uint,
) -> c_uint {
    // The node, and not the socket, is asked for.
    if scope != 0 || words < 2 {
        return INVALID_ARGUMENT;
    }
    // SAFETY: the caller gives as many words as it says.
    let second = unsafe { to.add(1) };
    // GPU 2 is near to node 65, which is in the second word.
    put(second, gpu(of).map(|index| if index == 2 { 2 } else { 0 }));
    put(to, gpu(of).map(|index| c_ulong::from(index != 2)))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMigMode(of: Handle, now: *mut c_uint, next: *mut c_uint) -> c_uint {
    match gpu(of) {
        Ok(index @ 0..=1) => {
            put(next, Ok(0));
            put(now, Ok(index))
        }
        Ok(_) => NOT_SUPPORTED,
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMaxMigDeviceCount(of: Handle, to: *mut c_uint) -> c_uint {
    put(to, gpu(of).map(|_| 7))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMigDeviceHandleByIndex(
    of: Handle,
    number: c_uint,
    to: *mut Handle,
) -> c_uint {
    let is_there = matches!(gpu(of), Ok(1)) && matches!(number, 0 | 2);
    let handle = (FIRST_INSTANCE + number as usize) as Handle;
    put(to, if is_there { Ok(handle) } else { Err(NOT_FOUND) })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetCurrPcieLinkGeneration(of: Handle, to: *mut c_uint) -> c_uint {
    put(to, gpu(of).map(|_| 1))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMaxPcieLinkGeneration(of: Handle, to: *mut c_uint) -> c_uint {
    put(to, gpu(of).map(|_| 5))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetCurrPcieLinkWidth(of: Handle, to: *mut c_uint) -> c_uint {
    put(to, gpu(of).map(|index| if index == 2 { 8 } else { 16 }))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMaxPcieLinkWidth(of: Handle, to: *mut c_uint) -> c_uint {
    put(to, gpu(of).map(|_| 16))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetP2PStatus(
    from: Handle,
    other: Handle,
    capability: c_uint,
    to: *mut c_uint,
) -> c_uint {
    let pair = gpu(from).and_then(|from| Ok((from, gpu(other)?)));
    // GPU 0 may read and write GPU 2, which may not do so back; nobody has NVLink to it.
    put(to, pair.map(|pair| if pair == (0, 2) && capability < 2 { 0 } else { 5 }))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetTopologyCommonAncestor(
    one: Handle,
    other: Handle,
    to: *mut c_uint,
) -> c_uint {
    put(to, gpu(one).and_then(|_| gpu(other)).map(|_| 50))
}

fn lane(of: Handle, lane: c_uint) -> Result<u32, c_uint> {
    match gpu(of)? {
        2 => Err(NOT_SUPPORTED),
        _ if lane >= LANES => Err(INVALID_ARGUMENT),
        index => Ok(index),
    }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetNvLinkState(of: Handle, at: c_uint, to: *mut c_uint) -> c_uint {
    put(to, lane(of, at).map(|_| 1))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetNvLinkVersion(of: Handle, at: c_uint, to: *mut c_uint) -> c_uint {
    put(to, lane(of, at).map(|_| 6))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetNvLinkRemoteDeviceType(
    of: Handle,
    at: c_uint,
    to: *mut c_uint,
) -> c_uint {
    put(to, lane(of, at).map(|_| 2))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetNvLinkRemotePciInfo_v2(
    of: Handle,
    at: c_uint,
    to: *mut PciInfo,
) -> c_uint {
    put(to, lane(of, at).map(|_| pci(0xC0 + at)))
}

/// `nvmlFieldValue_t`.
#[repr(C)]
pub struct FieldValue {
    field: c_uint,
    scope: c_uint,
    timestamp: i64,
    latency: i64,
    kind: c_uint,
    code: c_uint,
    value: c_ulonglong,
}

/// Knows field 90, the speed of an NVLink, as an unsigned number (kind 1).
#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetFieldValues(of: Handle, count: c_int, to: *mut FieldValue) -> c_uint {
    if count != 1 {
        return INVALID_ARGUMENT;
    }
    // SAFETY: the caller gives one value.
    let value = unsafe { &mut *to };
    value.kind = 1;
    value.value = 26_562;
    value.code = if value.field == 90 { SUCCESS } else { NOT_SUPPORTED };
    gpu(of).err().unwrap_or(SUCCESS)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetCurrentClocksThrottleReasons(
    of: Handle,
    to: *mut c_ulonglong,
) -> c_uint {
    put(to, gpu(of).map(|_| 1))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetTotalEccErrors(
    of: Handle,
    kind: c_uint,
    since: c_uint,
    to: *mut c_ulonglong,
) -> c_uint {
    // Errors that could not be corrected (1), since the driver was loaded (0), are asked for.
    if (kind, since) != (1, 0) {
        return INVALID_ARGUMENT;
    }
    put(to, gpu(of).map(|_| 0))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetRemappedRows(
    of: Handle,
    corrected: *mut c_uint,
    uncorrected: *mut c_uint,
    pending: *mut c_uint,
    failed: *mut c_uint,
) -> c_uint {
    put(corrected, Ok(4));
    put(uncorrected, Ok(3));
    put(failed, Ok(0));
    put(pending, gpu(of).map(|index| u32::from(index == 1)))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlEventSetCreate(to: *mut Handle) -> c_uint {
    EVENT_SETS.fetch_add(1, Ordering::SeqCst);
    // Holds the index of the GPU that was added, plus one.
    put(to, Ok(Box::into_raw(Box::new(AtomicU32::new(0))).cast()))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlEventSetFree(set: Handle) -> c_uint {
    EVENT_SETS.fetch_sub(1, Ordering::SeqCst);
    // SAFETY: it was made by `nvmlEventSetCreate`, and is freed once.
    drop(unsafe { Box::from_raw(set.cast::<AtomicU32>()) });
    SUCCESS
}

/// Xid (8) of all; memory errors (1 and 2) of GPU 0 alone.
#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetSupportedEventTypes(of: Handle, to: *mut c_ulonglong) -> c_uint {
    put(to, gpu(of).map(|index| if index == 0 { 0xB } else { 8 }))
}

/// Refuses GPU 2.
#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceRegisterEvents(of: Handle, kinds: c_ulonglong, set: Handle) -> c_uint {
    match gpu(of) {
        Ok(2) => NOT_SUPPORTED,
        Ok(index) if kinds == if index == 0 { 0xB } else { 8 } => {
            // SAFETY: it was made by `nvmlEventSetCreate`.
            unsafe { &*set.cast::<AtomicU32>() }.store(index + 1, Ordering::SeqCst);
            SUCCESS
        }
        Ok(_) => INVALID_ARGUMENT,
        Err(code) => code,
    }
}

/// `nvmlEventData_t`.
#[repr(C)]
pub struct EventData {
    gpu: Handle,
    kind: c_ulonglong,
    data: c_ulonglong,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

#[unsafe(no_mangle)]
extern "C" fn nvmlEventSetWait_v2(set: Handle, to: *mut EventData, wait_ms: c_uint) -> c_uint {
    if wait_ms != 0 {
        return INVALID_ARGUMENT; // nobody may wait
    }
    // SAFETY: it was made by `nvmlEventSetCreate`.
    let index = unsafe { &*set.cast::<AtomicU32>() }.load(Ordering::SeqCst) - 1;
    let handle = (FIRST_HANDLE + index as usize) as Handle;
    match (gpu(handle), XIDS[index as usize].swap(0, Ordering::SeqCst)) {
        (Err(code), _) => code,
        (Ok(_), 0) => TIMEOUT,
        (Ok(_), data) => {
            let (gpu_instance, compute_instance) = (u32::MAX, u32::MAX);
            put(to, Ok(EventData { gpu: handle, kind: 8, data, gpu_instance, compute_instance }))
        }
    }
}
