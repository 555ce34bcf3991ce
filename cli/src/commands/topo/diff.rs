//! `hopwise topo diff`: what changed between two descriptions of one machine.

use hopwise_topology::{Change, Severity};
use serde::Serialize;

use crate::args::DiffArguments;
use crate::failure::Failure;
use crate::{machine, output};

#[derive(Serialize)]
struct Report {
    alarms: Vec<Entry>,
    notes: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    subject: String,
    text: String,
}

/// Prints the changes, alarms first. An alarm is a failure.
pub(super) fn run(arguments: &DiffArguments) -> Result<(), Failure> {
    let read = |file: &std::path::PathBuf| machine::read(std::slice::from_ref(file), None);
    let (old, new) = (read(&arguments.old)?, read(&arguments.new)?);
    let changes = new.machine.changes_since(&old.machine);
    let (alarms, notes): (Vec<_>, Vec<_>) =
        changes.into_iter().partition(|change| change.severity == Severity::Alarm);
    let count = alarms.len();
    if arguments.json {
        let entries = |changes: Vec<Change>| {
            let entry = |change: Change| Entry { subject: change.subject, text: change.text };
            changes.into_iter().map(entry).collect()
        };
        output::print_json(&Report { alarms: entries(alarms), notes: entries(notes) })?;
    } else {
        output::print(&text(&alarms, &notes))?;
    }
    if count == 0 {
        return Ok(());
    }
    Err(Failure::failed(format!("{count} things got worse; look at the lines marked ALARM")))
}

fn text(alarms: &[Change], notes: &[Change]) -> String {
    if alarms.is_empty() && notes.is_empty() {
        return "nothing changed".to_owned();
    }
    let alarms = alarms.iter().map(|change| format!("ALARM {change}"));
    let lines: Vec<_> =
        alarms.chain(notes.iter().map(|change| format!("note  {change}"))).collect();
    lines.join("\n")
}
