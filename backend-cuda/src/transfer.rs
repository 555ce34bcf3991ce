//! Moves state between host and device through page-locked memory, beside the batches.

use parking_lot::Mutex;

use hopwise_core::error::DeviceError;

use crate::context::Entered;
use crate::owned::{Address, DeviceBuffer, PinnedBuffer};
use crate::stream::{Event, Stream};

/// Bytes of a slice: while the device copies one, the host copies the other.
const SLICE_BYTES: usize = 4 << 20;

/// Bytes on the device for what a transfer needs there.
pub(crate) const SCRATCH_BYTES: u64 = 64 << 10;

/// Lanes that wait for use.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    spare: Mutex<Vec<Lane>>,
}

/// A stream with memory for transfers, used by one at a time.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) stream: Stream,
    pub(crate) scratch: DeviceBuffer,
    slices: [Slice; 2],
}

#[derive(Debug)]
struct Slice {
    memory: PinnedBuffer,
    passed: Event,
}

impl Lanes {
    /// Works with a lane of its own. What was put into its stream has ended when this returns, also
    /// after an error: so the memory that it uses is free.
    pub(crate) fn with<T>(
        &self,
        entered: &Entered<'_>,
        work: impl FnOnce(&mut Lane) -> Result<T, DeviceError>,
    ) -> Result<T, DeviceError> {
        let spare = self.spare.lock().pop();
        let mut lane = match spare {
            Some(lane) => lane,
            None => Lane::new(entered)?,
        };
        let worked = work(&mut lane);
        let ended = lane.stream.wait(entered);
        if ended.is_err() {
            std::mem::forget(lane); // the device may go on using it
        } else {
            self.spare.lock().push(lane);
        }
        let value = worked?;
        ended.map(|()| value)
    }
}

impl Lane {
    fn new(entered: &Entered<'_>) -> Result<Self, DeviceError> {
        let slice = || -> Result<Slice, DeviceError> {
            let memory = PinnedBuffer::new(entered, SLICE_BYTES)?;
            Ok(Slice { memory, passed: Event::new(entered)? })
        };
        let stream = Stream::new(entered)?;
        let scratch = DeviceBuffer::new(entered, SCRATCH_BYTES)?;
        Ok(Self { stream, scratch, slices: [slice()?, slice()?] })
    }

    /// Reads memory of the device.
    ///
    /// # Safety
    ///
    /// The range is valid, and nobody writes it meanwhile.
    pub(crate) unsafe fn read(
        &mut self,
        entered: &Entered<'_>,
        from: Address,
        into: &mut [u8],
    ) -> Result<(), DeviceError> {
        let mut before: Option<(&mut [u8], usize)> = None;
        let mut address = from;
        for (number, part) in into.chunks_mut(SLICE_BYTES).enumerate() {
            let at = number % 2;
            let slice = &self.slices[at];
            // SAFETY: the range is valid by the caller; the slice was emptied two rounds ago.
            unsafe {
                self.stream.download(entered, slice.memory.pointer(), address, part.len())?;
            }
            self.stream.record(entered, &slice.passed)?;
            address += part.len() as u64;
            if let Some((part, at)) = before.replace((part, at)) {
                self.empty(entered, at, part)?;
            }
        }
        match before {
            Some((part, at)) => self.empty(entered, at, part),
            None => Ok(()),
        }
    }

    fn empty(&self, entered: &Entered<'_>, at: usize, into: &mut [u8]) -> Result<(), DeviceError> {
        let slice = &self.slices[at];
        slice.passed.wait(entered)?;
        // SAFETY: the copy into the slice has ended, and no other was begun.
        let bytes = unsafe { slice.memory.bytes() };
        into.copy_from_slice(&bytes[..into.len()]);
        Ok(())
    }

    /// Writes memory of the device. The copies have ended when the lane has.
    ///
    /// # Safety
    ///
    /// The range is valid, and nobody touches it until the lane has ended.
    pub(crate) unsafe fn write(
        &mut self,
        entered: &Entered<'_>,
        to: Address,
        from: &[u8],
    ) -> Result<(), DeviceError> {
        let mut address = to;
        for (number, part) in from.chunks(SLICE_BYTES).enumerate() {
            let slice = &mut self.slices[number % 2];
            if number >= 2 {
                slice.passed.wait(entered)?;
            }
            // SAFETY: the copy out of the slice two rounds ago has ended.
            let bytes = unsafe { slice.memory.bytes_mut() };
            bytes[..part.len()].copy_from_slice(part);
            let pointer = slice.memory.pointer();
            // SAFETY: the range is valid by the caller; the slice is filled again only when this
            // copy has passed.
            unsafe { self.stream.upload(entered, address, pointer, part.len())? };
            self.stream.record(entered, &slice.passed)?;
            address += part.len() as u64;
        }
        Ok(())
    }
}
