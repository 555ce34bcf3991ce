//! The outcome for a person.

use std::fmt;

use super::short::EXAMPLES;
use super::{Difference, Outcome};
use crate::report::{KernelRow, device_table, message_table, move_table};

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (image, kernels) = (&self.image, self.kernels.len());
        writeln!(
            f,
            "{} ({} x {} pixels), {} iterations on {kernels} kernels in {}.{:03} s\n",
            image.source,
            image.width,
            image.height,
            self.iterations,
            self.elapsed_ms / 1000,
            self.elapsed_ms % 1000,
        )?;
        writeln!(f, "{}\n", device_table(&self.devices))?;
        writeln!(f, "{}\n", kernel_summary(&self.kernels))?;
        writeln!(f, "{}\n", message_table(&self.messages))?;
        if self.migrations.is_empty() {
            writeln!(f, "no kernel was moved\n")?;
        } else {
            writeln!(f, "{}\n", move_table(&self.migrations))?;
        }
        for failure in &self.in_short {
            writeln!(f, "FAILED: {failure}")?;
        }
        for waiting in self.waiting.iter().take(EXAMPLES) {
            writeln!(f, "  {waiting}")?;
        }
        if let more @ 1.. = self.waiting.len().saturating_sub(EXAMPLES) {
            writeln!(f, "  and {more} more (--json has all)")?;
        }
        if let Some(output) = &self.output {
            writeln!(f, "smoothed image: {output}")?;
        }
        match &self.first_difference {
            None => {
                let pixels = u64::from(image.width) * u64::from(image.height);
                write!(
                    f,
                    "verified: all {pixels} pixels equal, bit for bit, those of a plain loop over \
                     the whole image"
                )
            }
            Some(Difference { row, column, expected, found }) => write!(
                f,
                "NOT VERIFIED: the first pixel that differs from a plain loop's is in row {row}, \
                 column {column}: {found} instead of {expected} (256 is one grey level)"
            ),
        }
    }
}

/// A line about all kernels; the JSON object has each of them, and failures are listed anyway.
fn kernel_summary(kernels: &[KernelRow]) -> String {
    let steps = || kernels.iter().map(|kernel| kernel.steps);
    let (least, most) = (steps().min().unwrap_or(0), steps().max().unwrap_or(0));
    let bytes: u64 = kernels.iter().map(|kernel| kernel.state_bytes).sum();
    let count = kernels.len();
    format!("{count} kernels with {bytes} bytes of state made {least} to {most} steps each")
}
