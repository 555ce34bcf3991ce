//! Scenario files (`docs/scenario.md`): which kernels run where, who sends to whom, and what
//! happens to them meanwhile.
//!
//! ```text
//! text --document--> entries --check--> Scenario --execute--> Outcome
//! ```

mod document;
mod problem;

mod check;
mod plan;

mod execute;
mod outcome;

pub(crate) use execute::execute;
pub(crate) use plan::Scenario;

use std::path::Path;

use crate::failure::Failure;

/// Reads and checks a scenario. Nothing is run.
///
/// # Errors
///
/// [`Failure::Failed`] when the file cannot be read, [`Failure::Usage`] with every problem that was
/// found, each with its line.
pub(crate) fn read(path: &Path) -> Result<Scenario, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::failed(format!("cannot read {}: {error}", path.display())))?;
    let checked = document::read(&text)
        .map_err(|problem| vec![problem])
        .and_then(|document| check::check(&document));
    checked.map_err(|problems| {
        let problems = problems.iter().map(|problem| problem.describe(path, &text));
        Failure::usage(problems.collect::<Vec<_>>().join("\n       "))
    })
}
