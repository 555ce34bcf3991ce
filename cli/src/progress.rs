//! Progress on standard error, where somebody sees it.

use std::io::{IsTerminal, stderr};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar up to `length`, with a word for what is counted. Silent unless standard error is a
/// terminal.
pub(crate) fn bar(length: u64, what: &str) -> ProgressBar {
    draw(Some(length), &format!("{{bar:40}} {{pos}} of {{len}} {what}, {{elapsed}} {{msg}}"))
}

/// A count without an end. Silent unless standard error is a terminal.
pub(crate) fn count(what: &str) -> ProgressBar {
    draw(None, &format!("{{spinner}} {{pos}} {what}, {{elapsed}}"))
}

fn draw(length: Option<u64>, template: &str) -> ProgressBar {
    if !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar, // the built-in style serves as well
    }
}
