//! Copies of state: from the host, to the host, and from device to device.

use std::sync::Arc;

use hopwise_backend_cuda::{CudaDevice, RawCopy};
use hopwise_core::device::{Device, InitialState, InstanceRequest, KernelInstance};
use hopwise_core::device_info::BackendKind;
use hopwise_core::digest::{chunk_digest, state_digests};
use hopwise_core::error::TransferError;
use hopwise_core::programs::counter::counter;

use super::{Measuring, Miss, Sizes, failed};
use crate::gpu_check::figure::{Figure, Limit, Quantity, Times, micros};

/// Bytes of the chunks whose digests are compared.
const CHUNK_BYTES: u64 = 1 << 20;

/// A word that is not zero.
const MARK: u32 = 0x5eed_0001;

/// Writes and reads a whole state.
pub(super) fn with_host(device: &dyn Device, on: &str, sizes: Sizes) -> Measuring<Vec<Figure>> {
    let bytes = sizes.copy_bytes;
    let instance = create(device, bytes)?;
    let from = pattern(bytes)?;
    let mut into = vec![1; from.len()];
    let [write_limit, read_limit] = match device.info().backend {
        BackendKind::Host => {
            let times = Times::measure(sizes.runs, || {
                std::hint::black_box(&mut into[..]).copy_from_slice(std::hint::black_box(&from));
                Measuring::Ok(())
            })?;
            let limit = Limit { what: "a copy in memory".to_owned(), times };
            [Some(limit.clone()), Some(limit)]
        }
        _ => [raw(device, RawCopy::FromHost, sizes)?, raw(device, RawCopy::ToHost, sizes)?],
    };
    let figure = |what: &str, ours, limit| Figure {
        what: format!("{what}, {} MiB of state", bytes >> 20),
        on: on.to_owned(),
        quantity: Quantity::Bytes(bytes),
        ours,
        limit,
    };
    let write = Times::measure(sizes.runs, || instance.write_state(0, &from)).map_err(failed)?;
    into.fill(0);
    let read = Times::measure(sizes.runs, || instance.read_state(0, &mut into)).map_err(failed)?;
    if into != from {
        return Err(Miss::Failed("what was read is not what was written".to_owned()));
    }
    Ok(vec![figure("write", write, write_limit), figure("read", read, read_limit)])
}

/// A copy of the driver's own, where the device is a GPU of the CUDA driver.
fn raw(device: &dyn Device, way: RawCopy<'_>, sizes: Sizes) -> Measuring<Option<Limit>> {
    let Some(cuda) = device.as_any().downcast_ref::<CudaDevice>() else { return Ok(None) };
    let copy = || cuda.raw_copy(way, sizes.copy_bytes).map(micros);
    copy().map_err(failed)?; // the first one finds everything cold
    let times = (0..sizes.runs.max(1)).map(|_| copy()).collect::<Result<Vec<_>, _>>();
    let times = Times::of(times.map_err(failed)?);
    Ok(times.map(|times| Limit { what: "a copy of the driver's".to_owned(), times }))
}

/// Digests a state so large that its offsets take more than 32 bits, and looks for a mark near its end.
pub(super) fn digests(device: &dyn Device, on: &str, sizes: Sizes) -> Measuring<Vec<Figure>> {
    let bytes = sizes.digest_bytes;
    let instance = create(device, bytes)?;
    let mark_at = bytes - CHUNK_BYTES / 2;
    instance.write_state(mark_at, &MARK.to_le_bytes()).map_err(failed)?;
    let mut digests = Vec::new();
    let ours = Times::measure(sizes.runs, || {
        digests = instance.chunk_digests(CHUNK_BYTES)?;
        Ok(())
    });
    let ours = ours.map_err(|error: TransferError| failed(error))?;
    let mut chunk = vec![0; usize::try_from(CHUNK_BYTES / 4).map_err(failed)?];
    let zeros = chunk_digest(&chunk);
    let middle = chunk.len() / 2;
    chunk[middle] = MARK;
    let marked = chunk_digest(&chunk);
    let is_right = digests.split_last().is_some_and(|(last, others)| {
        *last == marked && others.iter().all(|other| *other == zeros)
    });
    if !is_right || digests.len() as u64 != bytes / CHUNK_BYTES {
        return Err(Miss::Failed("digests are not those of what was written".to_owned()));
    }
    Ok(vec![Figure {
        what: format!("digests of {} MiB of state", bytes >> 20),
        on: on.to_owned(),
        quantity: Quantity::Bytes(bytes),
        ours,
        limit: None,
    }])
}

/// Copies a whole state from one device to the other without the host, where they offer it.
pub(super) fn between(
    devices: &[Arc<dyn Device>],
    places: [usize; 2],
    on: &str,
    sizes: Sizes,
) -> Measuring<Vec<Figure>> {
    let [from, to] = places.map(|place| &*devices[place]);
    let peer = from.peer_copy().filter(|peer| peer.reaches(to));
    let Some(peer) = peer else {
        return Err(Miss::LeftOut("they do not copy to each other directly".to_owned()));
    };
    let bytes = sizes.copy_bytes;
    let (source, target) = (create(from, bytes)?, create(to, bytes)?);
    let content = pattern(bytes)?;
    source.write_state(0, &content).map_err(failed)?;
    let copy = || peer.copy_state(&*source, &*target, 0, bytes);
    let ours = Times::measure(sizes.runs, copy).map_err(failed)?;
    let words: Vec<u32> = words_of(&content).collect();
    let arrived = target.chunk_digests(CHUNK_BYTES).map_err(failed)?;
    if arrived != state_digests(&words, CHUNK_BYTES) {
        return Err(Miss::Failed("what arrived is not what was there".to_owned()));
    }
    Ok(vec![Figure {
        what: format!("copy from device to device, {} MiB of state", bytes >> 20),
        on: on.to_owned(),
        quantity: Quantity::Bytes(bytes),
        ours,
        limit: match to.as_any().downcast_ref() {
            Some(to) => raw(from, RawCopy::To(to), sizes)?,
            None => None,
        },
    }])
}

/// An instance with so much state, or why there is no room for it.
pub(super) fn create(device: &dyn Device, bytes: u64) -> Measuring<Arc<dyn KernelInstance>> {
    let available = device.memory().map_err(failed)?.available_bytes;
    let most = device.limits().max_state_bytes.min(available);
    if most < bytes + bytes / 8 {
        let name = &device.info().name;
        return Err(Miss::LeftOut(format!("{name} has room for {most} bytes, not for {bytes}")));
    }
    let compiled = device.compile(&counter()).map_err(failed)?;
    let request =
        InstanceRequest { parameters: &[], state_bytes: bytes, initial: InitialState::Zeroed };
    device.create_instance(&compiled, &request).map_err(failed)
}

/// Bytes that no two words of share, so that what went astray is seen.
pub(super) fn pattern(bytes: u64) -> Measuring<Vec<u8>> {
    let words = u32::try_from(bytes / 4).map_err(failed)?;
    Ok((0..words).flat_map(|word| word.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect())
}

fn words_of(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|word| u32::from_le_bytes(*word))
}
