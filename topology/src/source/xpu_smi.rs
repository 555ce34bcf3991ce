//! `xpu-smi topology`: the matrix (`-m`), the table of a device (`-d`), and both as JSON (`-j`).
//!
//! A tile is a GPU. A device with several tiles is their card. The table of a device names no
//! tile: what it says about a device without known tiles is taken for its tile 0, which every
//! device has.

use std::collections::BTreeMap;

use super::claims::Claims;
use super::tool_message::{self, ToolMessage};
use super::{Format, SourceError};
use crate::{InterconnectType, Observations, Statement};
use device_table::Device;
use nodes::{End, EndFacts, Nodes};

mod cell;
mod device_table;
mod json;
mod matrix;
mod nodes;
#[cfg(test)]
mod tests;

const REMEDY: &str = "give what `xpu-smi topology -m` or `xpu-smi topology -d 0` prints";

const MESSAGES: [ToolMessage; 7] = [
    ToolMessage {
        parts: &["xpu-smi", "not found"],
        remedy: "install Intel's xpu-smi, and see that it is on the path",
    },
    ToolMessage {
        parts: &["xpumcli", "not found"],
        remedy: "install Intel's XPU Manager, and see that it is on the path",
    },
    ToolMessage {
        parts: &["xpu-smi", "no such file"],
        remedy: "install Intel's xpu-smi, and see that it is on the path",
    },
    ToolMessage {
        parts: &["level zero initialization error"],
        remedy: "install Level Zero and add the user to the group render",
    },
    ToolMessage {
        parts: &["error: device not found"],
        remedy: "ask `xpu-smi discovery` which devices there are",
    },
    ToolMessage {
        parts: &["no devices found or error getting device list"],
        remedy: "see that the driver i915 or xe is loaded",
    },
    ToolMessage {
        parts: &["device handle not found for device id"],
        remedy: "ask `xpu-smi discovery` which devices there are",
    },
];

/// What a text says.
#[derive(Debug, Default)]
struct Content {
    ends: BTreeMap<End, EndFacts>,
    entries: Vec<Entry>,
    devices: BTreeMap<u32, Device>,
}

/// What joins two ends.
#[derive(Debug)]
struct Entry {
    from: End,
    to: End,
    kind: InterconnectType,
    line: usize,
}

impl Content {
    fn is_empty(&self) -> bool {
        self.ends.is_empty() && self.devices.is_empty()
    }
}

/// Whether the text looks like it.
pub(super) fn recognizes(text: &str) -> bool {
    matrix::is_in(text)
        || device_table::is_in(text)
        || json::is_in(text)
        || tool_message::is_in(text, &MESSAGES)
}

/// Reads it.
pub(super) fn read(text: &str) -> Result<Observations, SourceError> {
    let mut observations = Observations::default();
    let mut content = Content::default();
    if json::is_in(text) {
        if let Some(error) = json::read(text, &mut content, &mut observations.warnings) {
            if content.is_empty() {
                let remedy = "give the whole of what `xpu-smi topology -j` prints";
                let reason = format!("{}; {remedy}", error.reason);
                return Err(SourceError::new(Format::XpuSmi, error.line, reason));
            }
            observations.warn(error.line, error.reason);
        }
    } else {
        matrix::read(text, &mut content, &mut observations.warnings);
        content.devices = device_table::read(text, &mut observations.warnings);
    }
    if content.is_empty() {
        return Err(tool_message::nothing_to_read(Format::XpuSmi, text, &MESSAGES, REMEDY));
    }
    let nodes = Nodes::new(content.ends, content.devices, &mut observations);
    let mut claims = Claims::default();
    for Entry { from, to, kind, line } in content.entries {
        if let (Some(from), Some(to)) = (nodes.position(from), nodes.position(to)) {
            claims.add(from, to, Statement::Class(kind), line);
        }
    }
    claims.finish(&mut observations);
    observations.warnings.sort();
    Ok(observations)
}
