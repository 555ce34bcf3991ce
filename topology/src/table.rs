//! The topology as a table for people.

use std::fmt;

use crate::{Figure, GpuConnection, GpuTopology, HostLink, InterconnectType, LinkFigures, Quality};

#[cfg(test)]
mod tests;

/// What a cell shows where no link is known.
const NO_LINK: &str = "-";

impl GpuTopology {
    /// Three matrices: the class of each link as `nvidia-smi topo -m` prints it with the NUMA
    /// nodes, bandwidths in GB/s, latencies in microseconds. Rows send, columns receive.
    ///
    /// Every figure carries the mark of its quality ([`Quality::mark`]), so that an estimate never
    /// looks like a measurement. A device whose memory is host memory is called `HOST`. Costs
    /// O(devices^2 x links of a device to switches).
    pub fn table(&self) -> String {
        if self.device_count() == 0 {
            return "no devices\n".to_owned();
        }
        let classes = self.matrix("link", |link| {
            let mark = if link.peer_access { "" } else { "!" };
            format!("{}{mark}", link.kind)
        });
        let mut text = layout(&self.with_numa_column(classes));
        for figures in [BANDWIDTH, LATENCY] {
            text.push('\n');
            let matrix = self.matrix(figures.title, |link| (figures.of_link)(link).to_string());
            text.push_str(&layout(&self.with_host_columns(matrix, &figures)));
        }
        text.push('\n');
        text.push_str(&self.legend());
        text
    }

    /// A header row, and a row for each device with a cell for each device.
    fn matrix(&self, title: &str, cell: impl Fn(&GpuConnection) -> String) -> Vec<Vec<String>> {
        let names = self.devices().map(|device| self.row_name(device));
        let mut rows = vec![std::iter::once(title.to_owned()).chain(names).collect::<Vec<_>>()];
        for from in self.devices() {
            let cells = self.devices().map(|to| match self.connection(from, to) {
                Some(link) => cell(&link),
                None if from == to => "X".to_owned(),
                None => NO_LINK.to_owned(),
            });
            rows.push(std::iter::once(self.row_name(from)).chain(cells).collect());
        }
        rows
    }

    fn with_numa_column(&self, mut rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
        let nodes = self.devices().map(|device| {
            self.numa_node(device).map_or_else(|| "?".to_owned(), |node| node.to_string())
        });
        add_column(&mut rows, "NUMA", nodes);
        rows
    }

    /// Adds what leads to the host, and what comes from it.
    fn with_host_columns(&self, mut rows: Vec<Vec<String>>, figures: &Figures) -> Vec<Vec<String>> {
        let links: Vec<_> = self
            .devices()
            .map(|device| {
                let nothing_known = || HostLink::new(device, InterconnectType::Unknown);
                self.host_link(device).unwrap_or_else(nothing_known)
            })
            .collect();
        let figure = |leg| (figures.of_leg)(leg).to_string();
        add_column(&mut rows, "to host", links.iter().map(|link| figure(&link.to_host)));
        add_column(&mut rows, "from host", links.iter().map(|link| figure(&link.from_host)));
        rows
    }

    fn row_name(&self, device: usize) -> String {
        let kind = self.host_link(device).map(|link| link.kind);
        let name = if kind == Some(InterconnectType::HostMemory) { "HOST" } else { "GPU" };
        format!("{name}{device}")
    }

    /// Explains the marks and classes that occur.
    fn legend(&self) -> String {
        let mut lines = vec![
            format!(
                "figures: 12 measured, {}12 reported, {}12 estimated, {} unknown",
                Quality::Reported.mark(),
                Quality::Estimated.mark(),
                Quality::Unknown.mark()
            ),
            format!("{NO_LINK} no link known, reached through the host"),
        ];
        if self.connections().iter().any(|link| !link.peer_access) {
            lines.push("! no peer access, reached through the host".to_owned());
        }
        lines.join("\n") + "\n"
    }
}

/// What one matrix of figures shows.
struct Figures {
    title: &'static str,
    of_link: fn(&GpuConnection) -> &Figure,
    of_leg: fn(&LinkFigures) -> &Figure,
}

const BANDWIDTH: Figures =
    Figures { title: "GB/s", of_link: |link| &link.bandwidth, of_leg: |leg| &leg.bandwidth };

const LATENCY: Figures =
    Figures { title: "us", of_link: |link| &link.latency, of_leg: |leg| &leg.latency };

fn add_column(rows: &mut [Vec<String>], title: &str, cells: impl Iterator<Item = String>) {
    for (row, cell) in rows.iter_mut().zip(std::iter::once(title.to_owned()).chain(cells)) {
        row.push(cell);
    }
}

/// Pads every column to its widest cell.
pub(crate) fn layout(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(String::len).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<_> =
            row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// The [table](GpuTopology::table).
impl fmt::Display for GpuTopology {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.table())
    }
}
