//! Moves ranges of state on adapters whose memory is the host's: maps the state and copies once.
//!
//! Software drivers keep buffers in plain memory. There a staging buffer would be a second copy of
//! the same bytes by the same processor. A mapped transfer also waits for no other kernel's step.

use hopwise_core::error::DeviceError;

use crate::driver::Driver;
use crate::mapping::map_error;
use crate::segmented::Segmented;

/// Reads from the offset; the range has been checked, and nothing else uses the state.
pub(crate) fn read(
    driver: &Driver,
    state: Segmented<'_>,
    offset_bytes: u64,
    into: &mut [u8],
) -> Result<(), DeviceError> {
    for slice in state.slices(offset_bytes, into.len(), u64::MAX) {
        let (range, skipped) = aligned(slice.offset_bytes, slice.host.len());
        driver.map_idle(slice.buffer, wgpu::MapMode::Read, range.clone())?;
        {
            let view = slice.buffer.slice(range).get_mapped_range().map_err(map_error)?;
            into[slice.host].copy_from_slice(&view[skipped..]);
        }
        driver.call(|_| slice.buffer.unmap())?;
    }
    Ok(())
}

/// Writes at the offset; the range has been checked, and nothing else uses the state.
pub(crate) fn write(
    driver: &Driver,
    state: Segmented<'_>,
    offset_bytes: u64,
    from: &[u8],
) -> Result<(), DeviceError> {
    for slice in state.slices(offset_bytes, from.len(), u64::MAX) {
        let (range, skipped) = aligned(slice.offset_bytes, slice.host.len());
        driver.map_idle(slice.buffer, wgpu::MapMode::Write, range.clone())?;
        {
            let view = slice.buffer.slice(range).get_mapped_range_mut();
            view.map_err(map_error)?.slice(skipped..).copy_from_slice(&from[slice.host]);
        }
        driver.call(|_| slice.buffer.unmap())?;
    }
    Ok(())
}

/// The range from where a mapping may begin, and how many bytes that is too early.
fn aligned(offset_bytes: u64, length: usize) -> (std::ops::Range<u64>, usize) {
    let skipped = offset_bytes % wgpu::MAP_ALIGNMENT;
    let range = offset_bytes - skipped..offset_bytes + length as u64;
    (range, usize::try_from(skipped).expect("an alignment is small"))
}
