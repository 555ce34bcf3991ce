//! All parts together: for a person, for a program, and as a section of `docs/performance.md`.

use std::fmt::{self, Display, Write};

use serde::Serialize;

use super::arguments::{Arguments, Part};
use super::conformance::Conformance;
use super::demo_run::DemoRun;
use super::devices::Chosen;
use super::measure::Measured;
use super::sanitizer::Sanitized;
use super::{child, sanitizer, tell};

#[cfg(test)]
mod tests;

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    conformance: Found<Conformance>,
    sanitizer: Option<Sanitized>,
    demo: Found<DemoRun>,
    measured: Found<Measured>,
    failures: Vec<String>,
    /// The section for `docs/performance.md`; none where the figures are no GPU's.
    table_for_docs: Option<String>,
    /// Why there is none.
    no_table_because: Option<String>,
}

/// What a part found, or why it found nothing.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Found<T> {
    Ended(T),
    Died { died: String },
}

impl<T> Found<T> {
    fn of(found: Result<T, String>) -> Self {
        match found {
            Ok(found) => Self::Ended(found),
            Err(died) => Self::Died { died },
        }
    }

    fn failures(&self, of: impl Fn(&T) -> Vec<String>) -> Vec<String> {
        match self {
            Self::Ended(found) => of(found),
            Self::Died { died } => vec![died.clone()],
        }
    }

    fn ended(&self) -> Option<&T> {
        match self {
            Self::Ended(found) => Some(found),
            Self::Died { .. } => None,
        }
    }
}

impl Report {
    /// Runs every part. One that fails or dies does not keep the others from running.
    pub(super) fn collect(arguments: &Arguments, chosen: &Chosen) -> Self {
        tell("conformance:");
        let conformance = Found::of(child::run_part(Part::Conformance, arguments, chosen));
        let sanitizer = arguments.sanitizer.as_ref().map(|program| {
            tell(&format!("conformance under {}:", program.display()));
            sanitizer::run(program, arguments, chosen)
        });
        tell("demo:");
        let demo = Found::of(child::run_part(Part::Demo, arguments, chosen));
        tell("measurements:");
        let measured = Found::of(child::run_part(Part::Measure, arguments, chosen));
        let mut report = Self {
            conformance,
            sanitizer,
            demo,
            measured,
            failures: Vec::new(),
            table_for_docs: None,
            no_table_because: None,
        };
        report.conclude();
        report
    }

    fn conclude(&mut self) {
        let parts = [
            self.conformance.failures(Conformance::failures),
            self.sanitizer.iter().filter_map(Sanitized::failure).collect(),
            self.demo.failures(DemoRun::failures),
            self.measured.failures(Measured::failures),
        ];
        self.failures = parts.concat();
        let refused = match self.measured.ended() {
            None => Some("nothing was measured".to_owned()),
            Some(measured) => measured.no_gpu(),
        };
        let refused =
            refused.or_else(|| (!self.failures.is_empty()).then(|| "something failed".to_owned()));
        if refused.is_none() {
            self.table_for_docs = self.measured.ended().map(|measured| self.section(measured));
        }
        self.no_table_because = refused;
    }

    /// Everything that failed.
    pub(super) fn failures(&self) -> Vec<String> {
        self.failures.clone()
    }

    /// The lines about the parts other than the figures.
    fn parts(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let line = |name: &str, words: Option<String>| {
            format!("{name}: {}", words.unwrap_or_else(|| "did not end".to_owned()))
        };
        lines.push(line("Conformance", self.conformance.ended().map(Conformance::summary)));
        let sanitized = self.sanitizer.iter().map(|found| format!("compute-sanitizer: {found}"));
        lines.extend(sanitized);
        lines.push(line("Demo", self.demo.ended().map(ToString::to_string)));
        lines
    }

    /// A section for `docs/performance.md`.
    fn section(&self, measured: &Measured) -> String {
        let Measured { date, driver, .. } = measured;
        let driver = driver.as_deref().unwrap_or("no CUDA driver");
        let mut text = format!("### {}\n\n", measured.gpu_names().join(", "));
        let mut push = |line: &str| text.write_fmt(format_args!("{line}\n")).unwrap_or_default();
        push(&format!("`cargo xtask gpu-check` on {date}, {driver}. Medians of several runs, the"));
        push("shortest and the longest of them beside it. The devices:\n");
        measured.device_lines().for_each(|line| push(&format!("- {line}")));
        push("");
        self.parts().iter().for_each(|line| push(&format!("- {line}.")));
        push("\n| what | on | ours | limit | ratio |\n|---|---|---|---|---|");
        for figure in &measured.figures {
            push(&format!("| {} |", figure.cells().join(" | ")));
        }
        if !measured.left_out.is_empty() {
            push("");
        }
        measured.left_out.iter().for_each(|reason| push(&format!("- Not measured: {reason}.")));
        text
    }
}

impl Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(table) = &self.table_for_docs {
            return write!(formatter, "{table}");
        }
        self.parts().iter().try_for_each(|line| writeln!(formatter, "{line}"))?;
        if let Some(measured) = self.measured.ended() {
            writeln!(formatter, "\n{measured}")?;
        }
        for failure in &self.failures {
            writeln!(formatter, "FAILED: {failure}")?;
        }
        let reason = self.no_table_because.as_deref().unwrap_or("nothing was measured");
        write!(formatter, "\nno table for docs/performance.md: {reason}")
    }
}
