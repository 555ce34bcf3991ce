//! What came of the demo: figures, the comparison, and every reason to call it a failure.

use std::path::Path;
use std::time::Duration;

use hopwise_core::fleet::{Fleet, MessageTotals};
use hopwise_core::id::KernelId;
use hopwise_core::programs::diffuse::to_grey;
use serde::Serialize;

use super::Plan;
use super::course::Course;
use super::fleet::StripFleet;
use super::image::{self, GreyImage};
use super::reference::{Difference, first_difference};
use super::result::{StripResults, Waiting};
use crate::failure::Failure;
use crate::moves::Move;
use crate::report::{DeviceRow, KernelRow, message_failures};

mod short;
mod text;

/// How long a fleet that is at rest may take to stop its threads.
const STOP: Duration = Duration::from_millis(500);

/// Everything that the demo reports. Serialised it is the object that `--json` prints, printed with
/// `{}` it is for a person.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    /// Whether the kernels' result equals the plain loop's, bit for bit.
    verified: bool,
    /// The first pixel that differs, if one does.
    first_difference: Option<Difference>,
    /// Everything that went wrong. Empty: the demo did what it should.
    failures: Vec<String>,
    /// The same for a person: kernels that share a fate are told in one line.
    #[serde(skip)]
    in_short: Vec<String>,
    /// Which kernel waits for which, when they came to a standstill.
    waiting: Vec<Waiting>,
    image: ImageFacts,
    iterations: u32,
    /// How long the kernels worked.
    elapsed_ms: u64,
    devices: Vec<DeviceRow>,
    kernels: Vec<KernelRow>,
    messages: MessageTotals,
    migrations: Vec<Move>,
    /// Where the smoothed image was written; none when it could not be.
    output: Option<String>,
}

/// The image that was smoothed.
#[derive(Debug, Serialize)]
struct ImageFacts {
    source: String,
    width: u32,
    height: u32,
}

impl Outcome {
    /// Reads states and ledgers, compares, writes the image, and stops the fleet.
    pub(crate) fn collect(
        strips: StripFleet,
        course: Course,
        plan: &Plan,
        expected: &[u32],
        output: &Path,
    ) -> Self {
        let StripFleet { fleet, mut devices, kernels, progress, opened } = strips;
        let before = course.failures();
        let results = StripResults::read(&fleet, &kernels, plan);
        let ledgers = fleet.ledgers();
        DeviceRow::note_end(&mut devices, &fleet);
        let kernels = kernel_rows(&fleet, &kernels, plan);
        let messages = MessageTotals::of(&ledgers);
        let written = write_image(output, &results.pixels, plan);
        let mut after = message_failures(&ledgers);
        // That the state of a kernel that is lost cannot be read, its loss tells.
        let (lost, unreadable): (Vec<_>, Vec<_>) =
            results.unreadable.into_iter().partition(|(index, _)| kernels[*index].fault.is_some());
        after.extend(unreadable.into_iter().map(|(_, reason)| reason));
        after.extend(standstill(results.waiting.len(), kernels.len()));
        after.extend(missed_fault(plan, &messages));
        after.extend(written.as_ref().err().map(ToString::to_string));
        let in_short = [before.clone(), short::kernel_failures(&kernels), after.clone()].concat();
        let mut failures = before;
        failures.extend(kernels.iter().filter_map(KernelRow::failure));
        failures.extend(lost.into_iter().map(|(_, reason)| reason));
        failures.extend(after);
        let first_difference = first_difference(expected, &results.pixels, plan.image.width);
        fleet.shutdown(STOP);
        drop((progress, opened));
        Self {
            verified: first_difference.is_none(),
            first_difference,
            failures,
            in_short,
            waiting: results.waiting,
            image: ImageFacts {
                source: plan.image_source.clone(),
                width: plan.image.width,
                height: plan.image.height,
            },
            iterations: plan.settings.iterations(),
            elapsed_ms: u64::try_from(course.elapsed.as_millis()).unwrap_or(u64::MAX),
            devices,
            kernels,
            messages,
            migrations: course.moves.done,
            output: written.is_ok().then(|| output.display().to_string()),
        }
    }

    /// `Ok` when the result is right and nothing went wrong on the way.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if !self.verified {
            return Err(Failure::failed(
                "the result is not what a plain loop gives; the report says why",
            ));
        }
        if !self.failures.is_empty() {
            return Err(Failure::failed(
                "the result is right, but not everything went right on the way; the report says what",
            ));
        }
        Ok(())
    }
}

fn standstill(unfinished: usize, all: usize) -> Option<String> {
    (unfinished > 0).then(|| format!("standstill: {unfinished} of {all} kernels did not finish"))
}

/// An injected fault that no ledger shows did not happen.
fn missed_fault(plan: &Plan, messages: &MessageTotals) -> Option<String> {
    let fault = plan.fault?;
    let seen = messages.lost + messages.duplicated + messages.out_of_order;
    let (nth, sent) = (fault.nth, messages.sent);
    (seen == 0).then(|| {
        format!("nothing was done to message {nth}: {sent} were sent; inject at a smaller number")
    })
}

fn kernel_rows(fleet: &Fleet, kernels: &[KernelId], plan: &Plan) -> Vec<KernelRow> {
    let program = format!("diffuse-{}", plan.image.width);
    let rows = kernels.iter().enumerate();
    rows.map(|(index, id)| KernelRow::new(fleet, id, &program, plan.device_of(index))).collect()
}

fn write_image(output: &Path, pixels: &[u32], plan: &Plan) -> Result<(), Failure> {
    let pixels = pixels.iter().map(|&pixel| to_grey(pixel)).collect();
    image::write(output, &GreyImage { pixels, ..plan.image })
}
