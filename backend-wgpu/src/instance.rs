//! A kernel's parameters, state and boxes on a device.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hopwise_core::abi::{padded_parameters, words_to_bytes};
use hopwise_core::device::{InitialState, InstanceRequest, KernelInstance};
use hopwise_core::error::{
    CompileError, DeviceError, InstanceError, TransferError, check_chunk_bytes, check_range,
};
use hopwise_core::implementing::{Activity, Held, Ongoing, Reservation, Work};

use crate::core::DeviceCore;
use crate::digester::{BoundState, Digester};
use crate::driver::Driver;
use crate::prelude::{FIRST_SEGMENT_BINDING, INSTANCE_HEADER_WORDS, parameter_vectors};
use crate::program::{Pipelines, WgpuProgram};
use crate::segmented::Segmented;

/// One kernel on a device.
pub(crate) struct WgpuInstance {
    pub(crate) core: Arc<DeviceCore>,
    pub(crate) program: Arc<WgpuProgram>,
    pub(crate) pipelines: Arc<Pipelines>,
    pub(crate) bind_group: Held<wgpu::BindGroup>,
    pub(crate) boxes: Held<wgpu::Buffer>,
    pub(crate) parameters: Vec<u32>,
    segments: Vec<Held<wgpu::Buffer>>,
    /// The segments as the digester binds them, once they were.
    digest_segments: OnceLock<Vec<Held<wgpu::BindGroup>>>,
    activity: Activity,
    state_bytes: u64,
    _memory: Reservation,
}

/// Bytes of everything that an instance has on the device.
fn instance_bytes(program: &WgpuProgram, state_bytes: u64) -> u64 {
    let block = INSTANCE_HEADER_WORDS + parameter_vectors(&program.program) * 4;
    state_bytes.saturating_add((program.boxes.whole + block) as u64 * 4)
}

impl WgpuInstance {
    /// Creates buffers and fills the state. The size has been checked.
    pub(crate) fn create(
        program: Arc<WgpuProgram>,
        request: &InstanceRequest<'_>,
    ) -> Result<Self, InstanceError> {
        let core = Arc::clone(&program.core);
        let bytes = instance_bytes(&program, request.state_bytes);
        let memory = core.quota.reserve(bytes)?;
        let pipelines = program.pipelines(core.limits.segments(request.state_bytes));
        let pipelines = pipelines.map_err(device_error)?;
        let parameters = parameter_block(&program, request.parameters);
        let built = build(&program, &pipelines, &parameters, request.state_bytes);
        let built = built.map_err(|error| with_size(error, bytes))?;
        let instance = Self {
            bind_group: built.bind_group,
            boxes: built.boxes,
            segments: built.segments,
            core,
            program,
            pipelines,
            parameters,
            digest_segments: OnceLock::new(),
            activity: Activity::default(),
            state_bytes: request.state_bytes,
            _memory: memory,
        };
        if let InitialState::Bytes(bytes) = request.initial {
            debug_assert_eq!(bytes.len() as u64, request.state_bytes, "the state is whole");
            instance.core.transfers.write(instance.driver(), instance.segmented(), 0, bytes)?;
        }
        Ok(instance)
    }

    /// Begins a step: waits for a transfer or another step, at most so long.
    pub(crate) fn begin_step(&self, wait: Duration) -> Result<Ongoing<'_>, TransferError> {
        self.activity.begin(Work::Step, self.driver().health(), wait)
    }

    fn driver(&self) -> &Driver {
        &self.core.driver
    }

    fn segmented(&self) -> Segmented<'_> {
        let segment_bytes = self.core.limits.segment_bytes();
        Segmented { buffers: &self.segments, segment_bytes }
    }

    fn begin_transfer(&self) -> Result<Ongoing<'_>, TransferError> {
        self.activity.begin(Work::Transfer, self.driver().health(), self.core.transfer_wait)
    }

    fn digest_segments(&self) -> Result<&[Held<wgpu::BindGroup>], DeviceError> {
        if let Some(known) = self.digest_segments.get() {
            return Ok(known);
        }
        let bound = self.core.digester.bind(self.driver(), &self.segments)?;
        Ok(self.digest_segments.get_or_init(|| bound))
    }
}

impl KernelInstance for WgpuInstance {
    fn state_bytes(&self) -> u64 {
        self.state_bytes
    }

    fn read_state(&self, offset_bytes: u64, into: &mut [u8]) -> Result<(), TransferError> {
        self.driver().check()?;
        check_range(offset_bytes, into.len() as u64, self.state_bytes)?;
        let _ongoing = self.begin_transfer()?;
        Ok(self.core.transfers.read(self.driver(), self.segmented(), offset_bytes, into)?)
    }

    fn write_state(&self, offset_bytes: u64, from: &[u8]) -> Result<(), TransferError> {
        self.driver().check()?;
        check_range(offset_bytes, from.len() as u64, self.state_bytes)?;
        let _ongoing = self.begin_transfer()?;
        Ok(self.core.transfers.write(self.driver(), self.segmented(), offset_bytes, from)?)
    }

    /// Steps of the instance can run between parts of a large state: each chunk is digested as a
    /// whole.
    fn chunk_digests(&self, chunk_bytes: u64) -> Result<Vec<u64>, TransferError> {
        self.driver().check()?;
        check_chunk_bytes(chunk_bytes)?;
        let bytes = self.state_bytes;
        let state = BoundState { segments: self.digest_segments()?, bytes, chunk_bytes };
        let mut digests = Vec::new();
        for part in Digester::parts(bytes, chunk_bytes) {
            let _ongoing = self.begin_transfer()?;
            self.core.digester.digest(self.driver(), state, part, &mut digests)?;
        }
        Ok(digests)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Prints the program's name and the size of the state, not its content.
impl fmt::Debug for WgpuInstance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("WgpuInstance")
            .field("program", &self.program.program.name())
            .field("state_bytes", &self.state_bytes)
            .finish_non_exhaustive()
    }
}

/// The driver's objects of an instance.
struct Built {
    segments: Vec<Held<wgpu::Buffer>>,
    boxes: Held<wgpu::Buffer>,
    bind_group: Held<wgpu::BindGroup>,
}

fn build(
    program: &WgpuProgram,
    pipelines: &Pipelines,
    parameters: &[u32],
    state_bytes: u64,
) -> Result<Built, DeviceError> {
    use wgpu::BufferUsages as Usage;
    let (core, name) = (&program.core, program.program.name());
    let driver = &core.driver;
    let usage = Usage::STORAGE | core.transfers.usage();
    let segment_bytes = core.limits.segment_bytes();
    let segments = (0..state_bytes.div_ceil(segment_bytes))
        .map(|segment| segment_bytes.min(state_bytes - segment * segment_bytes))
        .map(|bytes| driver.create_buffer(name, bytes, usage))
        .collect::<Result<Vec<_>, _>>()?;
    let usage = Usage::STORAGE | Usage::COPY_SRC | Usage::COPY_DST;
    let boxes = driver.create_buffer(name, program.boxes.whole as u64 * 4, usage)?;
    let block = instance_block(program, parameters, state_bytes);
    let usage = Usage::UNIFORM | Usage::COPY_DST;
    let uniform = driver.create_buffer(name, block.len() as u64, usage)?;
    let buffers = [&uniform, &boxes].into_iter().chain(&segments);
    let entries: Vec<_> = (0..FIRST_SEGMENT_BINDING + pipelines_segments(&segments))
        .zip(buffers)
        .map(|(binding, buffer)| wgpu::BindGroupEntry {
            binding,
            resource: buffer.as_entire_binding(),
        })
        .collect();
    let bind_group = driver.call(|handles| {
        handles.queue.write_buffer(&uniform, 0, &block);
        handles.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(name),
            layout: &pipelines.bind_group_layout,
            entries: &entries,
        })
    })?;
    drop(entries);
    Ok(Built { segments, boxes, bind_group: Held::new(bind_group, driver.health()) })
}

fn pipelines_segments(segments: &[Held<wgpu::Buffer>]) -> u32 {
    u32::try_from(segments.len()).expect("segments are few")
}

/// The bytes of the prelude's `hw_Instance`.
fn instance_block(program: &WgpuProgram, parameters: &[u32], state_bytes: u64) -> Vec<u8> {
    let state_words = u32::try_from(state_bytes / 4).expect("the size of a state is checked");
    let parameter_words = u32::try_from(parameters.len()).expect("parameters are few");
    let mut words = vec![state_words, parameter_words, 0, 0];
    words.extend_from_slice(parameters);
    words.resize(INSTANCE_HEADER_WORDS + parameter_vectors(&program.program) * 4, 0);
    let mut bytes = vec![0; words.len() * 4];
    words_to_bytes(&words, &mut bytes);
    bytes
}

/// Parameters filled up to what the program declares, then padded.
fn parameter_block(program: &WgpuProgram, parameters: &[u32]) -> Vec<u32> {
    let declared = program.program.parameter_words() as usize;
    debug_assert!(parameters.len() <= declared.max(4), "parameters are counted before");
    let mut block = parameters.to_vec();
    block.resize(declared, 0);
    padded_parameters(&block)
}

/// The program was compiled before, so what fails now is the device.
fn device_error(error: CompileError) -> DeviceError {
    match error {
        CompileError::Device(error) => error,
        other => DeviceError::Driver { message: other.to_string() },
    }
}

/// Says how large the instance was to be, when the driver has no memory for a part without a size.
fn with_size(error: DeviceError, instance_bytes: u64) -> DeviceError {
    match error {
        DeviceError::OutOfMemory { requested_bytes: 0, available_bytes } => {
            DeviceError::OutOfMemory { requested_bytes: instance_bytes, available_bytes }
        }
        other => other,
    }
}
