//! Nothing in the project depends on where somebody's machine keeps it.

use crate::source::{is_part_of_word, line_at};

use super::{Offence, Workspace};

#[cfg(test)]
mod tests;

const ENDINGS: &[&str] = &["rs", "md", "toml", "wgsl", "cu", "sh", "json", "yml", "yaml"];

/// Folders at the root of a file system that hold private things.
const FOLDERS: &[&str] = &["Users", "home", "root", "tmp", "work"];

pub(super) fn check(workspace: &Workspace) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (path, text) in workspace.tree.with_ending(ENDINGS) {
        for (position, _) in text.match_indices('/') {
            if let Some(folder) = folder_at(text, position) {
                let message = format!("/{folder} is a path of one machine");
                offences.push(Offence::in_line(path, line_at(text, position), message));
            }
        }
    }
    offences
}

/// The private folder that an absolute path beginning at `position` leads into.
fn folder_at(text: &str, position: usize) -> Option<&'static str> {
    let before = text[..position].chars().next_back();
    // What follows a name, a dot or another slash is the middle of a path or an address.
    if before.is_some_and(|c| is_part_of_word(c) || "./-~*>})]".contains(c)) {
        return None;
    }
    let rest = &text[position + 1..];
    let folder = FOLDERS.iter().find(|folder| rest.starts_with(*folder))?;
    let after = rest[folder.len()..].chars().next();
    let ends = after.is_none_or(|c| !is_part_of_word(c) && c != '-' && c != '.');
    ends.then_some(folder)
}
