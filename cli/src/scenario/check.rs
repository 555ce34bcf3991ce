//! Checking a scenario before anything runs. Every problem is found, not only the first.

use std::time::Duration;

use toml::Spanned;

use super::document::{Document, EndpointEntry};
use super::plan::Scenario;
use super::problem::Problem;

mod devices;
mod events;
mod kernels;
mod names;
mod wiring;

#[cfg(test)]
mod tests;

use names::Names;

/// How long a step may run unless the scenario says otherwise.
const DEFAULT_STEP_LIMIT_MS: u64 = 5_000;

/// How long the whole may take unless the scenario says otherwise.
const DEFAULT_TIMEOUT_S: u64 = 60;

/// Messages that an endpoint or a mailbox holds unless the scenario says otherwise.
const DEFAULT_CAPACITY: u64 = hopwise_core::fleet::DEFAULT_MAILBOX_CAPACITY as u64;

/// Collects what is wrong, so that one look shows all of it.
#[derive(Debug, Default)]
struct Problems(Vec<Problem>);

impl Problems {
    fn add<T>(&mut self, place: &Spanned<T>, message: impl Into<String>) {
        self.0.push(Problem::at(place, message));
    }

    /// A number that must lie in a range; the default where it is not given.
    fn number(
        &mut self,
        given: Option<&Spanned<u64>>,
        default: u64,
        (least, most): (u64, u64),
    ) -> u64 {
        let Some(given) = given else { return default };
        let value = *given.get_ref();
        if !(least..=most).contains(&value) {
            self.add(given, format!("{value} is not allowed; write {least} to {most}"));
        }
        value
    }

    /// As [`number`](Self::number), for something counted in memory.
    fn count(&mut self, given: Option<&Spanned<u64>>, default: u64, range: (u64, u64)) -> usize {
        usize::try_from(self.number(given, default, range)).unwrap_or(usize::MAX)
    }
}

/// Checks a document.
///
/// # Errors
///
/// Every problem, in the order of the checks.
pub(crate) fn check(document: &Document) -> Result<Scenario, Vec<Problem>> {
    let mut problems = Problems::default();
    let step_limit_ms =
        problems.number(document.step_limit_ms.as_ref(), DEFAULT_STEP_LIMIT_MS, (1, 3_600_000));
    let timeout_s = problems.number(document.timeout_s.as_ref(), DEFAULT_TIMEOUT_S, (1, 86_400));
    let kernels_a_device = document.max_kernels_per_device.as_ref();
    let max_kernels_per_device = problems.count(kernels_a_device, 64, (1, 1 << 20));
    let devices = devices::check(&document.device, &mut problems);
    let kernel_names =
        Names::of("kernel", document.kernel.iter().map(|entry| &entry.name), &mut problems);
    let endpoint_names =
        Names::of("endpoint", document.endpoint.iter().map(|entry| &entry.name), &mut problems);
    let kernels = kernels::check(&document.kernel, &devices, &mut problems);
    let parties = wiring::Parties {
        kernel_names: &kernel_names,
        endpoint_names: &endpoint_names,
        kernels: &kernels,
    };
    let channels = wiring::channels(&document.channel, &parties, &mut problems);
    let sends = wiring::sends(&document.send, &parties, &mut problems);
    let events = events::check(
        &document.event,
        &kernel_names,
        &endpoint_names,
        devices.len(),
        &mut problems,
    );
    let endpoints = document.endpoint.iter().map(|entry| endpoint(entry, &mut problems)).collect();
    if !problems.0.is_empty() {
        return Err(problems.0);
    }
    let started = document.kernel.iter().enumerate().filter(|(_, entry)| entry.start);
    Ok(Scenario {
        step_limit: Duration::from_millis(step_limit_ms),
        timeout: Duration::from_secs(timeout_s),
        max_kernels_per_device,
        devices,
        starts: started.map(|(index, _)| index).collect(),
        kernels: kernels.into_iter().flatten().collect(),
        endpoints,
        channels,
        sends,
        events,
    })
}

fn endpoint(entry: &EndpointEntry, problems: &mut Problems) -> (String, usize) {
    let capacity = problems.count(entry.capacity.as_ref(), DEFAULT_CAPACITY, (1, 1 << 20));
    (entry.name.get_ref().clone(), capacity)
}
