//! A state as it lies on the device: cut into segments, of which each is a buffer.

use std::ops::Range;

use hopwise_core::implementing::Held;

/// The buffers of a state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segmented<'a> {
    pub(crate) buffers: &'a [Held<wgpu::Buffer>],
    /// Bytes of each but the last.
    pub(crate) segment_bytes: u64,
}

/// A part of a range within one segment.
#[derive(Clone, Debug)]
pub(crate) struct Slice<'a> {
    pub(crate) buffer: &'a wgpu::Buffer,
    /// Where it begins in the buffer.
    pub(crate) offset_bytes: u64,
    /// Which bytes of the host's these are.
    pub(crate) host: Range<usize>,
}

impl<'a> Segmented<'a> {
    /// Cuts a range at the borders of segments, into slices of at most so many bytes.
    pub(crate) fn slices(
        self,
        offset_bytes: u64,
        length: usize,
        longest: u64,
    ) -> impl Iterator<Item = Slice<'a>> {
        let mut done = 0usize;
        std::iter::from_fn(move || {
            if done == length {
                return None;
            }
            let at = offset_bytes + done as u64;
            let (segment, offset_bytes) = (at / self.segment_bytes, at % self.segment_bytes);
            let left = (length - done) as u64;
            let bytes = left.min(longest).min(self.segment_bytes - offset_bytes);
            let host = done..done + usize::try_from(bytes).expect("it is part of a slice");
            done = host.end;
            let segment = usize::try_from(segment).expect("segments are few");
            Some(Slice { buffer: &self.buffers[segment], offset_bytes, host })
        })
    }
}
