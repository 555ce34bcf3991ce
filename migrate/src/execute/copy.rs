//! Moving bytes of state: directly between devices, or through a few staging buffers.

use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};
use hopwise_core::device::{KernelInstance, PeerCopy};
use hopwise_core::error::TransferError;

use crate::error::MigrationCause;

/// How many chunks one direct copy covers: its calls cost more than its bytes.
const CHUNKS_PER_PEER_COPY: u64 = 16;

/// A range of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) offset_bytes: u64,
    pub(crate) length_bytes: u64,
}

/// How a state is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunks {
    pub(crate) state_bytes: u64,
    pub(crate) chunk_bytes: u64,
}

impl Chunks {
    pub(crate) fn count(self) -> u64 {
        self.state_bytes.div_ceil(self.chunk_bytes)
    }

    /// The chunk with this index.
    pub(crate) fn span(self, index: u64) -> Span {
        self.span_at(index * self.chunk_bytes, self.chunk_bytes)
    }

    /// So many bytes from an offset, or what is left of the state.
    fn span_at(self, offset_bytes: u64, length_bytes: u64) -> Span {
        Span { offset_bytes, length_bytes: length_bytes.min(self.state_bytes - offset_bytes) }
    }
}

/// The two instances of a move, and the devices' indices for error texts.
#[derive(Clone, Copy)]
pub(crate) struct Ends<'a> {
    pub(crate) source: &'a dyn KernelInstance,
    pub(crate) source_device: usize,
    pub(crate) target: &'a dyn KernelInstance,
    pub(crate) target_device: usize,
}

impl Ends<'_> {
    pub(crate) fn read_failed(&self, error: TransferError) -> MigrationCause {
        MigrationCause::Read { device: self.source_device, error }
    }

    pub(crate) fn write_failed(&self, error: TransferError) -> MigrationCause {
        MigrationCause::Write { device: self.target_device, error }
    }
}

/// Says whether to go on; called between any two calls to a device.
pub(crate) type Check<'a> = &'a (dyn Fn() -> Result<(), MigrationCause> + Sync);

/// How a direct copy ended.
pub(crate) enum PeerOutcome {
    /// Everything is copied.
    Complete,
    /// A device refused at this byte, but both still work: the rest can go through host memory.
    Refused { at_byte: u64, error: TransferError },
}

/// Copies a whole state directly.
pub(crate) fn peer(
    peer: &dyn PeerCopy,
    ends: &Ends<'_>,
    chunks: Chunks,
    check: Check<'_>,
) -> Result<PeerOutcome, MigrationCause> {
    let stride = chunks.chunk_bytes * CHUNKS_PER_PEER_COPY;
    let mut at_byte = 0;
    while at_byte < chunks.state_bytes {
        check()?;
        let span = chunks.span_at(at_byte, stride);
        match peer.copy_state(ends.source, ends.target, span.offset_bytes, span.length_bytes) {
            Ok(()) => at_byte += span.length_bytes,
            Err(error) if error.is_fatal() => return Err(ends.write_failed(error)),
            Err(error) => return Ok(PeerOutcome::Refused { at_byte, error }),
        }
    }
    Ok(PeerOutcome::Complete)
}

/// Copies chunks through at most `buffers` buffers of one chunk each. A thread reads ahead while this
/// one writes.
pub(crate) fn staged(
    ends: &Ends<'_>,
    chunks: Chunks,
    indices: impl Iterator<Item = u64> + Clone + Send,
    buffers: usize,
    check: Check<'_>,
) -> Result<(), MigrationCause> {
    // No more buffers than chunks: small states should not pay for large ones.
    let buffers = indices.clone().take(buffers).count();
    if buffers == 0 {
        return Ok(());
    }
    let length = chunks.chunk_bytes.min(chunks.state_bytes);
    let length = usize::try_from(length).expect("a chunk is at most 1 GiB");
    let spans = indices.map(|index| chunks.span(index));
    if buffers == 1 {
        return in_turn(ends, spans, vec![0; length], check);
    }
    let (return_empty, empty) = bounded(buffers);
    let (pass_full, full) = bounded(buffers);
    for _ in 0..buffers {
        // The channel has room for all of them, and its receiver is here.
        let _ = return_empty.send(vec![0; length]);
    }
    thread::scope(|scope| {
        thread::Builder::new()
            .name("hopwise-read-ahead".to_owned())
            .spawn_scoped(scope, move || read_ahead(ends, spans, &empty, &pass_full, check))
            .map_err(|error| MigrationCause::Thread { error })?;
        write_behind(ends, full, return_empty)
    })
}

/// A chunk on its way, or why there will be no more.
type Parcel = Result<(Span, Vec<u8>), MigrationCause>;

/// Ends when everything is read, on an error, or when the writer is gone.
fn read_ahead(
    ends: &Ends<'_>,
    spans: impl Iterator<Item = Span>,
    empty: &Receiver<Vec<u8>>,
    pass_full: &Sender<Parcel>,
    check: Check<'_>,
) {
    for span in spans {
        let Ok(mut buffer) = empty.recv() else { return };
        let parcel = check().and_then(|()| read(ends, span, &mut buffer));
        let failed = parcel.is_err();
        if pass_full.send(parcel.map(|()| (span, buffer))).is_err() || failed {
            return;
        }
    }
}

/// Owns its ends of the channels, so that the reader ends when this does.
fn write_behind(
    ends: &Ends<'_>,
    full: Receiver<Parcel>,
    return_empty: Sender<Vec<u8>>,
) -> Result<(), MigrationCause> {
    for parcel in full {
        let (span, buffer) = parcel?;
        write(ends, span, &buffer)?;
        // The reader does not wait for buffers once it has read everything.
        let _ = return_empty.send(buffer);
    }
    Ok(())
}

fn in_turn(
    ends: &Ends<'_>,
    spans: impl Iterator<Item = Span>,
    mut buffer: Vec<u8>,
    check: Check<'_>,
) -> Result<(), MigrationCause> {
    for span in spans {
        check()?;
        read(ends, span, &mut buffer)?;
        write(ends, span, &buffer)?;
    }
    Ok(())
}

fn read(ends: &Ends<'_>, span: Span, buffer: &mut [u8]) -> Result<(), MigrationCause> {
    let into = &mut buffer[..length_of(span)];
    ends.source.read_state(span.offset_bytes, into).map_err(|error| ends.read_failed(error))
}

fn write(ends: &Ends<'_>, span: Span, buffer: &[u8]) -> Result<(), MigrationCause> {
    let from = &buffer[..length_of(span)];
    ends.target.write_state(span.offset_bytes, from).map_err(|error| ends.write_failed(error))
}

fn length_of(span: Span) -> usize {
    usize::try_from(span.length_bytes).expect("a chunk is at most 1 GiB")
}

#[cfg(test)]
mod tests;
