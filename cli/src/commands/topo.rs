//! `hopwise topo`: read a topology and show it.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use hopwise_topology::GpuTopology;

use crate::args::{TopoArguments, TopologyFormat};
use crate::failure::Failure;
use crate::output;

/// Reads, checks and shows a topology.
pub(crate) fn run(arguments: &TopoArguments) -> Result<(), Failure> {
    let topology = read(&arguments.file)?;
    let format = if arguments.json { TopologyFormat::Json } else { arguments.format };
    match format {
        TopologyFormat::Table => output::print(&topology.table()),
        TopologyFormat::Json => output::print(&topology.to_json()),
    }
}

fn read(file: &Path) -> Result<GpuTopology, Failure> {
    let from_stdin = file == Path::new("-");
    let name = if from_stdin { "standard input".to_owned() } else { file.display().to_string() };
    let text = if from_stdin { read_stdin() } else { fs::read_to_string(file) };
    let text = text.map_err(|error| Failure::failed(format!("cannot read {name}: {error}")))?;
    GpuTopology::from_json(&text).map_err(|error| Failure::failed(format!("{name}: {error}")))
}

fn read_stdin() -> io::Result<String> {
    let mut text = String::new();
    io::stdin().lock().read_to_string(&mut text)?;
    Ok(text)
}
