//! The built-in scenario: an image is smoothed by kernels on several devices, one of which is
//! drained meanwhile; the result is compared with a plain loop over the whole image.

use std::path::Path;

mod plan;

mod course;
mod fleet;
mod outcome;
mod result;

mod chart;
mod image;
mod reference;

mod args;

pub(crate) use args::{Drain, Injection};
pub(crate) use outcome::Outcome;
pub(crate) use plan::Plan;

use crate::failure::Failure;
use crate::progress;
use course::Course;
use fleet::StripFleet;

/// Runs the demo and writes the smoothed image. What goes wrong while kernels run is in the
/// outcome.
///
/// # Errors
///
/// [`Failure::Failed`] when the kernels could not be started.
pub(crate) fn run(plan: &Plan, output: &Path) -> Result<Outcome, Failure> {
    let strips = StripFleet::launch(plan)?;
    let course = Course::follow(&strips, plan)?;
    // Only now: the plain loop takes no processor from the kernels.
    let bar = progress::bar(plan.settings.iterations().into(), "iterations of the plain loop");
    let expected = reference::smooth(&plan.image, &plan.settings, |done| bar.set_position(done));
    bar.finish_and_clear();
    Ok(Outcome::collect(strips, course, plan, &expected, output))
}
