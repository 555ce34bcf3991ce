//! Reads bytes as a source, and does with the result what the command does.

#![allow(dead_code, reason = "a target uses one of the two")]

use hopwise_topology::{FileTree, Format, Machine, Reading, read_text};

/// Reads a text.
pub(crate) fn read(bytes: &[u8], format: Option<Format>) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(readings) = read_text(&text, format) {
        use_all(&readings);
    }
}

/// Reads a file tree that `grep -r` would print so.
pub(crate) fn read_tree(bytes: &[u8]) {
    let tree = FileTree::from_grep(&String::from_utf8_lossy(bytes));
    if let Ok(readings) = hopwise_topology::read_tree(&tree, None) {
        use_all(&readings);
    }
}

fn use_all(readings: &[Reading]) {
    let machine = Machine::merge(readings);
    assert_eq!(machine.topology().device_count(), machine.gpus().len());
    assert_eq!(machine.classes().len(), machine.gpus().len() + machine.nics().len());
    let again = read_text(&machine.to_json(), Some(Format::Json)).expect("we wrote it");
    assert_eq!(Machine::merge(&again), machine, "what was written is read back");
}
