//! What is said of the steps of a batch in which something fails, at each place where it can.

use hopwise_core::abi::{inbox, outbox};
use hopwise_core::device::{Device, InitialState, InstanceRequest};
use hopwise_core::program::{Grid, Program};
use wgpu::BufferUsages as Usage;

use super::*;
use crate::{WgpuBackend, WgpuDevice, WgpuOptions};

/// A kernel that counts its steps, with the buffers that its batches use.
struct Counter {
    device: Arc<WgpuDevice>,
    program: Arc<Program>,
    instance: Arc<dyn KernelInstance>,
    buffers: BatchBuffers,
}

impl Counter {
    /// Says so where there is no adapter.
    fn open() -> Option<Self> {
        let device = WgpuBackend::new(WgpuOptions::new().with_memory_bytes(1 << 20)).open_wgpu(0);
        let device = device.inspect_err(|error| eprintln!("not tried: {error}")).ok()?;
        let wgsl = "@compute @workgroup_size(1) fn main() { hw_set_state(0u, hw_state(0u) + 1u); }";
        let program = Program::builder("count").pass("main", Grid::Fixed(1)).wgsl(wgsl);
        let program = program.build().unwrap();
        let compiled = device.compile(&program).unwrap();
        let request =
            InstanceRequest { parameters: &[], state_bytes: 4, initial: InitialState::Zeroed };
        let instance = device.create_instance(&compiled, &request).unwrap();
        Some(Self { device, program, instance, buffers: BatchBuffers::default() })
    }

    /// Runs one step.
    fn step(&self) -> (Result<(), DeviceError>, StepOutcome) {
        let (mut inbox, mut outbox) = (Vec::new(), Vec::new());
        inbox::begin(&mut inbox, self.program.inbox_slot_words(), 1, true);
        outbox::begin(&mut outbox, &self.program);
        let mut steps = [Step::new(Arc::clone(&self.instance), inbox, outbox)];
        let result = run(&self.device.core, &self.buffers, &mut steps);
        (result, steps[0].outcome.clone())
    }

    /// Makes the next batch use buffers that may be used for this only.
    fn put(&self, upload: Usage, download: Usage) {
        let driver = &self.device.core.driver;
        let descriptor = wgpu::BufferDescriptor {
            label: None,
            size: SMALLEST_BYTES,
            usage: upload,
            mapped_at_creation: true,
        };
        let upload = driver.call(|handles| handles.device.create_buffer(&descriptor)).unwrap();
        let upload = Held::new(upload, driver.health());
        let download = driver.create_buffer("download", SMALLEST_BYTES, download).unwrap();
        self.buffers.put(Pair { upload, download, scratch: Vec::new() });
    }

    fn count(&self) -> u32 {
        let mut bytes = [0; 4];
        self.instance.read_state(0, &mut bytes).unwrap();
        u32::from_le_bytes(bytes)
    }
}

const UPLOAD: Usage = Usage::MAP_WRITE.union(Usage::COPY_SRC);
const DOWNLOAD: Usage = Usage::MAP_READ.union(Usage::COPY_DST);

#[track_caller]
fn assert_driver_error(result: &Result<(), DeviceError>) {
    assert!(matches!(result, Err(DeviceError::Driver { .. })), "{result:?}");
}

#[test]
fn an_error_that_no_call_raised_fails_no_call_and_is_kept() {
    let Some(counter) = Counter::open() else { return };
    let driver = &counter.device.core.driver;
    let buffer = driver.create_buffer("not mapped", 16, DOWNLOAD).unwrap();
    assert_eq!(counter.device.stray_error(), None);
    buffer.unmap(); // outside of any scope
    let stray = counter.device.stray_error().expect("wgpu has reported it");
    assert!(stray.contains("not mapped"), "{stray}");
    assert_eq!(counter.step(), (Ok(()), StepOutcome::Applied));
    assert_eq!(counter.count(), 1);
    assert!(counter.device.memory().is_ok());
    assert_eq!(counter.device.stray_error(), Some(stray), "it is kept for who asks");
}

#[test]
fn what_fails_before_the_driver_has_the_commands_leaves_steps_not_started() {
    let Some(counter) = Counter::open() else { return };
    // Nothing may be copied into the download: the commands are refused while they are written.
    counter.put(UPLOAD, Usage::MAP_READ);
    let (result, outcome) = counter.step();
    assert_driver_error(&result);
    assert_eq!((outcome, counter.count()), (StepOutcome::NotStarted, 0));
    // A download that is mapped: the submission is refused.
    counter.put(UPLOAD, DOWNLOAD);
    {
        let spare = counter.buffers.spare.lock();
        let download = &spare.as_ref().unwrap().download;
        counter.device.core.driver.map_idle(download, wgpu::MapMode::Read, 0..8).unwrap();
    }
    let (result, outcome) = counter.step();
    assert_driver_error(&result);
    assert_eq!((outcome, counter.count()), (StepOutcome::NotStarted, 0));
    assert_eq!(counter.step(), (Ok(()), StepOutcome::Applied));
    assert_eq!(counter.count(), 1);
}

#[test]
fn what_fails_after_the_submission_leaves_steps_unknown() {
    let Some(counter) = Counter::open() else { return };
    counter.put(UPLOAD, Usage::COPY_DST); // what was sent cannot be read
    let (result, outcome) = counter.step();
    assert_driver_error(&result);
    assert_eq!(outcome, StepOutcome::Unknown);
    assert_eq!(counter.count(), 1, "it is not to be run again: it has run");
}

#[test]
fn what_fails_after_the_results_are_read_leaves_steps_applied() {
    let Some(counter) = Counter::open() else { return };
    counter.put(Usage::COPY_SRC, DOWNLOAD); // it cannot be mapped for another batch
    assert_eq!(counter.step(), (Ok(()), StepOutcome::Applied));
    assert!(counter.device.stray_error().is_some());
    let buffers = counter.device.buffers_created();
    assert_eq!(counter.step(), (Ok(()), StepOutcome::Applied));
    assert_eq!(counter.device.buffers_created(), buffers + 2, "the buffers were let go");
    assert_eq!(counter.count(), 2);
}
