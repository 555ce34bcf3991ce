//! The same work written against wgpu, with nothing around it: what ours is measured by.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use wgpu::BufferUsages as Usage;

/// What a kernel receives and sends, as in the program of the bench: header and one message of six
/// words; sixteen slots of six words and a header.
const RECEIVED_BYTES: usize = 4 * (4 + 4 + 6);
const SENT_BYTES: usize = 4 * (16 * 6 + 4);

const SHADER: &str = "
struct Boxes {
    sent: array<u32, 96>,
    count: atomic<u32>, capacity: u32, overflow: atomic<u32>, flags: atomic<u32>,
    messages: u32, slot_words: u32, step: u32, started: u32,
    received: array<u32, 96>,
}
@group(0) @binding(0) var<storage, read_write> boxes: Boxes;
@group(0) @binding(1) var<storage, read_write> state: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= arrayLength(&state)) { return; }
    if (boxes.messages != 0u) { state[id.x] += boxes.received[4]; }
    if (id.x == 0u) {
        let slot = atomicAdd(&boxes.count, 1u);
        boxes.sent[slot * 6u + 3u] = 4u;
        boxes.sent[slot * 6u + 4u] = state[0];
    }
}";

fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("outside the browser futures of wgpu are ready"),
    }
}

fn open() -> (wgpu::Device, wgpu::Queue) {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        flags: wgpu::InstanceFlags::empty(),
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let adapters = now(instance.enumerate_adapters(wgpu::Backends::PRIMARY));
    let adapter = adapters.first().expect("there is an adapter, since a device was opened before");
    let required_limits = adapter.limits();
    let descriptor = wgpu::DeviceDescriptor { required_limits, ..Default::default() };
    now(adapter.request_device(&descriptor)).expect("the adapter opens")
}

fn buffer(device: &wgpu::Device, size: u64, usage: Usage, is_mapped: bool) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size,
        usage,
        mapped_at_creation: is_mapped,
    })
}

fn wait(device: &wgpu::Device) {
    device.poll(wgpu::PollType::wait_indefinitely()).expect("the device works");
}

/// Kernels with their boxes.
pub(crate) struct Batch {
    device: wgpu::Device,
    queue: wgpu::Queue,
    pipeline: wgpu::ComputePipeline,
    kernels: Vec<(wgpu::Buffer, wgpu::BindGroup)>,
    groups: u32,
    upload: wgpu::Buffer,
    download: wgpu::Buffer,
}

impl Batch {
    pub(crate) fn new(kernels: usize, state_words: u32) -> Self {
        let (device, queue) = open();
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(SHADER.into()),
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        let usage = Usage::STORAGE | Usage::COPY_SRC | Usage::COPY_DST;
        let kernel = |_| {
            let boxes = buffer(&device, 4 * (96 + 8 + 96), usage, false);
            let state = buffer(&device, u64::from(state_words) * 4, usage, false);
            let bind_group = device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &pipeline.get_bind_group_layout(0),
                entries: &[
                    wgpu::BindGroupEntry { binding: 0, resource: boxes.as_entire_binding() },
                    wgpu::BindGroupEntry { binding: 1, resource: state.as_entire_binding() },
                ],
            });
            (boxes, bind_group)
        };
        let list: Vec<_> = (0..kernels).map(kernel).collect();
        let kernels = list.len() as u64;
        let (upload_bytes, download_bytes) =
            (kernels * RECEIVED_BYTES as u64, kernels * SENT_BYTES as u64);
        let upload = buffer(&device, upload_bytes, Usage::MAP_WRITE | Usage::COPY_SRC, true);
        let download = buffer(&device, download_bytes, Usage::MAP_READ | Usage::COPY_DST, false);
        let groups = state_words.div_ceil(64);
        Self { device, queue, pipeline, kernels: list, groups, upload, download }
    }

    /// One step of every kernel.
    pub(crate) fn run(&mut self) {
        let mut received = [0; RECEIVED_BYTES];
        received[4 * 4] = 1; // one message
        received[4 * 12] = 1;
        {
            let mut view = self.upload.slice(..).get_mapped_range_mut().expect("it is mapped");
            for kernel in 0..self.kernels.len() {
                let at = kernel * received.len();
                view.slice(at..at + received.len()).copy_from_slice(&received);
            }
        }
        self.upload.unmap();
        let mut encoder = self.device.create_command_encoder(&Default::default());
        for (at, (boxes, _)) in (0..).step_by(RECEIVED_BYTES).zip(&self.kernels) {
            encoder.copy_buffer_to_buffer(&self.upload, at, boxes, 4 * 96, RECEIVED_BYTES as u64);
        }
        {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            pass.set_pipeline(&self.pipeline);
            for (_, bind_group) in &self.kernels {
                pass.set_bind_group(0, bind_group, &[]);
                pass.dispatch_workgroups(self.groups, 1, 1);
            }
        }
        for (at, (boxes, _)) in (0..).step_by(SENT_BYTES).zip(&self.kernels) {
            encoder.copy_buffer_to_buffer(boxes, 0, &self.download, at, SENT_BYTES as u64);
        }
        self.queue.submit([encoder.finish()]);
        let mapped = |result: Result<(), wgpu::BufferAsyncError>| result.expect("it can be mapped");
        self.upload.slice(..).map_async(wgpu::MapMode::Write, mapped);
        self.download.slice(..).map_async(wgpu::MapMode::Read, mapped);
        wait(&self.device);
        {
            let view = self.download.slice(..).get_mapped_range().expect("it is mapped");
            assert_eq!(view[4 * 96], 1, "each kernel sends one message");
        }
        self.download.unmap();
    }
}

/// Copies between the device's memory and memory that the host can map: one for each segment, since
/// a state lies in buffers that can be bound.
pub(crate) struct Copy {
    device: wgpu::Device,
    queue: wgpu::Queue,
    segments: Vec<Segment>,
}

struct Segment {
    on_device: wgpu::Buffer,
    upload: wgpu::Buffer,
    download: wgpu::Buffer,
}

impl Copy {
    pub(crate) fn new(bytes: u64) -> Self {
        let (device, queue) = open();
        let longest = device.limits().max_storage_buffer_binding_size.min(1 << 30);
        let segment = |index: u64| {
            let size = longest.min(bytes - index * longest);
            let on_device = buffer(&device, size, Usage::COPY_SRC | Usage::COPY_DST, false);
            let upload = buffer(&device, size, Usage::MAP_WRITE | Usage::COPY_SRC, true);
            upload.unmap();
            let download = buffer(&device, size, Usage::MAP_READ | Usage::COPY_DST, false);
            Segment { on_device, upload, download }
        };
        let segments = (0..bytes.div_ceil(longest)).map(segment).collect();
        Self { device, queue, segments }
    }

    pub(crate) fn upload(&mut self) {
        self.copy(|segment| (&segment.upload, &segment.on_device));
    }

    pub(crate) fn download(&mut self) {
        self.copy(|segment| (&segment.on_device, &segment.download));
    }

    fn copy(&self, ends: impl Fn(&Segment) -> (&wgpu::Buffer, &wgpu::Buffer)) {
        let mut encoder = self.device.create_command_encoder(&Default::default());
        for (from, to) in self.segments.iter().map(ends) {
            encoder.copy_buffer_to_buffer(from, 0, to, 0, from.size());
        }
        self.queue.submit([encoder.finish()]);
        wait(&self.device);
    }
}
