//! The rows that the reports of `demo` and `run` share, and their tables.

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};
use hopwise_core::device_info::BackendKind;
use hopwise_core::fleet::{ChannelLedger, Fleet, KernelPhase, MessageTotals};
use hopwise_core::id::KernelId;
use serde::Serialize;

use crate::moves::Move;

#[cfg(test)]
mod tests;

/// One device at the end of a run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DeviceRow {
    /// Its index.
    pub(crate) index: usize,
    /// What its driver calls it.
    pub(crate) name: String,
    /// Through what it is driven.
    pub(crate) backend: BackendKind,
    /// Steps that it runs at the same time.
    pub(crate) workers: usize,
    /// Kernels on it when the run began.
    pub(crate) kernels_at_start: usize,
    /// Kernels on it when the run ended.
    pub(crate) kernels_at_end: usize,
    /// Steps that were made on it.
    pub(crate) steps: u64,
    /// What took it down, if anything did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lost: Option<String>,
}

impl DeviceRow {
    /// The devices of a fleet before its kernels run.
    pub(crate) fn at_start(fleet: &Fleet, devices: usize) -> Vec<Self> {
        let counts = kernels_by_device(fleet, devices).into_iter().enumerate();
        let rows = counts.filter_map(|(index, kernels)| {
            let device = fleet.device(index).ok()?;
            let info = device.info();
            Some(Self {
                index,
                name: info.name.clone(),
                backend: info.backend,
                workers: info.workers,
                kernels_at_start: kernels,
                kernels_at_end: kernels,
                steps: 0,
                lost: None,
            })
        });
        rows.collect()
    }

    /// Notes what has become of the devices.
    pub(crate) fn note_end(rows: &mut [Self], fleet: &Fleet) {
        let counts = kernels_by_device(fleet, rows.len());
        for (row, kernels) in rows.iter_mut().zip(counts) {
            let device = fleet.device(row.index).ok();
            let cause = device.and_then(|device| device.health().cause());
            row.kernels_at_end = kernels;
            row.steps = fleet.device_steps(row.index).unwrap_or(0);
            row.lost = cause.map(|cause| cause.to_string());
        }
    }
}

/// Kernels on each device now, counted from their own status.
fn kernels_by_device(fleet: &Fleet, devices: usize) -> Vec<usize> {
    let mut counts = vec![0; devices];
    for status in fleet.statuses() {
        if let Some(count) = counts.get_mut(status.device) {
            *count += 1;
        }
    }
    counts
}

/// One kernel at the end of a run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct KernelRow {
    /// Its name.
    pub(crate) name: String,
    /// Its program.
    pub(crate) program: String,
    /// The device that it was launched on.
    pub(crate) device_at_start: usize,
    /// The device that it is on; none when it was removed.
    pub(crate) device_at_end: Option<usize>,
    /// Steps that it has made.
    pub(crate) steps: u64,
    /// `ready`, `running`, `failed`, `lost` or `removed`.
    pub(crate) phase: &'static str,
    /// Why it failed or is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fault: Option<String>,
    /// How long ago its last step was committed: the age of the state that it had then.
    pub(crate) since_last_step_ms: Option<u64>,
    /// Messages in its mailbox.
    pub(crate) mailbox_depth: usize,
    /// Messages that it sent and that found no room.
    pub(crate) pending_output: usize,
    /// Size of its state in bytes.
    pub(crate) state_bytes: u64,
}

impl KernelRow {
    /// What the fleet says of a kernel now.
    pub(crate) fn new(fleet: &Fleet, kernel: &KernelId, program: &str, device: usize) -> Self {
        let status = fleet.status(kernel);
        let (phase, fault) = match status.as_ref().map(|status| &status.phase) {
            Some(KernelPhase::Ready) => ("ready", None),
            Some(KernelPhase::Running) => ("running", None),
            Some(KernelPhase::Failed(fault)) => ("failed", Some(fault.to_string())),
            Some(KernelPhase::Lost { cause }) => ("lost", Some(cause.clone())),
            _ => ("removed", None),
        };
        Self {
            name: kernel.to_string(),
            program: program.to_owned(),
            device_at_start: device,
            device_at_end: status.as_ref().map(|status| status.device),
            steps: status.as_ref().map_or(0, |status| status.steps),
            phase,
            since_last_step_ms: status
                .as_ref()
                .and_then(|status| status.since_last_step)
                .map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
            fault,
            mailbox_depth: status.as_ref().map_or(0, |status| status.mailbox_depth),
            pending_output: status.as_ref().map_or(0, |status| status.pending_output),
            state_bytes: status.as_ref().map_or(0, |status| status.state_bytes),
        }
    }

    /// What went wrong with it, if anything did.
    pub(crate) fn failure(&self) -> Option<String> {
        let fault = self.fault.as_ref()?;
        let Self { name, steps, .. } = self;
        if self.phase != "lost" {
            return Some(format!("kernel `{name}` has stopped: {fault}"));
        }
        let age = self.since_last_step_ms.map_or(String::new(), |age| {
            format!("; its last state is that of step {steps}, committed {age} ms ago")
        });
        Some(format!("kernel `{name}` is lost: {fault}{age}"))
    }
}

/// What is wrong with the ledgers: in a sum, and channel by channel.
pub(crate) fn message_failures(ledgers: &[ChannelLedger]) -> Vec<String> {
    let mut failures = Vec::new();
    for ledger in ledgers {
        for (count, what) in [
            (ledger.lost, "lost"),
            (ledger.duplicated, "duplicated"),
            (ledger.out_of_order, "out of order"),
        ] {
            if count > 0 {
                let ChannelLedger { from, to, sent, .. } = ledger;
                failures.push(format!("messages {what}: {count} of {sent} from {from} to {to}"));
            }
        }
    }
    failures
}

/// A line below the header and nothing else, so that a table can be pasted anywhere.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('-').junction('-'));

/// A table with a header; all columns but the first `words` ones hold numbers.
pub(crate) fn table(header: &[&str], words: usize, rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_style(STYLE).set_header(header);
    table.add_rows(rows);
    for column in table.column_iter_mut().skip(words) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

/// The devices as a table.
pub(crate) fn device_table(rows: &[DeviceRow]) -> String {
    let cells = rows.iter().map(|row| {
        vec![
            row.index.to_string(),
            row.name.clone(),
            row.lost.as_ref().map_or("works", |_| "lost").to_owned(),
            row.workers.to_string(),
            row.kernels_at_start.to_string(),
            row.kernels_at_end.to_string(),
            row.steps.to_string(),
        ]
    });
    let header = ["device", "name", "health", "workers", "kernels at start", "at end", "steps"];
    table(&header, 3, &cells.collect::<Vec<_>>())
}

/// The migrations as a table.
pub(crate) fn move_table(moves: &[Move]) -> String {
    let cells = moves.iter().map(|row| {
        vec![
            row.kernel.clone(),
            row.from.to_string(),
            row.to.to_string(),
            row.bytes.to_string(),
            milliseconds(row.hold_us),
            milliseconds(row.total_us),
            row.steps_elsewhere.to_string(),
        ]
    });
    let header = ["migration", "from", "to", "bytes", "hold ms", "total ms", "steps elsewhere"];
    table(&header, 1, &cells.collect::<Vec<_>>())
}

/// The sums of the ledgers as a table.
pub(crate) fn message_table(totals: &MessageTotals) -> String {
    let header = [
        "messages sent",
        "delivered",
        "waiting",
        "duplicated",
        "lost",
        "out of order",
        "dead letters",
    ];
    let row = [
        totals.sent,
        totals.delivered,
        totals.waiting,
        totals.duplicated,
        totals.lost,
        totals.out_of_order,
        totals.dead_lettered,
    ];
    table(&header, 0, &[row.iter().map(ToString::to_string).collect()])
}

fn milliseconds(microseconds: u64) -> String {
    format!("{}.{:03}", microseconds / 1000, microseconds % 1000)
}
