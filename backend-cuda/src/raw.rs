//! Copies of the driver with nothing of ours around them: the limit beside which the speed of
//! transfers is reported.

use std::time::{Duration, Instant};

use hopwise_core::error::DeviceError;

use crate::device::CudaDevice;
use crate::owned::{DeviceBuffer, PinnedBuffer, size};
use crate::peer::{Place, copy};
use crate::stream::Stream;

/// Which way a raw copy goes.
#[derive(Clone, Copy, Debug)]
pub enum RawCopy<'a> {
    /// From page-locked memory of the host.
    FromHost,
    /// To page-locked memory of the host.
    ToHost,
    /// To the memory of this device, which can be the same.
    To(&'a CudaDevice),
}

impl CudaDevice {
    /// Times one copy of the driver's: from its call to the end of the stream that it is in. Memory
    /// is allocated before and freed after, beside the quota.
    ///
    /// # Errors
    ///
    /// The driver's, among them that there is not so much memory.
    pub fn raw_copy(&self, way: RawCopy<'_>, bytes: u64) -> Result<Duration, DeviceError> {
        let context = &self.core().context;
        let entered = context.enter()?;
        let stream = Stream::new(&entered)?;
        let memory = DeviceBuffer::new(&entered, bytes)?;
        let here = Place { context, address: memory.address() };
        let length = size(bytes)?;
        let took = match way {
            RawCopy::To(other) => {
                let target = &other.core().context;
                let memory = DeviceBuffer::new(&target.enter()?, bytes)?;
                let there = Place { context: target, address: memory.address() };
                let started = Instant::now();
                // SAFETY: both ranges are new and as long; the stream has passed when they go.
                unsafe { copy(&entered, &stream, here, there, bytes)? };
                let ended = stream.wait(&entered);
                let took = started.elapsed();
                if ended.is_err() {
                    std::mem::forget(memory); // the copy may still write it
                }
                ended.map(|()| took)?
            }
            RawCopy::FromHost | RawCopy::ToHost => {
                let host = PinnedBuffer::new(&entered, length)?;
                let (pointer, address) = (host.pointer(), memory.address());
                let started = Instant::now();
                // SAFETY: both ranges are new and as long; the stream has passed when they go.
                unsafe {
                    match way {
                        RawCopy::FromHost => stream.upload(&entered, address, pointer, length)?,
                        _ => stream.download(&entered, pointer, address, length)?,
                    }
                }
                stream.wait(&entered)?;
                started.elapsed()
            }
        };
        Ok(took)
    }
}
