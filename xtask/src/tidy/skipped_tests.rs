//! Every test runs, and says itself what it expects.

use crate::source::Source;

use super::{Offence, Workspace};

#[cfg(test)]
mod tests;

/// Attributes of tests that hide what a test does, with what to do instead.
const ATTRIBUTES: &[(&str, &str)] = &[
    ("ignore", "a test that does not run proves nothing: make it run, or remove it"),
    ("should_panic", "any panic would do: catch the panic and check what it says"),
];

pub(super) fn check(workspace: &Workspace) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (path, text) in workspace.tree.rust() {
        let source = Source::split(text);
        for (line, inside) in source.attributes() {
            let applied = applied_attribute(inside);
            if let Some((name, advice)) = ATTRIBUTES.iter().find(|(name, _)| *name == applied) {
                offences.push(Offence::in_line(path, line, format!("#[{name}]: {advice}")));
            }
        }
        for (index, line) in source.comments.lines().enumerate() {
            if is_skipped_example(line) {
                let message = "an example that is not compiled goes stale: use `no_run` or `text`";
                offences.push(Offence::in_line(path, index + 1, message));
            }
        }
    }
    offences
}

/// The name of an attribute, also of one that a `cfg_attr` applies.
fn applied_attribute(inside: &str) -> &str {
    let applied = match inside.strip_prefix("cfg_attr") {
        Some(arguments) => arguments.rsplit(',').next().unwrap_or_default(),
        None => inside,
    };
    let applied = applied.trim();
    let end = applied.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    &applied[..end.unwrap_or(applied.len())]
}

/// A code fence in a doc comment with the word `ignore`.
fn is_skipped_example(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches(['/', '!', '*']).trim_start();
    let words = line.strip_prefix("```").unwrap_or_default();
    words.split(',').any(|word| word.trim() == "ignore")
}
