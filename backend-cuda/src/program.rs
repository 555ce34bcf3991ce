//! Programs compiled and loaded for one device.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use hopwise_core::device::CompiledProgram;
use hopwise_core::error::{CompileError, DeviceError};
use hopwise_core::program::Program;

use crate::context::Entered;
use crate::core::DeviceCore;
use crate::module::{Function, load};
use crate::prelude::{BoxWords, PROGRAM_FILE};

/// A program made ready for one device.
pub(crate) struct CudaProgram {
    pub(crate) program: Arc<Program>,
    pub(crate) core: Arc<DeviceCore>,
    pub(crate) boxes: BoxWords,
    /// The entry points of the passes, in their order.
    pub(crate) passes: Vec<Function>,
}

impl CudaProgram {
    /// The entry point of a kernel that stays on the GPU, compiled and loaded for each kernel: its
    /// module may not go while another's kernel runs.
    pub(crate) fn resident_function(&self, entered: &Entered<'_>) -> Option<Function> {
        let image = self.core.compiler.resident(&self.program, self.core.capability)?;
        let module = load(entered, &image).ok()?;
        Function::of(entered, &module, "hw_resident").ok()
    }

    /// Compiles and loads the program.
    pub(crate) fn compile(
        program: &Arc<Program>,
        core: &Arc<DeviceCore>,
    ) -> Result<Self, CompileError> {
        let image = core.compiler.program(program, core.capability)?;
        let entered = core.context.enter()?;
        let module = load(&entered, &image).map_err(|error| refused(program, error))?;
        let function = |name: &str| {
            Function::of(&entered, &module, name).map_err(|error| no_entry(program, name, error))
        };
        let passes = program.passes().iter().map(|pass| function(&pass.entry_point));
        let passes = passes.collect::<Result<_, _>>()?;
        let boxes = BoxWords::of(program);
        Ok(Self { program: Arc::clone(program), core: Arc::clone(core), boxes, passes })
    }
}

/// The driver does not take an image: one made ahead of time for something else, mostly.
fn refused(program: &Program, error: DeviceError) -> CompileError {
    match error {
        DeviceError::Driver { message } => DeviceError::Driver {
            message: format!("program `{}` is not loaded: {message}", program.name()),
        }
        .into(),
        other => other.into(),
    }
}

fn no_entry(program: &Program, name: &str, error: DeviceError) -> CompileError {
    if !matches!(&error, DeviceError::Driver { message } if message.contains("NOT_FOUND")) {
        return error.into();
    }
    let source = program.cuda_c().unwrap_or_default();
    let line = source.lines().position(|line| line.contains(name)).unwrap_or(0);
    CompileError::Source {
        program: program.name().to_owned(),
        file: PROGRAM_FILE.to_owned(),
        line: u32::try_from(line + 1).unwrap_or(u32::MAX),
        column: 1,
        message: format!(
            "there is no entry point `{name}`, which a pass of the program names; write \
             HW_PASS({name}) {{ ... }}"
        ),
    }
}

impl CompiledProgram for CudaProgram {
    fn program(&self) -> &Arc<Program> {
        &self.program
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Prints the program's name.
impl fmt::Debug for CudaProgram {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("CudaProgram").field(&self.program.name()).finish()
    }
}
