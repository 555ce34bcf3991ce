//! What the driver tells about devices.

use std::ffi::{CString, c_char};

use crate::{Code, INVALID_DEVICE, INVALID_VALUE, NOT_INITIALIZED, driver, state};

fn text(into: *mut c_char, length: i32, text: &str) -> Result<(), Code> {
    let text = CString::new(text).map_err(|_| INVALID_VALUE)?;
    let bytes = text.as_bytes_with_nul();
    if bytes.len() > usize::try_from(length).map_err(|_| INVALID_VALUE)? {
        return Err(INVALID_VALUE);
    }
    unsafe { into.copy_from_nonoverlapping(bytes.as_ptr().cast(), bytes.len()) };
    Ok(())
}

fn gpu(device: i32) -> Result<crate::machine::Gpu, Code> {
    let state = state::lock();
    let ordinal = state.device(device)?;
    Ok(state.machine.gpus[state.visible[ordinal]].clone())
}

driver! {
    fn cuDeviceGetCount(count: *mut i32) {
        let state = state::lock();
        if !state.is_initialised { return Err(NOT_INITIALIZED); }
        unsafe { count.write(i32::try_from(state.visible.len()).map_err(|_| INVALID_VALUE)?) };
        Ok(())
    }

    fn cuDeviceGet(device: *mut i32, ordinal: i32) {
        let state = state::lock();
        if !state.is_initialised { return Err(NOT_INITIALIZED); }
        let known = usize::try_from(ordinal).is_ok_and(|at| at < state.visible.len());
        if !known { return Err(INVALID_DEVICE); }
        unsafe { device.write(ordinal) };
        Ok(())
    }

    fn cuDeviceGetName(name: *mut c_char, length: i32, device: i32) {
        text(name, length, &gpu(device)?.name)
    }

    fn cuDeviceGetPCIBusId(into: *mut c_char, length: i32, device: i32) {
        text(into, length, &gpu(device)?.pci)
    }

    fn cuDeviceGetUuid(uuid: *mut [u8; 16], device: i32) {
        let gpu = gpu(device)?;
        unsafe { uuid.write(gpu.parent_uuid.unwrap_or(gpu.uuid)) };
        Ok(())
    }

    fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: i32) {
        unsafe { uuid.write(gpu(device)?.uuid) };
        Ok(())
    }

    fn cuDeviceTotalMem_v2(bytes: *mut usize, device: i32) {
        unsafe { bytes.write(usize::try_from(gpu(device)?.memory_bytes).map_err(|_| INVALID_VALUE)?) };
        Ok(())
    }

    fn cuDeviceGetAttribute(value: *mut i32, attribute: u32, device: i32) {
        let gpu = gpu(device)?;
        let found = match attribute {
            1 => 1024,
            13 => 1_500_000,
            16 => 16,
            36 => 1_200_000,
            75 => gpu.capability.0,
            76 => gpu.capability.1,
            95 => i32::from(gpu.cooperative),
            17 | 18 | 32 => 0,
            _ => return Err(INVALID_VALUE),
        };
        unsafe { value.write(found) };
        Ok(())
    }

    fn cuDeviceCanAccessPeer(can: *mut i32, from: i32, to: i32) {
        let state = state::lock();
        let pair = (state.visible[state.device(from)?], state.visible[state.device(to)?]);
        unsafe { can.write(i32::from(state.machine.peers.contains(&pair))) };
        Ok(())
    }

    fn cuDeviceGetP2PAttribute(value: *mut i32, attribute: u32, from: i32, to: i32) {
        if attribute == 0 || attribute > 4 { return Err(INVALID_VALUE); }
        let state = state::lock();
        let pair = (state.visible[state.device(from)?], state.visible[state.device(to)?]);
        unsafe { value.write(i32::from(state.machine.peers.contains(&pair))) };
        Ok(())
    }
}
