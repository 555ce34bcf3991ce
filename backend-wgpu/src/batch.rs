//! A batch of steps: one upload, one submission, one read-back.
//!
//! What a kernel receives and what it sends lie in a block of its own on the device. A batch writes
//! every inbox into one mapped buffer, and one submission copies each to its kernel, dispatches the
//! passes, and copies every outbox into one buffer that the host reads. Pass by pass, all kernels
//! share a compute pass: so the driver puts one barrier between passes, and kernels run beside each
//! other within.

use std::sync::Arc;
use std::time::Instant;

use hopwise_core::abi::{HEADER_WORDS, bytes_to_words, words_to_bytes};
use hopwise_core::device::{KernelInstance, Step, StepOutcome};
use hopwise_core::error::{DeviceError, StepFault, TransferError};
use hopwise_core::implementing::Held;
use parking_lot::Mutex;

use crate::core::DeviceCore;
use crate::driver::{Driver, Handles};
use crate::grid::{MAX_INVOCATIONS, fold};
use crate::instance::WgpuInstance;
use crate::mapping::{Mapping, map_error};
use hopwise_core::implementing::Ongoing;
use hopwise_core::implementing::invocations;

#[cfg(test)]
mod tests;

/// Smallest buffer of a batch: 64 KiB.
const SMALLEST_BYTES: u64 = 64 << 10;

/// The buffers of batches, while no batch uses them.
#[derive(Debug, Default)]
pub(crate) struct BatchBuffers {
    spare: Mutex<Option<Pair>>,
}

#[derive(Debug)]
struct Pair {
    /// Mapped between batches.
    upload: Held<wgpu::Buffer>,
    download: Held<wgpu::Buffer>,
    /// Holds one kernel's boxes as bytes, on their way.
    scratch: Vec<u8>,
}

/// One step of a batch.
struct Planned<'a> {
    /// Its place in the batch.
    position: usize,
    instance: &'a WgpuInstance,
    messages: u32,
    /// Where what the kernel receives lies in the upload.
    upload: Range,
    /// Where what it sends lies in the download.
    download: Range,
    _ongoing: Ongoing<'a>,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    at: u64,
    length: u64,
}

impl Range {
    /// The next range of a buffer that is filled up to `end`.
    fn next(end: &mut u64, words: usize) -> Self {
        let range = Self { at: *end, length: words as u64 * 4 };
        *end += range.length;
        range
    }

    fn indices(self) -> std::ops::Range<usize> {
        let index = |bytes: u64| usize::try_from(bytes).expect("a batch lies in memory");
        index(self.at)..index(self.at + self.length)
    }
}

/// Runs one step of every instance named; all have been found to be of this device.
///
/// What fails before the driver has the commands leaves the steps not started. Once it can have
/// begun them they are unknown, until what they sent has been read.
pub(crate) fn run(
    core: &DeviceCore,
    buffers: &BatchBuffers,
    steps: &mut [Step],
) -> Result<(), DeviceError> {
    let driver = &core.driver;
    let instances: Vec<Arc<dyn KernelInstance>> =
        steps.iter().map(|step| Arc::clone(&step.instance)).collect();
    let Plan { planned, upload_bytes, download_bytes, busy } = plan(core, &instances, steps)?;
    if planned.is_empty() {
        return busy.map_or(Ok(()), Err);
    }
    let mut pair = buffers.take(driver, upload_bytes, download_bytes)?;
    pair.fill(&planned, steps, upload_bytes)?;
    let commands = driver.call(|handles| encode(handles, &pair, &planned))?;
    let index = driver.submit(commands).map_err(|failed| {
        if failed.can_have_begun {
            mark(&planned, steps, &StepOutcome::Unknown);
        }
        failed.error
    })?;
    mark(&planned, steps, &StepOutcome::Unknown);
    let map = |buffer: &wgpu::Buffer, mode| driver.call(|_| Mapping::of(buffer.slice(..), mode));
    let download = map(&pair.download, wgpu::MapMode::Read)?;
    let upload = map(&pair.upload, wgpu::MapMode::Write);
    driver.wait_for_batch(index, &[&download])?;
    pair.read(&planned, steps, download_bytes)?;
    mark(&planned, steps, &StepOutcome::Applied);
    // The steps are done. What fails now costs these buffers, unless it is the device.
    match upload.and_then(|upload| pair.make_ready(driver, &upload)) {
        Ok(()) => buffers.put(pair),
        Err(error) if error.is_fatal() => return Err(error),
        Err(error) => driver.note_stray(&error),
    }
    busy.map_or(Ok(()), Err)
}

fn mark(planned: &[Planned<'_>], steps: &mut [Step], outcome: &StepOutcome) {
    for planned in planned {
        steps[planned.position].outcome = outcome.clone();
    }
}

/// The steps of a batch that can run, and where their boxes lie.
struct Plan<'a> {
    planned: Vec<Planned<'a>>,
    upload_bytes: u64,
    download_bytes: u64,
    /// Why a step could not begin; the others run without it.
    busy: Option<DeviceError>,
}

/// Begins every step and gives it a place in the buffers. A step that cannot run stops its kernel
/// alone, one whose state is being read or written for too long is left out of the batch.
fn plan<'a>(
    core: &DeviceCore,
    instances: &'a [Arc<dyn KernelInstance>],
    steps: &mut [Step],
) -> Result<Plan<'a>, DeviceError> {
    let started = Instant::now();
    let (mut upload_bytes, mut download_bytes) = (0, 0);
    let mut planned = Vec::with_capacity(steps.len());
    let mut busy = None;
    for (position, (instance, step)) in instances.iter().zip(steps).enumerate() {
        let instance = instance.as_any().downcast_ref::<WgpuInstance>();
        let instance = instance.expect("instances were checked before the batch");
        let messages = step.inbox[0];
        if let Some(fault) = too_large(instance, messages) {
            step.outcome = StepOutcome::Faulted(fault);
            continue;
        }
        let ongoing =
            match instance.begin_step(core.transfer_wait.saturating_sub(started.elapsed())) {
                Ok(ongoing) => ongoing,
                Err(TransferError::Device(error)) => return Err(error),
                Err(error) => {
                    let message = format!("step {position} of the batch could not begin: {error}");
                    busy = Some(DeviceError::Driver { message });
                    continue;
                }
            };
        planned.push(Planned {
            position,
            instance,
            messages,
            upload: Range::next(&mut upload_bytes, HEADER_WORDS + step.inbox.len()),
            download: Range::next(&mut download_bytes, instance.program.boxes.fetched_words()),
            _ongoing: ongoing,
        });
    }
    Ok(Plan { planned, upload_bytes, download_bytes, busy })
}

/// A grid that no device can index.
fn too_large(instance: &WgpuInstance, messages: u32) -> Option<StepFault> {
    for pass in instance.program.program.passes() {
        let wanted = instance.invocations(pass.grid, messages);
        if wanted > MAX_INVOCATIONS {
            let message = format!(
                "pass `{}` asks for {wanted} invocations, {MAX_INVOCATIONS} are possible; use \
                 several passes",
                pass.entry_point
            );
            return Some(StepFault::Device(DeviceError::Driver { message }));
        }
    }
    None
}

impl WgpuInstance {
    fn invocations(&self, grid: hopwise_core::program::Grid, messages: u32) -> u64 {
        invocations(grid, self.state_bytes(), &self.parameters, messages)
    }
}

impl BatchBuffers {
    /// Buffers of at least these sizes, each as large as any batch needed: batches that receive much
    /// and batches that send much can take turns without a buffer being created.
    fn take(&self, driver: &Driver, upload: u64, download: u64) -> Result<Pair, DeviceError> {
        use wgpu::BufferUsages as Usage;
        let size = |bytes: u64| bytes.next_power_of_two().max(SMALLEST_BYTES);
        let create_upload = || {
            let usage = Usage::MAP_WRITE | Usage::COPY_SRC;
            driver.create_mapped_buffer("hopwise inboxes", size(upload), usage)
        };
        let create_download = || {
            let usage = Usage::MAP_READ | Usage::COPY_DST;
            driver.create_buffer("hopwise outboxes", size(download), usage)
        };
        let spare = self.spare.lock().take();
        let Some(mut pair) = spare else {
            let (upload, download) = (create_upload()?, create_download()?);
            return Ok(Pair { upload, download, scratch: Vec::new() });
        };
        if pair.upload.size() < upload {
            pair.upload = create_upload()?;
        }
        if pair.download.size() < download {
            pair.download = create_download()?;
        }
        Ok(pair)
    }

    fn put(&self, pair: Pair) {
        let before = self.spare.lock().replace(pair);
        drop(before); // not under the lock: it calls the driver
    }
}

impl Pair {
    /// Writes the outbox's header and the inbox of every step.
    fn fill(
        &mut self,
        planned: &[Planned<'_>],
        steps: &[Step],
        bytes: u64,
    ) -> Result<(), DeviceError> {
        let view = self.upload.slice(..bytes).get_mapped_range_mut();
        let mut view = view.map_err(map_error)?;
        for planned in planned {
            let step = &steps[planned.position];
            self.scratch.resize(planned.upload.indices().len(), 0);
            let (header, inbox) = self.scratch.split_at_mut(HEADER_WORDS * 4);
            words_to_bytes(&step.outbox[..HEADER_WORDS], header);
            words_to_bytes(&step.inbox, inbox);
            view.slice(planned.upload.indices()).copy_from_slice(&self.scratch);
        }
        Ok(())
    }

    /// Reads what every step sent.
    fn read(
        &self,
        planned: &[Planned<'_>],
        steps: &mut [Step],
        bytes: u64,
    ) -> Result<(), DeviceError> {
        let view = self.download.slice(..bytes).get_mapped_range().map_err(map_error)?;
        for planned in planned {
            let fetched = &view[planned.download.indices()];
            let outbox = &mut steps[planned.position].outbox;
            let slots_end = planned.instance.program.boxes.outbox_slots * 4;
            let (slots, header) = fetched.split_at(slots_end);
            let (into_header, into_slots) = outbox.split_at_mut(HEADER_WORDS);
            bytes_to_words(header, into_header);
            let program = &planned.instance.program.program;
            let sent = into_header[0].min(program.outbox_slots()) as usize;
            let words = sent * program.outbox_slot_words();
            bytes_to_words(&slots[..words * 4], &mut into_slots[..words]);
        }
        Ok(())
    }

    /// Makes both buffers ready for the next batch.
    fn make_ready(&self, driver: &Driver, upload: &Mapping) -> Result<(), DeviceError> {
        if !upload.is_mapped() {
            driver.wait(&[upload])?;
        }
        driver.call(|_| self.download.unmap())
    }
}

fn encode(handles: &Handles, pair: &Pair, planned: &[Planned<'_>]) -> wgpu::CommandBuffer {
    pair.upload.unmap();
    let descriptor = wgpu::CommandEncoderDescriptor { label: Some("hopwise batch") };
    let mut encoder = handles.device.create_command_encoder(&descriptor);
    for Planned { instance, upload, .. } in planned {
        let header_at = instance.program.boxes.outbox_slots as u64 * 4;
        let (at, length) = (upload.at, upload.length);
        encoder.copy_buffer_to_buffer(&pair.upload, at, &instance.boxes, header_at, length);
    }
    let most_passes = planned.iter().map(|planned| planned.instance.pipelines.passes.len()).max();
    for pass in 0..most_passes.unwrap_or(0) {
        dispatch(&mut encoder, planned, pass);
    }
    for Planned { instance, download, .. } in planned {
        let (at, length) = (download.at, download.length);
        encoder.copy_buffer_to_buffer(&instance.boxes, 0, &pair.download, at, length);
    }
    encoder.finish()
}

/// Dispatches one pass of every kernel that has so many.
fn dispatch(encoder: &mut wgpu::CommandEncoder, planned: &[Planned<'_>], number: usize) {
    let mut compute = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    let mut set: Option<&wgpu::ComputePipeline> = None;
    for Planned { instance, messages, .. } in planned {
        let passes = instance.pipelines.passes.get(number);
        let Some((ready, pass)) = passes.zip(instance.program.program.passes().get(number)) else {
            continue;
        };
        let count = instance.invocations(pass.grid, *messages);
        let per_dimension = instance.core.limits.max_groups_per_dimension;
        let [x, y, z] = fold(count, ready.workgroup_size, per_dimension);
        if x == 0 {
            continue;
        }
        let pipeline: &wgpu::ComputePipeline = &ready.pipeline;
        if !set.is_some_and(|set| std::ptr::eq(set, pipeline)) {
            compute.set_pipeline(pipeline);
            set = Some(pipeline);
        }
        compute.set_bind_group(0, &*instance.bind_group, &[]);
        compute.dispatch_workgroups(x, y, z);
    }
}
