//! Computes digests of chunks of state on the device.

use std::ops::Range;
use std::sync::OnceLock;

use hopwise_core::device_info::ComputeCapability;
use hopwise_core::error::DeviceError;

use crate::compiler::Compiler;
use crate::context::Entered;
use crate::module::{Function, load};
use crate::owned::Address;
use crate::transfer::{Lane, SCRATCH_BYTES};

/// Bytes of `hw_Digest` in digest.cu, and what is kept free for it.
const JOB_BYTES: usize = 40;
const SUMS_AT: u64 = 64;

/// Most chunks that are digested by one launch.
const CHUNKS_AT_ONCE: u64 = (SCRATCH_BYTES - SUMS_AT) / 8;

/// Most bytes that are digested by one launch, unless one chunk is larger: a step of the kernel
/// waits for so long.
const BYTES_AT_ONCE: u64 = 1 << 30;

/// Words that one thread digests at least, so that adding up costs little.
const WORDS_PER_THREAD: u64 = 16;

/// Most blocks for one chunk: more add up more often and gain nothing.
const BLOCKS_PER_CHUNK: u64 = 256;

/// The function, loaded when it is used first.
#[derive(Debug, Default)]
pub(crate) struct Digester {
    function: OnceLock<Function>,
}

/// A state that is to be digested.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DigestedState {
    pub(crate) address: Address,
    pub(crate) bytes: u64,
    pub(crate) chunk_bytes: u64,
}

impl Digester {
    /// Loads the function if it is not there yet.
    pub(crate) fn function(
        &self,
        entered: &Entered<'_>,
        compiler: &Compiler,
        capability: ComputeCapability,
    ) -> Result<&Function, DeviceError> {
        if let Some(known) = self.function.get() {
            return Ok(known);
        }
        // Two threads may load it; the first to end has its work kept.
        let image = compiler.digest(capability)?;
        let function = Function::of(entered, &load(entered, &image)?, "hw_digest")?;
        Ok(self.function.get_or_init(|| function))
    }

    /// Cuts the chunks of a state into parts that one launch digests.
    pub(crate) fn parts(state_bytes: u64, chunk_bytes: u64) -> impl Iterator<Item = Range<u64>> {
        let count = state_bytes.div_ceil(chunk_bytes);
        let at_once = (BYTES_AT_ONCE / chunk_bytes).clamp(1, CHUNKS_AT_ONCE);
        let starts = (0..count.div_ceil(at_once)).map(move |part| part * at_once);
        starts.map(move |start| start..count.min(start + at_once))
    }

    /// Appends the digests of one of the [`parts`](Self::parts). The chunk size has been checked.
    ///
    /// # Safety
    ///
    /// The state is valid and written by nobody meanwhile.
    pub(crate) unsafe fn digest(
        function: &Function,
        entered: &Entered<'_>,
        lane: &mut Lane,
        state: DigestedState,
        chunks: Range<u64>,
        digests: &mut Vec<u64>,
    ) -> Result<(), DeviceError> {
        let count = chunks.end - chunks.start;
        let chunk_words = state.chunk_bytes / 4;
        let sums = lane.scratch.address() + SUMS_AT;
        let fields =
            [state.address, chunks.start * chunk_words, state.bytes / 4, chunk_words, sums];
        let mut job = [0; JOB_BYTES];
        for (into, field) in job.chunks_exact_mut(8).zip(fields) {
            into.copy_from_slice(&field.to_le_bytes());
        }
        let threads = function.block_threads.min(256);
        let most_words = chunk_words.min(state.bytes / 4);
        let blocks = most_words.div_ceil(WORDS_PER_THREAD * u64::from(threads));
        let blocks = blocks.clamp(1, BLOCKS_PER_CHUNK);
        let grid = [blocks, count].map(|n| u32::try_from(n).expect("a part is small"));
        let job_at = lane.scratch.address();
        let mut found = vec![0; usize::try_from(count * 8).expect("a part is small")];
        // SAFETY: job and sums lie in the lane's scratch memory, which nobody else uses; the state
        // is valid by the caller.
        unsafe {
            lane.write(entered, job_at, &job)?;
            lane.stream.zero(entered, sums, count * 8)?;
            function.launch(entered, &lane.stream, grid, threads, job_at)?;
            lane.read(entered, sums, &mut found)?;
        }
        // The low sum of a chunk comes first, so the digest is one little-endian number.
        let digest = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        digests.extend(found.chunks_exact(8).map(digest));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_every_chunk_once() {
        for (state, chunk) in [(4, 4), (1 << 20, 4), ((9 << 30) + 4, 1 << 20), (8 << 30, 3 << 30)] {
            let parts: Vec<_> = Digester::parts(state, chunk).collect();
            assert_eq!(parts[0].start, 0);
            assert_eq!(parts[parts.len() - 1].end, state.div_ceil(chunk));
            assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert!(parts.iter().all(|part| part.end - part.start <= CHUNKS_AT_ONCE));
        }
    }
}
