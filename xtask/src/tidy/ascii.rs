//! Sources and prose are plain ASCII, so that every editor, terminal and diff shows the same.

use super::{Offence, Workspace};

#[cfg(test)]
mod tests;

const ENDINGS: &[&str] = &["rs", "md", "toml", "wgsl", "cu", "sh"];

pub(super) fn check(workspace: &Workspace) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (path, text) in workspace.tree.with_ending(ENDINGS) {
        for (index, line) in text.lines().enumerate() {
            if let Some(found) = line.chars().find(|c| !c.is_ascii()) {
                let code = found.escape_unicode();
                offences.push(Offence::in_line(
                    path,
                    index + 1,
                    format!("{code} is not ASCII: write it in plain letters or as an escape"),
                ));
            }
        }
    }
    offences
}
