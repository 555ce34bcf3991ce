//! Checks a program's WGSL and says what is wrong where, in the program's own lines.
//!
//! The shader begins with the program's text, so positions in it are the program's. A position past
//! that text lies in the prelude: something of the program reached into it.

use std::error::Error;

use hopwise_core::error::CompileError;
use hopwise_core::program::Program;
use wgpu::naga::common::wgsl::TypeContext;
use wgpu::naga::front::wgsl;
use wgpu::naga::valid::{
    CallError, Capabilities, ModuleInfo, ValidationError, ValidationFlags, Validator,
};
use wgpu::naga::{AddressSpace, Module, ShaderStage, Span, WithSpan};

use crate::prelude::{self, Segments};

mod comments;

#[cfg(test)]
mod tests;

/// Longest piece of source that an error repeats, in bytes.
const LONGEST_QUOTE: usize = 60;

/// What to do about an error of the language.
const CORRECT_IT: &str = "correct the WGSL here; docs/kernel-abi.md has what the prelude offers";

/// Limits that the source itself can break.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkgroupLimits {
    pub(crate) max_invocations: u32,
    pub(crate) max_size_x: u32,
    pub(crate) max_memory_bytes: u32,
}

/// A program's WGSL with all that is to be said about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    program: &'a Program,
    wgsl: &'a str,
}

impl<'a> Source<'a> {
    pub(crate) fn new(program: &'a Program, wgsl: &'a str) -> Self {
        Self { program, wgsl }
    }

    /// The whole shader for a state of so many segments.
    pub(crate) fn assemble(self, segments: Segments) -> String {
        prelude::assemble(self.program, self.wgsl, segments)
    }

    /// Checks everything that can be checked without a device, and gives the workgroup size of each
    /// pass.
    pub(crate) fn check(
        self,
        shader: &str,
        limits: WorkgroupLimits,
    ) -> Result<Vec<u32>, CompileError> {
        let module = wgsl::parse_str(shader).map_err(|error| self.parse_error(&error))?;
        self.check_bindings(&module)?;
        let sizes = self.workgroup_sizes(&module, limits)?;
        let info = Validator::new(ValidationFlags::all(), Capabilities::empty())
            .validate(&module)
            .map_err(|error| self.validation_error(&module, &error))?;
        self.check_workgroup_memory(&module, &info, limits)?;
        Ok(sizes)
    }

    /// An error at the entry point of a pass, for what only the driver finds.
    pub(crate) fn error_at_entry_point(self, name: &str, message: String) -> CompileError {
        self.error(self.entry_point_offset(name), message)
    }

    fn parse_error(self, error: &wgsl::ParseError) -> CompileError {
        let spans: Vec<_> = error.labels().map(|(span, _)| span).collect();
        let offset = self.own(spans.iter().copied().filter_map(start));
        let mut message = error.message().to_owned();
        for (_, label) in error.labels() {
            if !message.contains(label) {
                message = format!("{message} ({label})");
            }
        }
        for note in error.notes() {
            message = format!("{message}; {note}");
        }
        self.located(offset, message)
    }

    fn validation_error(self, module: &Module, error: &WithSpan<ValidationError>) -> CompileError {
        // The outer spans are whole functions; the shortest is where it happens.
        let mut spans: Vec<_> =
            error.spans().map(|(span, _)| *span).filter_map(Span::to_range).collect();
        spans.sort_by_key(ExactSizeIterator::len);
        let own = spans.into_iter().find(|range| range.start < self.wgsl.len());
        let mut message = error.as_inner().to_string();
        let mut source = error.as_inner().source();
        while let Some(cause) = source {
            message = match cause.downcast_ref() {
                Some(CallError::ArgumentType { index, required, .. }) => {
                    let wanted = module.to_ctx().type_to_string(*required);
                    format!("argument {} of this call must be `{wanted}`", index + 1)
                }
                _ => format!("{message}: {cause}"),
            };
            source = cause.source();
        }
        let text = own.as_ref().and_then(|range| self.wgsl.get(range.clone()));
        if let Some(text) = text.filter(|text| text.len() <= LONGEST_QUOTE && !text.contains('\n'))
        {
            message = format!("{message}, found `{text}`");
        }
        self.located(own.map(|range| range.start), message)
    }

    /// The first offset that lies in the program's own text.
    fn own(self, mut offsets: impl Iterator<Item = usize>) -> Option<usize> {
        offsets.find(|offset| *offset < self.wgsl.len())
    }

    fn located(self, offset: Option<usize>, message: String) -> CompileError {
        match offset {
            Some(offset) => self.error(offset, format!("{message}; {CORRECT_IT}")),
            None => self.error(
                self.wgsl.trim_end().len(),
                format!(
                    "{message}; found in the prelude, which follows the program: close every \
                     bracket and comment, and use no names that begin with hw_"
                ),
            ),
        }
    }

    fn check_bindings(self, module: &Module) -> Result<(), CompileError> {
        for (handle, variable) in module.global_variables.iter() {
            let offset = self.own(start(module.global_variables.get_span(handle)).into_iter());
            if let (Some(_), Some(offset)) = (&variable.binding, offset) {
                let name = variable.name.as_deref().unwrap_or("a variable");
                let message = format!(
                    "`{name}` is a binding of its own; bindings belong to the prelude: remove it, \
                     and reach memory through hw_state, hw_payload and hw_parameter"
                );
                return Err(self.error(offset, message));
            }
        }
        Ok(())
    }

    /// Memory that a workgroup shares, which wgpu leaves to the driver to check or not.
    fn check_workgroup_memory(
        self,
        module: &Module,
        info: &ModuleInfo,
        limits: WorkgroupLimits,
    ) -> Result<(), CompileError> {
        let max_bytes = limits.max_memory_bytes;
        for (index, entry_point) in module.entry_points.iter().enumerate() {
            let uses = info.get_entry_point(index);
            let shared = module.global_variables.iter().filter(|(handle, variable)| {
                variable.space == AddressSpace::WorkGroup && !uses[*handle].is_empty()
            });
            let size = |ty| u64::from(module.types[ty].inner.size(module.to_ctx()));
            let bytes: u64 = shared.map(|(_, variable)| size(variable.ty)).sum();
            if bytes > max_bytes.into() {
                let name = &entry_point.name;
                let message = format!(
                    "the workgroup of `{name}` shares {bytes} bytes, the device allows {max_bytes} \
                     (max_compute_workgroup_storage_size); declare smaller var<workgroup>"
                );
                return Err(self.error_at_entry_point(name, message));
            }
        }
        Ok(())
    }

    fn workgroup_sizes(
        self,
        module: &Module,
        limits: WorkgroupLimits,
    ) -> Result<Vec<u32>, CompileError> {
        let passes = self.program.passes().iter();
        passes.map(|pass| self.workgroup_size(module, &pass.entry_point, limits)).collect()
    }

    fn workgroup_size(
        self,
        module: &Module,
        name: &str,
        limits: WorkgroupLimits,
    ) -> Result<u32, CompileError> {
        let mut compute =
            module.entry_points.iter().filter(|entry| entry.stage == ShaderStage::Compute);
        let Some(entry_point) = compute.clone().find(|entry| entry.name == name) else {
            let present: Vec<_> = compute.by_ref().map(|entry| entry.name.as_str()).collect();
            let present = if present.is_empty() { "none".into() } else { present.join(", ") };
            let message = format!(
                "there is no compute entry point `{name}`, which a pass names (there are: \
                 {present}); add one with @compute, or name another in the pass"
            );
            return Err(self.error(0, message));
        };
        let [x, y, z] = entry_point.workgroup_size;
        let max = limits.max_invocations.min(limits.max_size_x);
        if entry_point.workgroup_size_overrides.is_some() {
            let message =
                format!("the workgroup size of `{name}` is an override; write a constant");
            return Err(self.error_at_entry_point(name, message));
        }
        if y != 1 || z != 1 {
            let message = format!(
                "the workgroup of `{name}` is {x} x {y} x {z}, but grids are linear; write \
                 @workgroup_size({}) and derive further dimensions from hw_index",
                x.saturating_mul(y).saturating_mul(z).min(max)
            );
            return Err(self.error_at_entry_point(name, message));
        }
        if x > max {
            let message = format!(
                "the workgroup of `{name}` has {x} invocations, the device allows {max} \
                 (max_compute_invocations_per_workgroup); write a smaller @workgroup_size, 64 \
                 suits every device"
            );
            return Err(self.error_at_entry_point(name, message));
        }
        Ok(x)
    }

    /// Where `fn name` stands. naga keeps the places of functions but not of entry points.
    fn entry_point_offset(self, name: &str) -> usize {
        let code = comments::blank(self.wgsl);
        let is_in_word = |text: &str| text.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let is_name = |at: usize| {
            let rest = &code[at + 2..];
            let after = rest.trim_start().strip_prefix(name).map(str::trim_start);
            let is_word = rest.starts_with(char::is_whitespace) && !is_in_word(&code[..at]);
            is_word && after.is_some_and(|text| text.starts_with('('))
        };
        code.match_indices("fn").map(|(at, _)| at).find(|at| is_name(*at)).unwrap_or(0)
    }

    fn error(self, offset: usize, message: String) -> CompileError {
        let before = &self.wgsl[..self.wgsl.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        CompileError::Source {
            program: self.program.name().to_owned(),
            file: format!("{}.wgsl", self.program.name()),
            line: count(before.matches('\n').count() + 1),
            column: count(before[line_start..].chars().count() + 1),
            message,
        }
    }
}

fn start(span: Span) -> Option<usize> {
    span.to_range().map(|range| range.start)
}
