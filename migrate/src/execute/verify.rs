//! Comparing the states of both ends by digests that each device computes of its own memory.

use std::thread;

use hopwise_core::error::TransferError;

use super::copy::{Chunks, Ends};
use crate::error::MigrationCause;

/// Size of a state from which on both devices digest at the same time, in bytes: below it starting
/// a thread takes longer than the digests.
const PARALLEL_FROM_BYTES: u64 = 256 << 10;

/// The indices of the chunks whose digests differ.
pub(crate) fn differing(ends: &Ends<'_>, chunks: Chunks) -> Result<Vec<u64>, MigrationCause> {
    let of_source = || ends.source.chunk_digests(chunks.chunk_bytes);
    let of_target = || ends.target.chunk_digests(chunks.chunk_bytes);
    let (source, target) = if chunks.state_bytes < PARALLEL_FROM_BYTES {
        (of_source(), of_target())
    } else {
        at_the_same_time(of_source, of_target)?
    };
    let source = source.map_err(|error| ends.read_failed(error))?;
    let target = target.map_err(|error| ends.write_failed(error))?;
    for (device, digests) in [(ends.source_device, &source), (ends.target_device, &target)] {
        let (given, chunks) = (digests.len() as u64, chunks.count());
        if given != chunks {
            return Err(MigrationCause::DigestCount { device, given, chunks });
        }
    }
    let pairs = (0..).zip(source.iter().zip(&target));
    Ok(pairs.filter(|(_, (source, target))| source != target).map(|(index, _)| index).collect())
}

type Digests = Result<Vec<u64>, TransferError>;

fn at_the_same_time(
    first: impl FnOnce() -> Digests + Send,
    second: impl FnOnce() -> Digests,
) -> Result<(Digests, Digests), MigrationCause> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("hopwise-digests".to_owned())
            .spawn_scoped(scope, first)
            .map_err(|error| MigrationCause::Thread { error })?;
        let second = second();
        let first = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((first, second))
    })
}
