//! Moves ranges of state through a small ring of staging buffers.
//!
//! While the device copies one slice the host copies another, so a large transfer takes about as
//! long as the slower of the two. Buffers are kept for the next transfer.

use std::collections::VecDeque;
use std::ops::Range;

use hopwise_core::error::DeviceError;
use hopwise_core::implementing::Held;
use parking_lot::Mutex;

use crate::driver::Driver;
use crate::mapping::{Mapping, map_error};
use crate::segmented::{Segmented, Slice};

/// Bytes of a staging buffer: enough that a submission's cost is small beside its copy.
const SLICE_BYTES: u64 = 4 << 20;

/// Slices of one transfer that are under way at a time.
const RING: usize = 3;

/// Buffers of each direction that are kept when no transfer uses them.
const MOST_SPARE: usize = 2 * RING;

/// Buffers that wait for use.
#[derive(Debug, Default)]
pub(crate) struct Staging {
    /// Not mapped.
    downloads: Mutex<Vec<Held<wgpu::Buffer>>>,
    /// Mapped.
    uploads: Mutex<Vec<Held<wgpu::Buffer>>>,
}

/// A slice that the device works on.
#[derive(Debug)]
struct UnderWay {
    staging: Held<wgpu::Buffer>,
    mapping: Mapping,
    host: Range<usize>,
}

impl Staging {
    /// Reads from the offset; the range has been checked.
    pub(crate) fn read(
        &self,
        driver: &Driver,
        state: Segmented<'_>,
        offset_bytes: u64,
        into: &mut [u8],
    ) -> Result<(), DeviceError> {
        let mut under_way = VecDeque::with_capacity(RING);
        let mut slices = state.slices(offset_bytes, into.len(), SLICE_BYTES);
        loop {
            while under_way.len() < RING
                && let Some(slice) = slices.next()
            {
                under_way.push_back(self.begin_read(driver, &slice)?);
            }
            let Some(oldest) = under_way.pop_front() else { return Ok(()) };
            let into = &mut into[oldest.host.clone()];
            driver.wait(&[&oldest.mapping])?;
            {
                let view = oldest.staging.slice(..into.len() as u64).get_mapped_range();
                into.copy_from_slice(&view.map_err(map_error)?);
            }
            driver.call(|_| oldest.staging.unmap())?;
            keep(&self.downloads, oldest.staging);
        }
    }

    /// Writes at the offset; the range has been checked.
    pub(crate) fn write(
        &self,
        driver: &Driver,
        state: Segmented<'_>,
        offset_bytes: u64,
        from: &[u8],
    ) -> Result<(), DeviceError> {
        let mut under_way = VecDeque::with_capacity(RING);
        for slice in state.slices(offset_bytes, from.len(), SLICE_BYTES) {
            let staging = if under_way.len() < RING {
                self.take_upload(driver)?
            } else {
                let oldest = under_way.pop_front().expect("the ring is full");
                self.end_write(driver, oldest)?
            };
            under_way.push_back(begin_write(driver, &slice, staging, &from[slice.host.clone()])?);
        }
        for oldest in under_way {
            let staging = self.end_write(driver, oldest)?;
            keep(&self.uploads, staging);
        }
        Ok(())
    }

    fn begin_read(&self, driver: &Driver, slice: &Slice<'_>) -> Result<UnderWay, DeviceError> {
        use wgpu::BufferUsages as Usage;
        let spare = self.downloads.lock().pop();
        let staging = match spare {
            Some(staging) => staging,
            None => {
                let usage = Usage::MAP_READ | Usage::COPY_DST;
                driver.create_buffer("hopwise download", SLICE_BYTES, usage)?
            }
        };
        let length = slice.host.len() as u64;
        let mapping = driver.call(|handles| {
            let descriptor = wgpu::CommandEncoderDescriptor { label: Some("hopwise read") };
            let mut encoder = handles.device.create_command_encoder(&descriptor);
            encoder.copy_buffer_to_buffer(slice.buffer, slice.offset_bytes, &staging, 0, length);
            handles.queue.submit([encoder.finish()]);
            Mapping::of(staging.slice(..length), wgpu::MapMode::Read)
        })?;
        Ok(UnderWay { staging, mapping, host: slice.host.clone() })
    }

    /// A mapped buffer.
    fn take_upload(&self, driver: &Driver) -> Result<Held<wgpu::Buffer>, DeviceError> {
        use wgpu::BufferUsages as Usage;
        if let Some(spare) = self.uploads.lock().pop() {
            return Ok(spare);
        }
        let usage = Usage::MAP_WRITE | Usage::COPY_SRC;
        driver.create_mapped_buffer("hopwise upload", SLICE_BYTES, usage)
    }

    /// Waits until the device has copied a slice and its buffer is mapped again.
    fn end_write(
        &self,
        driver: &Driver,
        under_way: UnderWay,
    ) -> Result<Held<wgpu::Buffer>, DeviceError> {
        driver.wait(&[&under_way.mapping])?;
        Ok(under_way.staging)
    }
}

fn begin_write(
    driver: &Driver,
    slice: &Slice<'_>,
    staging: Held<wgpu::Buffer>,
    from: &[u8],
) -> Result<UnderWay, DeviceError> {
    let length = from.len() as u64;
    {
        let view = staging.slice(..length).get_mapped_range_mut();
        view.map_err(map_error)?.copy_from_slice(from);
    }
    let mapping = driver.call(|handles| {
        staging.unmap();
        let descriptor = wgpu::CommandEncoderDescriptor { label: Some("hopwise write") };
        let mut encoder = handles.device.create_command_encoder(&descriptor);
        encoder.copy_buffer_to_buffer(&staging, 0, slice.buffer, slice.offset_bytes, length);
        handles.queue.submit([encoder.finish()]);
        Mapping::of(staging.slice(..), wgpu::MapMode::Write)
    })?;
    Ok(UnderWay { staging, mapping, host: slice.host.clone() })
}

/// Keeps a buffer for later, or lets go of it when there are enough.
fn keep(spare: &Mutex<Vec<Held<wgpu::Buffer>>>, buffer: Held<wgpu::Buffer>) {
    let mut spare = spare.lock();
    if spare.len() < MOST_SPARE {
        spare.push(buffer);
        return;
    }
    drop(spare);
    drop(buffer); // not under the lock: it calls the driver
}
