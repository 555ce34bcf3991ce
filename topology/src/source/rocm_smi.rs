//! `rocm-smi --showtopo` and its parts, as text or JSON; also `hy-smi`, which prints the same.
//!
//! Of the two NUMA figures, `Numa Node` counts: the node to which the driver's own topology links
//! the GPU. `Numa Affinity`, what the firmware told the PCI layer, stands in where there is no
//! other; it is -1 on many machines, and rocm-smi has read it from another function of the card.

use super::amd_matrix::Entry;
use super::claims::Claims;
use super::located_json::Document;
use super::tool_message::{self, ToolMessage};
use super::{Format, SourceError};
use crate::Observations;
use devices::Devices;

mod devices;
mod json;
#[cfg(test)]
mod tests;
mod text;

/// Whose figures these are.
const TOOL: &str = "rocm-smi";

const REMEDY: &str = "give what `rocm-smi --showtopo` prints, with or without `--json`";

const MESSAGES: [ToolMessage; 9] = [
    ToolMessage {
        parts: &["rocm-smi", "not found"],
        remedy: "install ROCm, or call /opt/rocm/bin/rocm-smi",
    },
    ToolMessage {
        parts: &["hy-smi", "not found"],
        remedy: "install the DTK driver, or call /opt/hyhal/bin/hy-smi",
    },
    ToolMessage {
        parts: &["rocm-smi", "no such file"],
        remedy: "install ROCm, or call /opt/rocm/bin/rocm-smi",
    },
    ToolMessage {
        parts: &["amdgpu not found in modules"],
        remedy: "load the driver: modprobe amdgpu",
    },
    ToolMessage {
        parts: &["unable to open /dev/kfd"],
        remedy: "add the user to the groups render and video, and give a container /dev/kfd",
    },
    ToolMessage {
        parts: &["rock module is not loaded"],
        remedy: "load the driver: modprobe amdgpu",
    },
    ToolMessage {
        parts: &["rocm smi returned"],
        remedy: "see that the driver is loaded and /dev/kfd can be opened",
    },
    ToolMessage {
        parts: &["no amd gpus specified"],
        remedy: "see that lspci lists a GPU and that the driver is loaded",
    },
    ToolMessage {
        parts: &["error", "gpu[", "cannot read"],
        remedy: "the driver does not tell the topology; read /sys/class/kfd/kfd/topology instead",
    },
];

/// Whether the text looks like it.
pub(super) fn recognizes(text: &str) -> bool {
    text::is_in(text) || json::is_in(text) || tool_message::is_in(text, &MESSAGES)
}

/// Reads it.
pub(super) fn read(text: &str) -> Result<Observations, SourceError> {
    let mut observations = Observations::default();
    let mut devices = Devices::default();
    let mut entries = text::read(text, &mut devices, &mut observations.warnings);
    if json::is_in(text) {
        let document = Document::new(text);
        let error = json::read(&document, &mut devices, &mut entries, &mut observations.warnings);
        match error {
            Some(error) if devices.is_empty() => {
                return Err(SourceError::new(
                    Format::RocmSmi,
                    error.line,
                    format!("{}; give the whole of what `rocm-smi --json` prints", error.reason),
                ));
            }
            Some(error) => observations.warn(error.line, error.reason),
            None => {}
        }
    }
    if devices.is_empty() {
        return Err(tool_message::nothing_to_read(Format::RocmSmi, text, &MESSAGES, REMEDY));
    }
    let positions = devices.put_into(&mut observations);
    let mut claims = Claims::default();
    for Entry { from, to, statement, line } in entries {
        if let (Some(from), Some(to)) = (positions.get(&from), positions.get(&to)) {
            claims.add(*from, *to, statement, line);
        }
    }
    claims.finish(&mut observations);
    observations.warnings.sort();
    Ok(observations)
}
