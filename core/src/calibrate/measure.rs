//! The transfers, timed.

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{CalibrationOptions, Measured, Outcome, PairCalibration, SizeTime, Way};
use crate::device::{Device, InitialState, InstanceRequest, KernelInstance, PeerCopy};
use crate::error::TransferError;
use crate::program::Program;
use crate::programs::counter;

/// Bytes of a word: the least that can be read.
const WORD_BYTES: usize = 4;

/// Digests over chunks of this size tell whether what arrived is what was sent.
const DIGEST_CHUNK_BYTES: u64 = 1 << 20;

type Instance = Arc<dyn KernelInstance>;

/// A device with its place in the list.
type Placed<'a> = (usize, &'a dyn Device);

/// Device to host and host to device.
pub(super) fn with_host(
    at: usize,
    device: &dyn Device,
    program: &Arc<Program>,
    options: &CalibrationOptions,
) -> (Outcome, Outcome) {
    let placed = (at, device);
    let prepared = sizes(&[placed], options).and_then(|sizes| {
        let buffer = pattern(largest(&sizes));
        let instance = create(placed, program, InitialState::Zeroed, largest(&sizes))?;
        Ok((sizes, buffer, instance))
    });
    let (sizes, mut buffer, instance) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return (Outcome::Failed { error: error.clone() }, Outcome::Failed { error }),
    };
    let sent = buffer.clone();
    // Writing comes first: what is read afterwards must be what was written.
    let from_host =
        time(&sizes, options, &mut |bytes| instance.write_state(0, &sent[..bytes]), &mut || {
            settle(&*instance)
        });
    let to_host = time(
        &sizes,
        options,
        &mut |bytes| instance.read_state(0, &mut buffer[..bytes]),
        &mut || Ok(()),
    );
    let is_same = from_host.is_err() || buffer == sent;
    let to_host = to_host.map_err(|error| failed(placed, "reading its state", error));
    let to_host = to_host.and_then(|measured| {
        let changed = || failed(placed, "reading its state", CHANGED);
        if is_same { Ok(measured) } else { Err(changed()) }
    });
    let from_host = from_host.map_err(|error| failed(placed, "writing its state", error));
    (outcome(to_host), outcome(from_host))
}

/// One device to another.
pub(super) fn pair(
    [source, target]: [Placed<'_>; 2],
    program: &Arc<Program>,
    options: &CalibrationOptions,
) -> PairCalibration {
    let (from, to) = (source.0, target.0);
    let peer = source.1.peer_copy().filter(|peer| peer.reaches(target.1));
    let mut entry = PairCalibration {
        from,
        to,
        way: if peer.is_some() { Way::PeerCopy } else { Way::ThroughHost },
        peer_error: None,
        outcome: Outcome::NotMeasured,
    };
    let prepared = sizes(&[source, target], options).and_then(|sizes| {
        let buffer = pattern(largest(&sizes));
        let here = create(source, program, InitialState::Bytes(&buffer), largest(&sizes))?;
        Ok((sizes, buffer, here))
    });
    let (sizes, buffer, here) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            entry.outcome = Outcome::Failed { error };
            return entry;
        }
    };
    let ends = Ends { source, target, program, sizes, here, options };
    if let Some(peer) = peer {
        match ends.by_peer(peer) {
            Ok(measured) => {
                entry.outcome = Outcome::Measured(measured);
                return entry;
            }
            // A migration would go on through the host, too.
            Err(error) => entry.peer_error = Some(error),
        }
        entry.way = Way::ThroughHost;
    }
    entry.outcome = outcome(ends.through_host(buffer));
    entry
}

const CHANGED: &str = "what arrived is not what was sent; do not use this way";

/// The two ends of transfers, with a state at the source.
struct Ends<'a> {
    source: Placed<'a>,
    target: Placed<'a>,
    program: &'a Arc<Program>,
    sizes: Vec<usize>,
    here: Instance,
    options: &'a CalibrationOptions,
}

impl Ends<'_> {
    fn by_peer(&self, peer: &dyn PeerCopy) -> Result<Measured, String> {
        let there = self.twin()?;
        let what = "copying from it to its peer";
        let mut copy = |bytes: usize| {
            peer.copy_state(&*self.here, &*there, 0, u64::try_from(bytes).unwrap_or(u64::MAX))
        };
        let measured = time(&self.sizes, self.options, &mut copy, &mut || settle(&*there))
            .map_err(|error| failed(self.source, what, error))?;
        self.compare(&*there, what)?;
        Ok(measured)
    }

    fn through_host(&self, mut buffer: Vec<u8>) -> Result<Measured, String> {
        let there = self.twin()?;
        // So that only what is read can arrive.
        buffer.fill(0);
        let mut reading = true;
        let mut transfer = |bytes: usize| {
            reading = true;
            self.here.read_state(0, &mut buffer[..bytes])?;
            reading = false;
            there.write_state(0, &buffer[..bytes])
        };
        let measured = time(&self.sizes, self.options, &mut transfer, &mut || settle(&*there));
        let measured = measured.map_err(|error| match reading {
            true => failed(self.source, "reading its state", error),
            false => failed(self.target, "writing its state", error),
        })?;
        self.compare(&*there, "writing its state")?;
        Ok(measured)
    }

    fn twin(&self) -> Result<Instance, String> {
        create(self.target, self.program, InitialState::Zeroed, largest(&self.sizes))
    }

    fn compare(&self, there: &dyn KernelInstance, what: &str) -> Result<(), String> {
        let digests = |of: Placed<'_>, instance: &dyn KernelInstance| {
            let found = instance.chunk_digests(DIGEST_CHUNK_BYTES);
            found.map_err(|error| failed(of, "computing digests", error))
        };
        if digests(self.source, &*self.here)? == digests(self.target, there)? {
            return Ok(());
        }
        let to = format!("{what} (to {})", name(self.target));
        Err(failed(self.source, &to, CHANGED))
    }
}

/// The sizes for which all of the devices have room, in bytes, ascending.
fn sizes(devices: &[Placed<'_>], options: &CalibrationOptions) -> Result<Vec<usize>, String> {
    let least = counter::STATE_WORDS * WORD_BYTES;
    let mut room = u64::MAX;
    for &(at, device) in devices {
        let memory =
            device.memory().map_err(|error| failed((at, device), "asking for memory", error))?;
        // Another instance may be on the same memory, and programs need some beside their state.
        room = room.min(device.limits().max_state_bytes).min(memory.available_bytes / 4);
    }
    let whole = |bytes: u64| {
        let bytes = usize::try_from(bytes).ok()?.max(least);
        bytes.checked_next_multiple_of(WORD_BYTES)
    };
    let mut sizes: Vec<usize> = options.sizes_bytes.iter().copied().filter_map(whole).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let has_room = |size: &usize| u64::try_from(*size).is_ok_and(|size| size <= room);
    sizes.retain(has_room);
    if sizes.is_empty() {
        let names: Vec<String> = devices.iter().map(|&device| name(device)).collect();
        return Err(format!(
            "{}: no room to measure with, {room} bytes are left; free kernels, or choose smaller \
             sizes",
            names.join(" and ")
        ));
    }
    Ok(sizes)
}

fn largest(sizes: &[usize]) -> usize {
    sizes.last().copied().unwrap_or(0)
}

/// Bytes of which no two words that are near each other are equal, and none is zero.
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| u8::try_from((at / WORD_BYTES) % 251).unwrap_or(0) | 1).collect()
}

fn create(
    placed: Placed<'_>,
    program: &Arc<Program>,
    initial: InitialState<'_>,
    bytes: usize,
) -> Result<Instance, String> {
    let state_bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    let compiled = placed.1.compile(program);
    let compiled = compiled.map_err(|error| failed(placed, "compiling the test program", error))?;
    let request = InstanceRequest { parameters: &[], state_bytes, initial };
    let created = placed.1.create_instance(&compiled, &request);
    created.map_err(|error| failed(placed, "making a test state", error))
}

/// Whether a transfer has arrived is certain once a word of it can be read.
fn settle(instance: &dyn KernelInstance) -> Result<(), TransferError> {
    instance.read_state(0, &mut [0; WORD_BYTES])
}

/// Times transfers of each size. A sample ends when all of its transfers have arrived.
fn time(
    sizes: &[usize],
    options: &CalibrationOptions,
    transfer: &mut dyn FnMut(usize) -> Result<(), TransferError>,
    settle: &mut dyn FnMut() -> Result<(), TransferError>,
) -> Result<Measured, TransferError> {
    let mut measured = Vec::with_capacity(sizes.len());
    for &bytes in sizes {
        // The first transfer makes buffers and mappings that later ones use again.
        transfer(bytes)?;
        settle()?;
        let mut samples = Vec::new();
        let mut transfers = 0;
        for _ in 0..options.samples.max(1) {
            let (count, elapsed) = sample(bytes, options.least_time, transfer, settle)?;
            transfers += u64::from(count);
            samples.push(elapsed.as_secs_f64() * 1e6 / f64::from(count));
        }
        let median_us = median(samples);
        measured.push(SizeTime { bytes: bytes as u64, median_us, transfers });
    }
    Ok(Measured { sizes: measured })
}

/// Transfers until the least time has passed, at least one; and the time that they took.
fn sample(
    bytes: usize,
    least_time: Duration,
    transfer: &mut dyn FnMut(usize) -> Result<(), TransferError>,
    settle: &mut dyn FnMut() -> Result<(), TransferError>,
) -> Result<(u32, Duration), TransferError> {
    let start = Instant::now();
    let mut count = 0;
    while count == 0 || (start.elapsed() < least_time && count < u32::MAX) {
        transfer(bytes)?;
        count += 1;
    }
    settle()?;
    // A clock may stand still for a short transfer, and no transfer takes no time.
    Ok((count, start.elapsed().max(Duration::from_nanos(1))))
}

/// The middle one; of an even number the upper of the two.
fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(0.0)
}

fn name((at, device): Placed<'_>) -> String {
    format!("device {at} ({})", device.info().name)
}

fn failed(placed: Placed<'_>, what: &str, error: impl Display) -> String {
    format!("{}, {what}: {error}", name(placed))
}

fn outcome(result: Result<Measured, String>) -> Outcome {
    match result {
        Ok(measured) => Outcome::Measured(measured),
        Err(error) => Outcome::Failed { error },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_sample_counts() {
        assert_eq!(median(vec![9.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0]), 4.0);
    }

    #[test]
    fn a_pattern_has_no_zeros_and_changes_from_word_to_word() {
        let bytes = pattern(1 << 12);
        assert!(bytes.iter().all(|&byte| byte != 0));
        assert_ne!(bytes[..4], bytes[8..12]);
    }

    #[test]
    fn figures_have_their_units() {
        let size = SizeTime { bytes: 1_000_000_000, median_us: 500_000.0, transfers: 1 };
        assert_eq!(size.gb_per_s(), 2.0);
        let small = SizeTime { bytes: 4, median_us: 3.5, transfers: 9 };
        let measured = Measured { sizes: vec![small, size] };
        assert_eq!((measured.latency_us(), measured.bandwidth_gb_per_s()), (3.5, 2.0));
    }
}
