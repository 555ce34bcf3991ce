//! No work is left for later in the code, and no debugging is left behind.

use crate::source::{Source, is_part_of_word};

use super::{Offence, Workspace};

#[cfg(test)]
mod tests;

/// Words in comments and prose that stand for work undone.
const WORDS: &[&str] = &["TODO", "FIXME", "XXX"];

const MACROS: &[&str] = &["todo", "unimplemented", "dbg"];

const PROSE: &[&str] = &["md", "wgsl", "cu", "toml"];

pub(super) fn check(workspace: &Workspace) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (path, text) in workspace.tree.rust() {
        let source = Source::split(text);
        offences.extend(words(path, &source.comments));
        for found in source.identifiers() {
            let is_call = found.after.starts_with('!') && !found.after.starts_with("!=");
            if is_call && MACROS.contains(&found.name) {
                let message = format!("{}! must not stay", found.name);
                offences.push(Offence::in_line(path, found.line, message));
            }
        }
    }
    for (path, text) in workspace.tree.with_ending(PROSE) {
        offences.extend(words(path, text));
    }
    offences
}

fn words<'a>(path: &'a str, text: &'a str) -> impl Iterator<Item = Offence> + 'a {
    text.lines().enumerate().flat_map(move |(index, line)| {
        let found = line.split(|c| !is_part_of_word(c)).filter(|word| WORDS.contains(word));
        found.map(move |word| {
            let message = format!("{word}: do it, or open an issue and leave the word out");
            Offence::in_line(path, index + 1, message)
        })
    })
}
