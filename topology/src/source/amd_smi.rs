//! `amd-smi topology`, as text or JSON.

use super::amd_matrix::Entry;
use super::claims::Claims;
use super::located_json::Document;
use super::tool_message::{self, ToolMessage};
use super::{Format, SourceError};
use crate::{Node, NodeKind, Observations, PciAddress, Tool};

mod json;
mod tables;
#[cfg(test)]
mod tests;

/// Whose figures these are.
const TOOL: &str = "amd-smi";

const REMEDY: &str = "give what `amd-smi topology` prints, with or without `--json`";

const MESSAGES: [ToolMessage; 5] = [
    ToolMessage {
        parts: &["amd-smi", "not found"],
        remedy: "install ROCm, or call /opt/rocm/bin/amd-smi",
    },
    ToolMessage {
        parts: &["amd-smi", "no such file"],
        remedy: "install ROCm, or call /opt/rocm/bin/amd-smi",
    },
    ToolMessage {
        parts: &["unable to get devices, driver not initialized"],
        remedy: "load the driver: modprobe amdgpu",
    },
    ToolMessage {
        parts: &["unable to detect any gpu devices"],
        remedy: "load the driver: modprobe amdgpu",
    },
    ToolMessage {
        parts: &["amdsmi_status_"],
        remedy: "see that the driver is loaded and /dev/kfd can be opened",
    },
];

/// Whether the text looks like it.
pub(super) fn recognizes(text: &str) -> bool {
    tables::is_in(text) || json::is_in(text) || tool_message::is_in(text, &MESSAGES)
}

/// Reads it.
pub(super) fn read(text: &str) -> Result<Observations, SourceError> {
    let mut observations = Observations::default();
    if json::is_in(text) {
        let document = Document::new(text);
        let error = json::read(&document, &mut observations);
        match error {
            Some(error) if observations.nodes.is_empty() => {
                return Err(SourceError::new(
                    Format::AmdSmi,
                    error.line,
                    format!(
                        "{}; give the whole of what `amd-smi topology --json` prints",
                        error.reason
                    ),
                ));
            }
            Some(error) => observations.warn(error.line, error.reason),
            None => {}
        }
    } else {
        tables::read(text, &mut observations);
    }
    if observations.nodes.is_empty() {
        return Err(tool_message::nothing_to_read(Format::AmdSmi, text, &MESSAGES, REMEDY));
    }
    observations.warnings.sort();
    Ok(observations)
}

/// A GPU as far as it is known.
#[derive(Clone, Debug, Default)]
struct Gpu {
    number: Option<u32>,
    pci: Option<PciAddress>,
    uuid: Option<String>,
}

impl Gpu {
    fn node(self) -> Node {
        let node = Node { pci: self.pci, uuid: self.uuid, ..Node::new(NodeKind::Gpu) };
        match self.number {
            Some(number) => node.labelled(Tool::RocmSmi, format!("GPU{number}")),
            None => node,
        }
    }
}

/// Adds what is said about pairs of GPUs, which `position` finds.
fn put_entries<L>(
    entries: impl IntoIterator<Item = Entry<L>>,
    position: impl Fn(&L) -> Option<usize>,
    observations: &mut Observations,
) {
    let mut claims = Claims::default();
    for Entry { from, to, statement, line } in entries {
        if let (Some(from), Some(to)) = (position(&from), position(&to)) {
            claims.add(from, to, statement, line);
        }
    }
    claims.finish(observations);
}
