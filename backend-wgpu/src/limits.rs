//! What a device can hold and how long its loops may be: asked for, and found by trying.

use hopwise_core::error::DeviceError;

use crate::driver::{Driver, Handles};
use crate::grid::MAX_INVOCATIONS;
use crate::mapping::{Mapping, map_error};
use crate::prelude::Segments;
use crate::source::WorkgroupLimits;

/// Most bytes of one segment of state: 1 GiB. More gains nothing, and some drivers count bytes of a
/// binding in signed 32 bits.
const MAX_SEGMENT_BYTES: u64 = 1 << 30;

/// Largest binding that needs no trial: every API promises it.
const PROMISED_BINDING_BYTES: u64 = 128 << 20;

/// Storage bindings of a stage that are not segments: the block of both boxes.
const OTHER_STORAGE_BINDINGS: u32 = 1;

/// Most segments of a state, which keeps the accessors' code short.
const MAX_SEGMENTS: u32 = 31;

/// Iterations that are tried; programs for GPUs have no reason to loop for longer in one invocation.
const TRIED_ITERATIONS: u32 = 1 << 20;

/// Limits of a wgpu device, in the terms of this crate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    segment_shift: u32,
    max_segments: u32,
    pub(crate) workgroups: WorkgroupLimits,
    pub(crate) max_groups_per_dimension: u32,
    pub(crate) max_binding_bytes: u64,
    pub(crate) uniform_alignment: u32,
}

impl Limits {
    pub(crate) fn new(limits: &wgpu::Limits) -> Self {
        let max_binding_bytes = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size);
        let segment_bytes = max_binding_bytes.min(MAX_SEGMENT_BYTES);
        let bindings = limits.max_storage_buffers_per_shader_stage;
        Self {
            segment_shift: (segment_bytes / 4).max(1).ilog2(),
            max_segments: bindings.saturating_sub(OTHER_STORAGE_BINDINGS).clamp(1, MAX_SEGMENTS),
            workgroups: WorkgroupLimits {
                max_invocations: limits.max_compute_invocations_per_workgroup,
                max_size_x: limits.max_compute_workgroup_size_x,
                max_memory_bytes: limits.max_compute_workgroup_storage_size,
            },
            max_groups_per_dimension: limits.max_compute_workgroups_per_dimension,
            max_binding_bytes,
            uniform_alignment: limits.min_uniform_buffer_offset_alignment,
        }
    }

    /// Bytes of each segment of a state but the last.
    pub(crate) fn segment_bytes(self) -> u64 {
        4 << self.segment_shift
    }

    /// Segments of the largest state.
    pub(crate) fn most_segments(self) -> u32 {
        self.max_segments
    }

    /// Largest state of one instance: as many segments as a stage has bindings for, and as many
    /// words as a grid has invocations.
    pub(crate) fn max_state_bytes(self) -> u64 {
        (self.segment_bytes() * u64::from(self.max_segments)).min(MAX_INVOCATIONS * 4)
    }

    /// How a state of this size, which has been checked, is cut.
    pub(crate) fn segments(self, state_bytes: u64) -> Segments {
        let count = state_bytes.div_ceil(self.segment_bytes()).max(1);
        let count = u32::try_from(count).expect("the size of a state is checked before");
        Segments { count, shift: self.segment_shift }
    }
}

/// Creates and binds the largest segment, and halves segments while that is refused.
///
/// Down to what every API promises: a refusal can also mean that memory is scarce now.
pub(crate) fn probe_segments(
    driver: &Driver,
    mut limits: Limits,
    usage: wgpu::BufferUsages,
) -> Result<Limits, DeviceError> {
    while limits.segment_bytes() > PROMISED_BINDING_BYTES {
        match bind_segment(driver, limits.segment_bytes(), usage) {
            Ok(()) => break,
            Err(error) if error.is_fatal() => return Err(error),
            Err(_) => limits.segment_shift -= 1,
        }
    }
    Ok(limits)
}

fn bind_segment(driver: &Driver, bytes: u64, usage: wgpu::BufferUsages) -> Result<(), DeviceError> {
    let usage = usage | wgpu::BufferUsages::STORAGE;
    let buffer = driver.create_buffer("hopwise binding probe", bytes, usage)?;
    let bound = driver.call(|Handles { device, .. }| {
        let ty = wgpu::BufferBindingType::Storage { read_only: false };
        let entry = wgpu::BindGroupLayoutEntry {
            binding: 0,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
            count: None,
        };
        let descriptor = wgpu::BindGroupLayoutDescriptor { label: None, entries: &[entry] };
        device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &device.create_bind_group_layout(&descriptor),
            entries: &[wgpu::BindGroupEntry { binding: 0, resource: buffer.as_entire_binding() }],
        })
    });
    bound.map(drop)
}

/// Counts in memory how often its loop went round.
const LOOP: &str = "
@group(0) @binding(0) var<storage, read_write> counts: array<u32>;
@compute @workgroup_size(1)
fn go_round() {
    let wanted = counts[0];
    for (var i = 0u; i < wanted; i += 1u) { counts[1] = i + 1u; }
}
";

/// Runs a long loop and says after how many iterations the driver ended it, if it did.
pub(crate) fn probe_loop_limit(driver: &Driver) -> Result<Option<u64>, DeviceError> {
    use wgpu::BufferUsages as Usage;
    let storage = Usage::STORAGE | Usage::COPY_SRC | Usage::COPY_DST;
    let counts = driver.create_buffer("hopwise loop probe", 8, storage)?;
    let result =
        driver.create_buffer("hopwise loop result", 8, Usage::MAP_READ | Usage::COPY_DST)?;
    let mapping = driver.call(|handles| submit_loop(handles, &counts, &result))?;
    driver.wait(&[&mapping])?;
    let view = result.slice(..).get_mapped_range().map_err(map_error)?;
    let iterations = u32::from_le_bytes([view[4], view[5], view[6], view[7]]);
    Ok((iterations < TRIED_ITERATIONS).then_some(iterations.into()))
}

fn submit_loop(handles: &Handles, counts: &wgpu::Buffer, result: &wgpu::Buffer) -> Mapping {
    let device = &handles.device;
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some("hopwise loop probe"),
        source: wgpu::ShaderSource::Wgsl(LOOP.into()),
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some("hopwise loop probe"),
        layout: None,
        module: &module,
        entry_point: Some("go_round"),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    let bind_group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[wgpu::BindGroupEntry { binding: 0, resource: counts.as_entire_binding() }],
    });
    handles.queue.write_buffer(counts, 0, &TRIED_ITERATIONS.to_le_bytes());
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    {
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &bind_group, &[]);
        pass.dispatch_workgroups(1, 1, 1);
    }
    encoder.copy_buffer_to_buffer(counts, 0, result, 0, 8);
    handles.queue.submit([encoder.finish()]);
    Mapping::of(result.slice(..), wgpu::MapMode::Read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_that_a_device_does_not_bind_are_halved() {
        let backend = crate::WgpuBackend::new(crate::WgpuOptions::new().with_memory_bytes(1 << 20));
        let Ok(device) = backend.open_wgpu(0) else {
            eprintln!("not tried: there is no adapter");
            return;
        };
        let (driver, honest) = (&device.core.driver, device.core.limits);
        let boast = Limits { segment_shift: 40, ..honest };
        let found = probe_segments(driver, boast, wgpu::BufferUsages::COPY_SRC).unwrap();
        let binding = honest.max_binding_bytes.max(PROMISED_BINDING_BYTES);
        assert!(found.segment_bytes() <= binding, "{} bytes", found.segment_bytes());
        assert!(found.segment_bytes() >= PROMISED_BINDING_BYTES);
        assert_eq!(device.stray_error(), None);
    }

    #[test]
    fn states_are_cut_by_the_largest_binding_and_bounded_by_their_number() {
        let of = |binding, buffer, count| {
            Limits::new(&wgpu::Limits {
                max_storage_buffer_binding_size: binding,
                max_buffer_size: buffer,
                max_storage_buffers_per_shader_stage: count,
                ..wgpu::Limits::default()
            })
        };
        let lavapipe = of(128 << 20, (1 << 31) - 1, 32);
        assert_eq!(lavapipe.segment_bytes(), 128 << 20);
        assert_eq!(lavapipe.max_state_bytes(), 31 * (128 << 20));
        assert_eq!(lavapipe.segments(128 << 20).count, 1);
        assert_eq!(lavapipe.segments((128 << 20) + 4).count, 2);
        let odd = of((1 << 31) - 4, 100 << 20, 8);
        assert_eq!(odd.segment_bytes(), 64 << 20, "a power of two within the smaller limit");
        let wide = of(1 << 40, 1 << 40, 1_000_000);
        assert_eq!(wide.segment_bytes(), 1 << 30);
        assert_eq!(wide.max_state_bytes(), MAX_INVOCATIONS * 4);
    }
}
