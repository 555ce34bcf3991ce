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
    /// Whether a copy into or out of it may be under way.
    is_busy: bool,
}

impl Slice {
    /// Waits for the copy that was begun last.
    fn settle(&mut self, entered: &Entered<'_>) -> Result<(), DeviceError> {
        if self.is_busy {
            self.passed.wait(entered)?;
            self.is_busy = false;
        }
        Ok(())
    }
}

impl Lanes {
    /// Makes the first lane, so that no transfer finds the memory used up.
    pub(crate) fn prepare(&self, entered: &Entered<'_>) -> Result<(), DeviceError> {
        self.add(Lane::new(entered)?);
        Ok(())
    }

    fn add(&self, mut lane: Lane) {
        for slice in &mut lane.slices {
            slice.is_busy = false;
        }
        self.spare.lock().push(lane);
    }

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
        let ended = lane.stream.wait(entered).or_else(|_| lane.stream.drain(entered));
        if ended.is_err() {
            std::mem::forget(lane); // the device may go on using it
        } else {
            self.add(lane);
        }
        let value = worked?;
        ended.map(|()| value)
    }
}

impl Lane {
    fn new(entered: &Entered<'_>) -> Result<Self, DeviceError> {
        let slice = || -> Result<Slice, DeviceError> {
            let memory = PinnedBuffer::new(entered, SLICE_BYTES)?;
            Ok(Slice { memory, passed: Event::new(entered)?, is_busy: false })
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
            let slice = &mut self.slices[at];
            slice.settle(entered)?;
            // SAFETY: the range is valid by the caller; no other copy uses the slice, which has been
            // emptied.
            unsafe {
                self.stream.download(entered, slice.memory.pointer(), address, part.len())?;
            }
            slice.is_busy = true;
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

    fn empty(
        &mut self,
        entered: &Entered<'_>,
        at: usize,
        into: &mut [u8],
    ) -> Result<(), DeviceError> {
        let slice = &mut self.slices[at];
        slice.settle(entered)?;
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
            slice.settle(entered)?;
            // SAFETY: the copy that used the slice last has ended.
            let bytes = unsafe { slice.memory.bytes_mut() };
            bytes[..part.len()].copy_from_slice(part);
            let pointer = slice.memory.pointer();
            // SAFETY: the range is valid by the caller; the slice is filled again only when this
            // copy has passed.
            unsafe { self.stream.upload(entered, address, pointer, part.len())? };
            slice.is_busy = true;
            self.stream.record(entered, &slice.passed)?;
            address += part.len() as u64;
        }
        Ok(())
    }
}
