//! Checking `[[event]]`: a mark and one action.

use toml::Spanned;

use super::names::Names;
use super::{Problems, devices};
use crate::scenario::document::{EventEntry, MarkEntry};
use crate::scenario::plan::{Action, Event, Mark};

/// The events, each with its words for the report.
pub(super) fn check(
    entries: &[Spanned<EventEntry>],
    kernels: &Names,
    endpoints: &Names,
    devices: usize,
    problems: &mut Problems,
) -> Vec<Event> {
    let mut events = Vec::new();
    for entry in entries {
        let mark = mark(&entry.get_ref().after, kernels, endpoints, problems);
        let action = action(entry, kernels, devices, problems);
        if let (Some((mark, when)), Some((action, what))) = (mark, action) {
            events.push(Event { mark, action, text: format!("{what} after {when}") });
        }
    }
    events
}

fn mark(
    given: &Spanned<MarkEntry>,
    kernels: &Names,
    endpoints: &Names,
    problems: &mut Problems,
) -> Option<(Mark, String)> {
    match given.get_ref() {
        MarkEntry { endpoint: Some(name), messages: Some(messages), kernel: None, steps: None } => {
            let endpoint = endpoints.find(name, problems)?;
            let text = format!("{messages} messages at {}", name.get_ref());
            Some((Mark::Messages { endpoint, messages: *messages }, text))
        }
        MarkEntry { endpoint: None, messages: None, kernel: Some(name), steps: Some(steps) } => {
            let kernel = kernels.find(name, problems)?;
            let text = format!("{steps} steps of {}", name.get_ref());
            Some((Mark::Steps { kernel, steps: *steps }, text))
        }
        _ => {
            let message = "a mark is { endpoint = \"NAME\", messages = N } or \
                           { kernel = \"NAME\", steps = N }";
            problems.add(given, message);
            None
        }
    }
}

fn action(
    entry: &Spanned<EventEntry>,
    kernels: &Names,
    devices: usize,
    problems: &mut Problems,
) -> Option<(Action, String)> {
    let event = entry.get_ref();
    let EventEntry { drain, lose, migrate, to, park, remove, .. } = event;
    let named = [migrate, park, remove].into_iter().flatten().count();
    let numbered = [drain, lose].into_iter().flatten().count();
    if named + numbered != 1 {
        let message = "an event has one action: drain = DEVICE, lose = DEVICE, \
                       migrate = \"KERNEL\" with to = DEVICE, park = \"KERNEL\" or \
                       remove = \"KERNEL\"";
        problems.add(&event.after, message);
        return None;
    }
    if to.is_some() != migrate.is_some() {
        let message = "`migrate` and `to` belong together: migrate = \"KERNEL\", to = DEVICE";
        problems.add(&event.after, message);
        return None;
    }
    let mut device = |given: &Spanned<u64>| devices::index(given, devices, problems);
    if let Some(given) = drain {
        let device = device(given)?;
        return Some((Action::Drain { device }, format!("drain device {device}")));
    }
    if let Some(given) = lose {
        let device = device(given)?;
        return Some((Action::Lose { device }, format!("lose device {device}")));
    }
    if let (Some(name), Some(to)) = (migrate, to) {
        let device = device(to);
        let kernel = kernels.find(name, problems)?;
        let text = format!("migrate {} to device {}", name.get_ref(), to.get_ref());
        return Some((Action::Migrate { kernel, device: device? }, text));
    }
    if let Some(name) = park {
        let kernel = kernels.find(name, problems)?;
        return Some((Action::Park { kernel }, format!("park {}", name.get_ref())));
    }
    let name = remove.as_ref()?;
    let kernel = kernels.find(name, problems)?;
    Some((Action::Remove { kernel }, format!("remove {}", name.get_ref())))
}
