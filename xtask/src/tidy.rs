//! `cargo xtask tidy`: the house rules that no compiler checks.
//!
//! Each rule is a small module with a function from the workspace to the offences that it finds.

use std::fmt;
use std::path::Path;

use crate::metadata::Metadata;
use crate::tree::Tree;

mod ascii;
mod changelog;
mod crate_roots;
mod driver_names;
mod file_names;
mod layers;
mod length;
mod machine_paths;
mod manifests;
mod markers;
mod module_docs;
mod skipped_tests;

/// What the rules look at.
#[derive(Debug, Default)]
struct Workspace {
    tree: Tree,
    metadata: Metadata,
}

/// A place where a rule is broken, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Offence {
    path: String,
    line: Option<usize>,
    message: String,
}

impl Offence {
    fn in_line(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.into(), line: Some(line), message: message.into() }
    }

    fn in_file(path: &str, message: impl Into<String>) -> Self {
        Self { path: path.into(), line: None, message: message.into() }
    }
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.message),
            None => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

type Rule = fn(&Workspace) -> Vec<Offence>;

const RULES: &[(&str, Rule)] = &[
    ("layers", layers::check),
    ("driver names", driver_names::check),
    ("manifests", manifests::check),
    ("crate roots", crate_roots::check),
    ("length", length::check),
    ("file names", file_names::check),
    ("module documentation", module_docs::check),
    ("ASCII", ascii::check),
    ("markers", markers::check),
    ("skipped tests", skipped_tests::check),
    ("machine paths", machine_paths::check),
    ("changelog", changelog::check),
];

/// Checks the working tree below `root` and prints every offence.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let workspace = Workspace { tree: Tree::read(root)?, metadata: Metadata::read(root)? };
    let mut count = 0;
    for (rule, check) in RULES {
        let mut offences = check(&workspace);
        offences.sort();
        count += offences.len();
        for offence in offences {
            println!("{offence} [{rule}]");
        }
    }
    let looked_at = format!("{} rules, {} files", RULES.len(), workspace.tree.len());
    match count {
        0 => {
            println!("tidy: {looked_at}, no offence");
            Ok(())
        }
        1 => Err(format!("tidy: {looked_at}, 1 offence")),
        count => Err(format!("tidy: {looked_at}, {count} offences")),
    }
}

/// What a rule finds in a made-up tree, one line each.
#[cfg(test)]
fn found(check: Rule, files: &[(&str, &str)]) -> Vec<String> {
    let workspace = Workspace { tree: Tree::made_up(files), ..Workspace::default() };
    check(&workspace).iter().map(ToString::to_string).collect()
}
