//! Programs compiled for one device: checked once, with pipelines for each number of segments.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use hopwise_core::device::CompiledProgram;
use hopwise_core::device_info::BackendKind;
use hopwise_core::error::{CompileError, DeviceError};
use hopwise_core::implementing::Held;
use hopwise_core::program::Program;
use parking_lot::Mutex;

use crate::core::DeviceCore;
use crate::driver::{Driver, Handles};
use crate::prelude::{BoxLayout, FIRST_SEGMENT_BINDING, Segments};
use crate::source::Source;

/// A program made ready for one device.
pub(crate) struct WgpuProgram {
    pub(crate) program: Arc<Program>,
    pub(crate) core: Arc<DeviceCore>,
    pub(crate) boxes: BoxLayout,
    /// By the number of segments.
    variants: Mutex<HashMap<u32, Arc<Pipelines>>>,
}

/// The pipelines of a program's passes, for states of so many segments.
#[derive(Debug)]
pub(crate) struct Pipelines {
    pub(crate) bind_group_layout: Held<wgpu::BindGroupLayout>,
    pub(crate) passes: Vec<PassPipeline>,
}

/// One pass, ready to be dispatched.
#[derive(Debug)]
pub(crate) struct PassPipeline {
    pub(crate) pipeline: Held<wgpu::ComputePipeline>,
    pub(crate) workgroup_size: u32,
}

impl WgpuProgram {
    /// Checks the program and compiles it for states of one segment, the most frequent kind.
    pub(crate) fn compile(
        program: &Arc<Program>,
        core: &Arc<DeviceCore>,
    ) -> Result<Self, CompileError> {
        if program.wgsl().is_none() {
            return Err(CompileError::NoForm {
                program: program.name().to_owned(),
                backend: BackendKind::Wgpu,
                forms: program.forms(),
            });
        }
        let boxes = BoxLayout::of(program);
        let (wanted, offered) = (boxes.whole as u64 * 4, core.limits.max_binding_bytes);
        if wanted > offered {
            return Err(CompileError::Limit {
                program: program.name().to_owned(),
                limit: "bytes for inbox and outbox in one binding \
                        (max_storage_buffer_binding_size; declare fewer slots)"
                    .to_owned(),
                wanted,
                offered,
            });
        }
        let (program, core) = (Arc::clone(program), Arc::clone(core));
        let compiled = Self { program, core, boxes, variants: Mutex::default() };
        compiled.pipelines(compiled.core.limits.segments(4))?;
        Ok(compiled)
    }

    /// The pipelines for a state of so many segments, compiled when they are wanted first.
    pub(crate) fn pipelines(&self, segments: Segments) -> Result<Arc<Pipelines>, CompileError> {
        if let Some(known) = self.variants.lock().get(&segments.count) {
            return Ok(Arc::clone(known));
        }
        // Two threads may compile the same; the first to end has its work kept.
        let compiled = Arc::new(self.compile_for(segments)?);
        let mut variants = self.variants.lock();
        Ok(Arc::clone(variants.entry(segments.count).or_insert(compiled)))
    }

    fn compile_for(&self, segments: Segments) -> Result<Pipelines, CompileError> {
        let driver = &self.core.driver;
        let source = Source::new(&self.program, self.program.wgsl().unwrap_or_default());
        let shader = source.assemble(segments);
        let workgroup_sizes = source.check(&shader, self.core.limits.workgroups)?;
        let label = Some(self.program.name());
        let (layout, pipeline_layout, module) = driver.call(|handles| {
            let device = &handles.device;
            let layout = bind_group_layout(handles, segments);
            let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label,
                bind_group_layouts: &[Some(&layout)],
                immediate_size: 0,
            });
            let source = wgpu::ShaderSource::Wgsl(shader.as_str().into());
            let descriptor = wgpu::ShaderModuleDescriptor { label, source };
            (layout, pipeline_layout, device.create_shader_module(descriptor))
        })?;
        let passes = self.program.passes().iter().zip(workgroup_sizes);
        let passes = passes.map(|(pass, workgroup_size)| {
            let name = pass.entry_point.as_str();
            let pipeline = compile_pass(driver, label, &pipeline_layout, &module, name);
            match pipeline {
                Ok(pipeline) => Ok(PassPipeline {
                    pipeline: Held::new(pipeline, driver.health()),
                    workgroup_size,
                }),
                Err(DeviceError::Driver { message }) => {
                    let message = format!(
                        "the driver refuses entry point `{name}`: {message}; its WGSL is valid, so \
                         write it otherwise or update the driver"
                    );
                    Err(source.error_at_entry_point(name, message))
                }
                Err(error) => Err(error.into()),
            }
        });
        let passes = passes.collect::<Result<_, CompileError>>()?;
        Ok(Pipelines { bind_group_layout: Held::new(layout, driver.health()), passes })
    }
}

fn compile_pass(
    driver: &Driver,
    label: Option<&str>,
    layout: &wgpu::PipelineLayout,
    module: &wgpu::ShaderModule,
    entry_point: &str,
) -> Result<wgpu::ComputePipeline, DeviceError> {
    driver.call(|handles| {
        handles.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label,
            layout: Some(layout),
            module,
            entry_point: Some(entry_point),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        })
    })
}

/// The prelude's bindings.
fn bind_group_layout(handles: &Handles, segments: Segments) -> wgpu::BindGroupLayout {
    let storage = wgpu::BufferBindingType::Storage { read_only: false };
    let entries: Vec<_> = (0..FIRST_SEGMENT_BINDING + segments.count)
        .map(|binding| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty: if binding == 0 { wgpu::BufferBindingType::Uniform } else { storage },
                has_dynamic_offset: false,
                min_binding_size: None,
            },
            count: None,
        })
        .collect();
    let label = Some("hopwise prelude");
    let descriptor = wgpu::BindGroupLayoutDescriptor { label, entries: &entries };
    handles.device.create_bind_group_layout(&descriptor)
}

impl CompiledProgram for WgpuProgram {
    fn program(&self) -> &Arc<Program> {
        &self.program
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Prints the program's name.
impl fmt::Debug for WgpuProgram {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("WgpuProgram").field(&self.program.name()).finish()
    }
}
