//! `hopwise topo`: read a machine and show it.

use std::fs;

use crate::args::{ShowArguments, TopoArguments, TopoCommand, TopologyFormat};
use crate::failure::Failure;
use crate::{machine, output};
use report::Report;

mod diff;
mod report;

/// Reads, joins and shows, or compares.
pub(crate) fn run(arguments: &TopoArguments) -> Result<(), Failure> {
    match &arguments.command {
        Some(TopoCommand::Diff(arguments)) => diff::run(arguments),
        None => show(&arguments.show),
    }
}

fn show(arguments: &ShowArguments) -> Result<(), Failure> {
    if arguments.files.len() > 1 && !arguments.merge {
        return Err(Failure::usage(
            "several files were given; add --merge if they are about one machine, or name one file",
        ));
    }
    let described = machine::read(&arguments.files, arguments.from)?;
    if arguments.json {
        return write(arguments, &output::json(&Report::new(&described))?);
    }
    let machine = &described.machine;
    let text = match arguments.format {
        TopologyFormat::Table => machine.table(),
        TopologyFormat::Tree => machine.tree(),
        TopologyFormat::Json => machine.to_json(),
        TopologyFormat::Dot => machine.dot(),
        TopologyFormat::Svg => machine.svg(),
    };
    for warning in described.warnings() {
        output::warn(&warning);
    }
    write(arguments, &text)
}

fn write(arguments: &ShowArguments, text: &str) -> Result<(), Failure> {
    let Some(path) = &arguments.output else { return output::print(text) };
    fs::write(path, text)
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
}
