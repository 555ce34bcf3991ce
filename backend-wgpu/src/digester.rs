//! Computes digests of chunks of state on the device.

use std::ops::Range;

use hopwise_core::error::DeviceError;
use hopwise_core::implementing::Held;
use parking_lot::Mutex;

use crate::driver::{Driver, Handles};
use crate::limits::Limits;
use crate::mapping::{Mapping, map_error};

/// Most chunks that are digested by one submission.
const CHUNKS_AT_ONCE: u64 = 8192;

/// Most bytes that are digested by one submission, unless one chunk is larger: a step of the kernel
/// waits for so long.
const BYTES_AT_ONCE: u64 = 128 << 20;

/// Bytes of a chunk's digest.
const DIGEST_BYTES: u64 = 8;

/// Words that one workgroup of the shader covers.
const WORDS_PER_GROUP: u64 = 4096;

/// Words of a span's description.
const SPAN_BYTES: u64 = 16;

/// The pipeline, and buffers that wait for use.
#[derive(Debug)]
pub(crate) struct Digester {
    pipeline: Held<wgpu::ComputePipeline>,
    span_layout: Held<wgpu::BindGroupLayout>,
    segment_layout: Held<wgpu::BindGroupLayout>,
    limits: Limits,
    spare: Mutex<Vec<Buffers>>,
}

#[derive(Debug)]
struct Buffers {
    spans: Held<wgpu::Buffer>,
    sums: Held<wgpu::Buffer>,
    results: Held<wgpu::Buffer>,
    bind_group: Held<wgpu::BindGroup>,
}

/// A state that is to be digested.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoundState<'a> {
    pub(crate) segments: &'a [Held<wgpu::BindGroup>],
    pub(crate) bytes: u64,
    pub(crate) chunk_bytes: u64,
}

/// The part of one segment that a submission covers.
#[derive(Clone, Copy, Debug)]
struct Span {
    segment: usize,
    first_word: u32,
    word_count: u32,
    place: u32,
}

impl Digester {
    pub(crate) fn new(driver: &Driver, limits: Limits) -> Result<Self, DeviceError> {
        let held = driver.call(|handles| build(&handles.device))?;
        let (span_layout, segment_layout, pipeline) = held;
        let health = driver.health();
        Ok(Self {
            pipeline: Held::new(pipeline, health),
            span_layout: Held::new(span_layout, health),
            segment_layout: Held::new(segment_layout, health),
            limits,
            spare: Mutex::default(),
        })
    }

    /// Makes the segments of a state known to the shader.
    pub(crate) fn bind(
        &self,
        driver: &Driver,
        segments: &[Held<wgpu::Buffer>],
    ) -> Result<Vec<Held<wgpu::BindGroup>>, DeviceError> {
        driver.call(|handles| {
            let bind = |buffer: &Held<wgpu::Buffer>| {
                handles.device.create_bind_group(&wgpu::BindGroupDescriptor {
                    label: Some("hopwise digest segment"),
                    layout: &self.segment_layout,
                    entries: &[wgpu::BindGroupEntry {
                        binding: 0,
                        resource: buffer.as_entire_binding(),
                    }],
                })
            };
            segments.iter().map(|buffer| Held::new(bind(buffer), driver.health())).collect()
        })
    }

    /// Cuts the chunks of a state into parts that one submission digests.
    pub(crate) fn parts(state_bytes: u64, chunk_bytes: u64) -> impl Iterator<Item = Range<u64>> {
        let count = state_bytes.div_ceil(chunk_bytes);
        let at_once = (BYTES_AT_ONCE / chunk_bytes).clamp(1, CHUNKS_AT_ONCE);
        let starts = (0..count.div_ceil(at_once)).map(move |part| part * at_once);
        starts.map(move |start| start..count.min(start + at_once))
    }

    /// Appends the digests of one of the [`parts`](Self::parts). The chunk size has been checked.
    pub(crate) fn digest(
        &self,
        driver: &Driver,
        state: BoundState<'_>,
        chunks: Range<u64>,
        digests: &mut Vec<u64>,
    ) -> Result<(), DeviceError> {
        let spare = self.spare.lock().pop();
        let buffers = match spare {
            Some(buffers) => buffers,
            None => self.create_buffers(driver)?,
        };
        let from = chunks.start * state.chunk_bytes;
        let to = state.bytes.min(state.chunk_bytes.saturating_mul(chunks.end));
        let work = Work {
            buffers: &buffers,
            segments: state.segments,
            spans: &self.spans(from / 4, to / 4),
            chunk_words: u32::try_from(state.chunk_bytes / 4).unwrap_or(u32::MAX),
            bytes: (chunks.end - chunks.start) * DIGEST_BYTES,
        };
        let mapping = driver.call(|handles| self.submit(handles, &work))?;
        driver.wait(&[&mapping])?;
        read_sums(driver, &buffers.results, work.bytes, digests)?;
        self.spare.lock().push(buffers);
        Ok(())
    }

    /// Cuts a range of words at the borders of segments.
    fn spans(&self, from_word: u64, to_word: u64) -> Vec<Span> {
        let segment_words = self.limits.segment_bytes() / 4;
        let narrow = |words: u64| u32::try_from(words).expect("a state has fewer than 2^32 words");
        let mut spans = Vec::new();
        let mut word = from_word;
        while word < to_word {
            let segment = word / segment_words;
            let end = to_word.min((segment + 1) * segment_words);
            spans.push(Span {
                segment: usize::try_from(segment).expect("segments are few"),
                first_word: narrow(word % segment_words),
                word_count: narrow(end - word),
                place: narrow(word - from_word),
            });
            word = end;
        }
        spans
    }

    fn submit(&self, handles: &Handles, work: &Work<'_>) -> Mapping {
        let buffers = work.buffers;
        let stride = self.span_stride();
        let mut described = vec![0; work.spans.len() * stride as usize];
        for (span, bytes) in work.spans.iter().zip(described.chunks_exact_mut(stride as usize)) {
            let words = [span.first_word, span.word_count, span.place, work.chunk_words];
            for (word, bytes) in words.iter().zip(bytes.chunks_exact_mut(4)) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
        }
        handles.queue.write_buffer(&buffers.spans, 0, &described);
        let descriptor = wgpu::CommandEncoderDescriptor { label: Some("hopwise digests") };
        let mut encoder = handles.device.create_command_encoder(&descriptor);
        encoder.clear_buffer(&buffers.sums, 0, Some(work.bytes));
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            pass.set_pipeline(&self.pipeline);
            for (span, offset) in work.spans.iter().zip((0..).step_by(stride as usize)) {
                pass.set_bind_group(0, &*buffers.bind_group, &[offset]);
                pass.set_bind_group(1, &*work.segments[span.segment], &[]);
                let groups = u64::from(span.word_count).div_ceil(WORDS_PER_GROUP);
                let width = groups.min(u64::from(self.limits.max_groups_per_dimension));
                let [width, height] = [width, groups.div_ceil(width)]
                    .map(|count| u32::try_from(count).expect("groups are fewer than words"));
                pass.dispatch_workgroups(width, height, 1);
            }
        }
        encoder.copy_buffer_to_buffer(&buffers.sums, 0, &buffers.results, 0, work.bytes);
        handles.queue.submit([encoder.finish()]);
        Mapping::of(buffers.results.slice(..work.bytes), wgpu::MapMode::Read)
    }

    /// Bytes from one span's description to the next.
    fn span_stride(&self) -> u32 {
        self.limits.uniform_alignment.max(16)
    }

    fn create_buffers(&self, driver: &Driver) -> Result<Buffers, DeviceError> {
        use wgpu::BufferUsages as Usage;
        let sums_bytes = CHUNKS_AT_ONCE * DIGEST_BYTES;
        let spans_bytes = u64::from(self.span_stride()) * u64::from(self.limits.most_segments());
        let create = |name, size, usage| driver.create_buffer(name, size, usage);
        let spans = create("hopwise spans", spans_bytes, Usage::UNIFORM | Usage::COPY_DST)?;
        let usage = Usage::STORAGE | Usage::COPY_SRC | Usage::COPY_DST;
        let sums = create("hopwise digest sums", sums_bytes, usage)?;
        let results = create("hopwise digests", sums_bytes, Usage::MAP_READ | Usage::COPY_DST)?;
        let span = wgpu::BufferBinding {
            buffer: &spans,
            offset: 0,
            size: wgpu::BufferSize::new(SPAN_BYTES),
        };
        let bind_group = driver.call(|handles| {
            handles.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: Some("hopwise digest"),
                layout: &self.span_layout,
                entries: &[
                    wgpu::BindGroupEntry {
                        binding: 0,
                        resource: wgpu::BindingResource::Buffer(span),
                    },
                    wgpu::BindGroupEntry { binding: 1, resource: sums.as_entire_binding() },
                ],
            })
        })?;
        let bind_group = Held::new(bind_group, driver.health());
        Ok(Buffers { spans, sums, results, bind_group })
    }
}

/// One submission.
#[derive(Clone, Copy, Debug)]
struct Work<'a> {
    buffers: &'a Buffers,
    segments: &'a [Held<wgpu::BindGroup>],
    spans: &'a [Span],
    chunk_words: u32,
    bytes: u64,
}

fn read_sums(
    driver: &Driver,
    results: &wgpu::Buffer,
    bytes: u64,
    digests: &mut Vec<u64>,
) -> Result<(), DeviceError> {
    {
        let view = results.slice(..bytes).get_mapped_range().map_err(map_error)?;
        let (sums, _) = view.as_chunks::<8>();
        // Low half first, little-endian: the bytes are those of the digest.
        digests.extend(sums.iter().map(|bytes| u64::from_le_bytes(*bytes)));
    }
    driver.call(|_| results.unmap())
}

fn build(
    device: &wgpu::Device,
) -> (wgpu::BindGroupLayout, wgpu::BindGroupLayout, wgpu::ComputePipeline) {
    let entry = |binding, ty, has_dynamic_offset| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset, min_binding_size: None },
        count: None,
    };
    let layout = |entries: &[wgpu::BindGroupLayoutEntry]| {
        let label = Some("hopwise digest");
        device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label, entries })
    };
    let storage = |read_only| wgpu::BufferBindingType::Storage { read_only };
    let span_layout = layout(&[
        entry(0, wgpu::BufferBindingType::Uniform, true),
        entry(1, storage(false), false),
    ]);
    let segment_layout = layout(&[entry(0, storage(true), false)]);
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some("hopwise digest"),
        source: wgpu::ShaderSource::Wgsl(include_str!("digest.wgsl").into()),
    });
    let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: Some("hopwise digest"),
        bind_group_layouts: &[Some(&span_layout), Some(&segment_layout)],
        immediate_size: 0,
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some("hopwise digest"),
        layout: Some(&pipeline_layout),
        module: &module,
        entry_point: Some("digest"),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    (span_layout, segment_layout, pipeline)
}
