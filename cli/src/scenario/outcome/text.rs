//! The outcome for a person.

use std::fmt;

use super::{ChannelRow, EndpointRow, KernelResult, Outcome};
use crate::report::{device_table, message_table, move_table, table};

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", device_table(&self.devices))?;
        writeln!(f, "{}\n", kernel_table(&self.kernels))?;
        if !self.endpoints.is_empty() {
            writeln!(f, "{}\n", endpoint_table(&self.endpoints))?;
        }
        writeln!(f, "{}\n", channel_table(&self.channels))?;
        writeln!(f, "{}\n", message_table(&self.messages))?;
        if !self.migrations.is_empty() {
            writeln!(f, "{}\n", move_table(&self.migrations))?;
        }
        for event in &self.events {
            match event.due_ms {
                Some(due_ms) => writeln!(f, "event at {due_ms} ms: {}", event.event)?,
                None => writeln!(f, "event never due: {}", event.event)?,
            }
        }
        for (reason, count) in &self.dead_letters.reasons {
            writeln!(f, "dead letters: {count} because {reason}")?;
        }
        for waiting in &self.waiting {
            writeln!(f, "waiting: {waiting}")?;
        }
        for failure in &self.failures {
            writeln!(f, "FAILED: {failure}")?;
        }
        let result = if self.failures.is_empty() { "done" } else { "failed" };
        write!(f, "{result} after {}.{:03} s", self.elapsed_ms / 1000, self.elapsed_ms % 1000)
    }
}

fn kernel_table(kernels: &[KernelResult]) -> String {
    let cells = kernels.iter().map(|KernelResult { row, first_words, digest }| {
        let device = row.device_at_end.map_or_else(|| "-".to_owned(), |device| device.to_string());
        vec![
            row.name.clone(),
            row.program.clone(),
            row.phase.to_owned(),
            digest.clone().unwrap_or_else(|| "-".to_owned()),
            words(first_words.as_deref()),
            row.device_at_start.to_string(),
            device,
            row.steps.to_string(),
            row.mailbox_depth.to_string(),
        ]
    });
    let header = [
        "kernel",
        "program",
        "phase",
        "state digest",
        "first words",
        "device at start",
        "at end",
        "steps",
        "in mailbox",
    ];
    table(&header, 5, &cells.collect::<Vec<_>>())
}

fn endpoint_table(endpoints: &[EndpointRow]) -> String {
    let cells = endpoints.iter().map(|row| {
        vec![row.name.clone(), words(row.last_words.as_deref()), row.messages.to_string()]
    });
    table(&["endpoint", "last message", "messages"], 2, &cells.collect::<Vec<_>>())
}

fn channel_table(channels: &[ChannelRow]) -> String {
    let cells = channels.iter().map(|row| {
        let counts = [
            row.sent,
            row.delivered,
            row.waiting,
            row.duplicated,
            row.lost,
            row.out_of_order,
            row.dead_lettered,
        ];
        let ends = [row.from.clone(), row.to.clone()];
        ends.into_iter().chain(counts.iter().map(ToString::to_string)).collect()
    });
    let header = [
        "channel from",
        "to",
        "sent",
        "delivered",
        "waiting",
        "duplicated",
        "lost",
        "out of order",
        "dead letters",
    ];
    table(&header, 2, &cells.collect::<Vec<Vec<String>>>())
}

fn words(words: Option<&[u32]>) -> String {
    let Some(words) = words else { return "-".to_owned() };
    words.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
