//! `hopwise topo`: read a machine and show it.

use std::fs;

use crate::args::{ShowArguments, TopoArguments, TopoCommand, TopologyFormat};
use crate::failure::Failure;
use crate::machine::Described;
use crate::{machine, output};
use report::Report;

mod diff;
mod measure;
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
    if arguments.measure.measure {
        return show_measured(arguments);
    }
    let described = machine::read(&arguments.files, arguments.from)?;
    if arguments.json {
        return write(arguments, &output::json(&Report::new(&described))?);
    }
    show_machine(arguments, &described)
}

/// Measures, then shows the figures, or the machine with them.
fn show_measured(arguments: &ShowArguments) -> Result<(), Failure> {
    let calibration = measure::measure(&arguments.measure)?;
    let problems = measure::problems(&calibration);
    let described = || {
        let mut described = machine::read_with(calibration.reading());
        described.problems.extend(problems.iter().cloned());
        described
    };
    if arguments.json {
        let described = described();
        let report = Report::new(&described).with_measurement(&calibration);
        write(arguments, &output::json(&report)?)?;
    } else if arguments.format == TopologyFormat::Table {
        for problem in &problems {
            output::warn(problem);
        }
        write(arguments, &measure::text(&calibration))?;
    } else {
        show_machine(arguments, &described())?;
    }
    measure::check(&calibration)
}

fn show_machine(arguments: &ShowArguments, described: &Described) -> Result<(), Failure> {
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
